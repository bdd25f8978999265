"""Out of memory: one error for every device, which says what to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proxmo.errors import ProxmoError


@contextmanager
def memory_advice(error: type[ProxmoError], advice: str) -> Iterator[None]:
    """Raises `error` with the advice where the block runs out of memory.

    Args:
        error: what is raised.
        advice: "in the update: lower ..."; stands after "out of memory".
    """
    import torch

    try:
        yield
    except (MemoryError, RuntimeError) as cause:
        # For the memory of a CPU torch has no class of its own.
        full = isinstance(cause, (MemoryError, torch.OutOfMemoryError))
        if not full and "allocate memory" not in str(cause):
            raise
        reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        raise error(f"out of memory {advice} ({reason})") from cause
