"""The processes that train together: ranks, exchange of values, sums of gradients.

`proxmo train --nproc N` starts them (see `training.launcher`), or torchrun, or anything else that
sets the same variables. In a single process every exchange returns its argument.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from proxmo.errors import UsageError

T = TypeVar("T")

# The others may wait long for one process: it plays the slowest game, or builds the embedded model.
# The launcher notices when a process dies; a timeout must not.
_TIMEOUT = timedelta(days=1)
# Variables that a launcher sets. We remove them, because an engine that a process starts would
# look for its own peers there.
_LAUNCHER_VARIABLES = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME"),
    *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"),
)


class ProcessGroup:
    """All processes of a run; every process calls the same methods in the same order.

    Args:
        rank: number of this process.
        size: number of processes.
        group: torch's process group for the exchange of objects; None for the default one.
    """

    def __init__(self, rank: int = 0, size: int = 1, group: Any = None) -> None:
        self.rank = rank
        self.size = size
        self._group = group

    @property
    def is_main(self) -> bool:
        """Whether this process (rank 0) writes files and reports."""
        return self.rank == 0

    def owns(self, number: int) -> bool:
        """Whether this process does piece `number` of work that is dealt out in turn."""
        return number % self.size == self.rank

    def all_gather(self, value: T) -> list[T]:
        """Returns the values of all processes, by rank."""
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self._group)
        return values

    def any(self, value: bool) -> bool:
        """Whether the value is true in any process."""
        return any(self.all_gather(value))

    def broadcast(self, value: T) -> T:
        """Returns the value of the main process."""
        if self.size == 1:
            return value
        import torch.distributed as dist

        values: list[Any] = [value if self.is_main else None]
        dist.broadcast_object_list(values, src=0, group=self._group)
        first: T = values[0]
        return first

    def all_reduce(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Adds the values of all processes by name."""
        parts = self.all_gather(sums)
        return {name: sum(part[name] for part in parts) for name in sums}

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Runs the block in the main process first; the others then find what it made."""
        if not self.is_main:
            self.all_gather(None)
        yield
        if self.is_main:
            self.all_gather(None)

    def all_reduce_gradients(self, weights: Iterable[Any]) -> None:
        """Adds the gradients of all processes in place, except those of sharded weights.

        FSDP2 has added those already. A weight has a gradient in every process or in none.
        """
        if self.size == 1:
            return
        import torch.distributed as dist
        from torch.distributed.tensor import DTensor

        under_way = [
            dist.all_reduce(weight.grad, async_op=True)
            for weight in weights
            if weight.grad is not None and not isinstance(weight, DTensor)
        ]
        for one in under_way:
            one.wait()

    def new_group(self) -> ProcessGroup:
        """Returns the same processes with a channel of their own, for use in another thread."""
        if self.size == 1:
            return self
        import torch.distributed as dist

        group = dist.new_group(backend="gloo", timeout=_TIMEOUT)
        return ProcessGroup(self.rank, self.size, group)


SINGLE = ProcessGroup()


@contextmanager
def process_group(device: str) -> Iterator[ProcessGroup]:
    """Joins the processes that a launcher started; without a launcher the group has one member.

    Each process gets one GPU and sees no other from then on, so call this before anything uses one.

    Args:
        device: value of `model.device`.

    Raises:
        UsageError: `device` names one GPU, or there are fewer GPUs than processes.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield SINGLE
        return
    import torch
    import torch.distributed as dist

    local = int(os.environ["LOCAL_RANK"])
    here = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    gpu = check_devices(device, here)
    if gpu:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        numbers = visible.split(",") if visible else [str(i) for i in range(here)]
        os.environ["CUDA_VISIBLE_DEVICES"] = numbers[local]
    elif "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // here))
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo")
    processes = ProcessGroup(dist.get_rank(), size).new_group()
    for name in _LAUNCHER_VARIABLES:
        os.environ.pop(name, None)
    yield processes
    # Not after an error: the others may wait for an exchange that never comes.
    dist.destroy_process_group()


def check_devices(device: str, processes: int) -> bool:
    """Whether that many processes get a GPU each; False if they share the CPU.

    Raises:
        UsageError: see `process_group`.
    """
    import torch

    if ":" in device:
        raise UsageError(
            f"model.device is {device!r}, but {processes} processes take one GPU each; leave it at "
            "auto and choose GPUs with CUDA_VISIBLE_DEVICES"
        )
    gpus = torch.cuda.device_count()
    if device == "cpu" or (device == "auto" and gpus == 0):
        return False
    if gpus < processes:
        raise UsageError(
            f"{processes} processes need a GPU each, and torch sees {gpus}; lower --nproc, or take "
            "--device cpu"
        )
    return True
