"""One error for running out of memory on any device; it says which setting to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proxmo.errors import ProxmoError


@contextmanager
def memory_advice(error: type[ProxmoError], advice: str) -> Iterator[None]:
    """Raises `error` with the advice where the block runs out of memory.

    Args:
        error: class to raise.
        advice: follows the words "out of memory", for example "in the update: lower ...".
    """
    import torch

    try:
        yield
    except (MemoryError, RuntimeError) as cause:
        # torch has no error class for the memory of a CPU.
        full = isinstance(cause, (MemoryError, torch.OutOfMemoryError))
        if not full and "allocate memory" not in str(cause):
            raise
        reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        raise error(f"out of memory {advice} ({reason})") from cause
