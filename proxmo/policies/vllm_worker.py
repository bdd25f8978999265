"""Loads the trainer's weights inside vLLM's worker.

vLLM mixes the class that `worker_extension_cls` names into its worker, and the trainer calls it by
`collective_rpc`. Tested with vLLM 0.32 on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any


class WeightReceiver:
    """Loads weights in place, on a GPU or a CPU."""

    model_runner: Any
    device: Any

    def proxmo_load_weights(self, directory: str) -> int:
        """Loads every `*.safetensors` of a directory; returns the number of tensors read.

        On a CPU vLLM packs the matrices of linear layers for its kernels and drops the originals.
        Its own `reload_weights` then keeps the old ones without an error. So we create the matrices
        again, load and pack them as at the start.
        """
        model = self.model_runner.get_model()
        packed = _unpack(model) if self.device.type == "cpu" else []
        count = 0

        def weights() -> Iterator[tuple[str, Any]]:
            nonlocal count
            for name, tensor in _read(Path(directory), str(self.device)):
                count += 1
                yield name, tensor

        model.load_weights(weights())
        for layer in packed:
            layer.quant_method.process_weights_after_loading(layer)
        return count


def _read(directory: Path, device: str) -> Iterator[tuple[str, Any]]:
    from safetensors import safe_open

    for path in sorted(directory.glob("*.safetensors")):
        with safe_open(path, framework="pt", device=device) as file:
            for name in file.keys():  # noqa: SIM118  not a mapping
                yield name, file.get_tensor(name)


def _unpack(model: Any) -> list[Any]:
    """Gives linear layers empty matrices to load into; returns the layers to pack afterwards."""
    import torch
    from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
    from vllm.model_executor.parameter import ModelWeightParameter

    layers = []
    for layer in model.modules():
        if isinstance(layer, VocabParallelEmbedding):
            layers.append(layer)  # its matrix was kept beside the packed one
        if not isinstance(layer, LinearBase):
            continue
        if not isinstance(layer.quant_method, UnquantizedLinearMethod):
            raise TypeError(f"{layer.prefix} is quantised; its weights cannot be replaced")
        layers.append(layer)
        if layer.weight.numel():
            continue
        loader = getattr(layer, "weight_loader_v2", None) or layer.weight_loader
        shape = (layer.output_size_per_partition, layer.input_size_per_partition)
        data = torch.empty(shape, dtype=layer.params_dtype)
        layer.weight = ModelWeightParameter(
            data=data, input_dim=1, output_dim=0, weight_loader=loader
        )
    return layers
