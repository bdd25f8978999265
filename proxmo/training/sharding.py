"""FSDP2: cuts weights, gradients and optimiser state in pieces, one for each process.

We cut a float32 copy that only the update uses. Rollouts, probes and checkpoints use the whole
model, as in a single process, and it gets the new weights after every update. So rollouts need no
exchange between processes, however different the lengths of their episodes are.
"""

from __future__ import annotations

import copy
from typing import Any


def sharded_copy(model: Any) -> Any:
    """A float32 copy of a model, cut in pieces; computes in the model's precision.

    Every process calls this with the same weights.
    """
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy

    twin = copy.deepcopy(model).to("cpu", torch.float32)
    half = None if model.dtype == torch.float32 else model.dtype
    shard(twin, model.device.type, MixedPrecisionPolicy(half, reduce_dtype=torch.float32))
    # Gradients add up over processes: the loss is already divided by all tokens.
    for module in twin.modules():
        if hasattr(module, "set_gradient_divide_factor"):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    return twin


def shard(model: Any, device: str, policy: Any = None) -> Any:
    """Cuts a model in place, layer by layer, and returns it.

    Args:
        model: of transformers, with or without adapters.
        device: type of the device of the pieces.
        policy: precisions, as FSDP2 names them; None keeps those of the weights.
    """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    layers = set(plain._no_split_modules or ())
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    policy = policy or MixedPrecisionPolicy()
    for module in model.modules():
        if type(module).__name__ in layers:
            fully_shard(module, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def copy_weights(sharded: Any, whole: Any) -> None:
    """Copies the trained weights of the sharded model to the whole model of every process."""
    import torch

    with torch.no_grad():
        for piece, weight in zip(sharded.parameters(), whole.parameters(), strict=True):
            if piece.requires_grad:
                narrow: Any = piece.to(weight.dtype)  # before it travels
                weight.copy_(narrow.full_tensor())


def assembled(value: Any, *, keep: bool) -> Any:
    """The state with whole tensors on the CPU instead of pieces; None if `keep` is false.

    Every process calls this, but only one needs the memory for the result.
    """
    from torch.distributed.tensor import DTensor

    if isinstance(value, DTensor):
        whole = value.full_tensor().detach()
        return whole.cpu() if keep else None
    if isinstance(value, dict):
        return {key: assembled(below, keep=keep) for key, below in value.items()}
    if isinstance(value, list):
        return [assembled(below, keep=keep) for below in value]
    return value


def piece_of(tensor: Any, weight: Any) -> Any:
    """This process's piece of a tensor, cut as the weight is; all of it if the weight is whole.

    Tensors of another shape, such as the number of steps, stay as they are.
    """
    if not hasattr(weight, "device_mesh") or tensor.shape != weight.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    here = tensor.to(weight.device, weight.dtype)
    return distribute_tensor(here, weight.device_mesh, weight.placements, src_data_rank=None)
