"""The processes that train together: who is who, what they tell each other, how gradients add up.

Started by `proxmo train --nproc N` (see `launcher`), by torchrun, or by whatever else sets its
variables. One process alone needs none of this: every exchange gives back what it was given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from proxmo.errors import UsageError

T = TypeVar("T")

# One process may be busy for long while the others wait for it: with the slowest game, or with the
# building of the embedded model. That one has died is for the launcher to see, not for a clock.
_PATIENCE = timedelta(days=1)
# What a launcher tells its processes. An engine that one of them starts must not find it: it would
# look for its own peers there.
_TOLD = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME"),
    *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"),
)


class World:
    """All processes of a run; each method is called by all of them, in the same order.

    Args:
        rank: number of this process.
        size: how many there are.
        group: torch's process group for the exchange of objects; None for the default one.
    """

    def __init__(self, rank: int = 0, size: int = 1, group: Any = None) -> None:
        self.rank = rank
        self.size = size
        self._group = group

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and reports."""
        return self.rank == 0

    def owns(self, number: int) -> bool:
        """Whether piece `number` of work that is dealt out falls to this process."""
        return number % self.size == self.rank

    def gather(self, value: T) -> list[T]:
        """The values of all processes, by rank."""
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self._group)
        return values

    def any(self, value: bool) -> bool:
        """Whether it is true of any process."""
        return any(self.gather(value))

    def told(self, value: T) -> T:
        """The value that the first process has."""
        if self.size == 1:
            return value
        import torch.distributed as dist

        values: list[Any] = [value if self.leads else None]
        dist.broadcast_object_list(values, src=0, group=self._group)
        first: T = values[0]
        return first

    def totals(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Adds up sums by name."""
        parts = self.gather(sums)
        return {name: sum(part[name] for part in parts) for name in sums}

    @contextmanager
    def one_first(self) -> Iterator[None]:
        """The first process runs the block before all others: they find what it has made."""
        if not self.leads:
            self.gather(None)
        yield
        if self.leads:
            self.gather(None)

    def add_gradients(self, weights: Iterable[Any]) -> None:
        """Adds up the gradients of whole weights in place; those of sharded ones are sums already.

        A weight has a gradient either in every process or in none.
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

    def channel(self) -> World:
        """The same processes, for exchanges of another thread than that of the caller."""
        if self.size == 1:
            return self
        import torch.distributed as dist

        group = dist.new_group(backend="gloo", timeout=_PATIENCE)
        return World(self.rank, self.size, group)


ALONE = World()


@contextmanager
def joined(device: str) -> Iterator[World]:
    """Joins the processes that this one was started with; there need not be any.

    Each has a GPU of its own, and sees no other from here on: nothing may have used one before.

    Args:
        device: as `model.device` says it.

    Raises:
        UsageError: the device is one certain GPU, or there are fewer GPUs than processes.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ALONE
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
    world = World(dist.get_rank(), size).channel()
    for name in _TOLD:
        os.environ.pop(name, None)
    yield world
    # Not after an error: the others may be waiting for what will never come.
    dist.destroy_process_group()


def check_devices(device: str, processes: int) -> bool:
    """Whether that many processes get a GPU each; False where they share the CPU.

    Raises:
        UsageError: see `joined`.
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
