"""Starts several processes on one machine that run the same function; all end together.

Uses the same parts of torch as torchrun. torchrun itself ends a run at the first Ctrl-C; we ask for
a checkpoint first.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from proxmo import errors
from proxmo.errors import ProxmoError, TrainingError, UsageError

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

# Exit code of a process that was interrupted.
_INTERRUPTED = 3
# How long a process waits that fails without an error of ours: another one may be the cause.
_LOST_S = 5.0
_POLL_S = 0.1


class Processes:
    """Starts processes, as a `with` block; they join each other by `distributed.process_group`.

    The main process has the terminal; the others print to files that are kept if one fails. SIGINT
    asks a process to stop, SIGTERM ends it.

    Args:
        number: of processes.
        function: run by each; it and its result can be pickled.
    """

    def __init__(self, number: int, function: Callable[[], Any]) -> None:
        self.number = number
        self._function = function

    def __enter__(self) -> Processes:
        """Starts them."""
        from torch.distributed import TCPStore
        from torch.distributed.elastic.multiprocessing import (
            DefaultLogsSpecs,
            Std,
            start_processes,
        )

        # They log in many lines what we raise as one error.
        for name in ("torch.distributed.elastic", "torch.multiprocessing.spawn"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        ranks = range(self.number)
        self._logs = tempfile.mkdtemp(prefix="proxmo-processes-")
        # Owned by the launcher, so that no other program can take the port.
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        meeting = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RUN_ID": "run",
            "WORLD_SIZE": str(self.number),
            "LOCAL_WORLD_SIZE": str(self.number),
        }
        handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
        self._context = start_processes(
            "proxmo",
            _process,
            args=dict.fromkeys(ranks, (self._function,)),
            envs={rank: {**meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in ranks},
            logs_specs=DefaultLogsSpecs(
                self._logs, redirects={rank: Std.ALL for rank in ranks if rank}
            ),
        )
        for number, handler in handlers.items():  # torch has replaced them
            signal.signal(number, handler)
        return self

    def request_stop(self) -> None:
        """Asks every process to stop."""
        for pid in self._context.pids().values():
            try:
                os.kill(pid, signal.SIGINT)
            except ProcessLookupError:
                continue

    def wait(self) -> Any:
        """Returns the function's result in the main process.

        Raises:
            TrainingError: one failed, and all were ended; a UsageError stays one.
            KeyboardInterrupt: one was interrupted.
        """
        result = self._context.wait(period=_POLL_S)
        assert result is not None  # there is no timeout
        if not result.failures:
            shutil.rmtree(self._logs, ignore_errors=True)
            return result.return_values[0]
        (failure,) = result.failures.values()
        if failure.exitcode == _INTERRUPTED:
            raise KeyboardInterrupt
        raise self._error(failure)

    def _error(self, failure: ProcessFailure) -> ProxmoError:
        message: Any = failure.message
        text = message["message"] if isinstance(message, dict) else str(message)
        kind, _, reason = text.partition(": ")
        known = getattr(errors, kind, None)
        where = f"process {failure.local_rank + 1} of {self.number}"
        if known is None:
            return TrainingError(f"{where} has failed: {text} (its output is in {self._logs})")
        usage = issubclass(known, UsageError)
        return (UsageError if usage else TrainingError)(f"{reason} ({where})")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kills the processes that still run."""
        self._context.close(signal.SIGKILL)


def _process(function: Callable[[], Any]) -> Any:
    # Only the launcher gets a Ctrl-C; it passes it on.
    os.setsid()
    try:
        return function()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except ProxmoError:
        raise
    except Exception:
        # Probably a consequence of another process's end; the launcher must find that one first.
        time.sleep(_LOST_S)
        raise
