"""How an error ends the process: one line on stderr and an exit code."""

from __future__ import annotations

import sys
import tempfile
import traceback

import click

DONE, FAILED, USAGE, INCOMPLETE = range(4)

# Class names of errors in a request, by module. We do not import the modules here: an error of
# theirs can only arise after something else has.
_USAGE_ERRORS = {
    "proxmo.errors": {"UsageError"},
    "proxmo_envs.errors": {"InvalidOptionError", "UnknownTaskError"},
    "gymnasium.error": {"UnregisteredEnv"},
}
_EXPECTED_ERRORS = {
    "proxmo.errors": {"ProxmoError"},
    "proxmo_envs.errors": {"ProxmoEnvError"},
    "webshop_server.errors": {"ShopError"},
    "gymnasium.error": {"Error"},
}


def report(error: Exception) -> int:
    """Print one line about an error and return the exit code that fits it."""
    if _is_one_of(error, _USAGE_ERRORS):
        code, line = USAGE, str(error)
    elif _is_one_of(error, _EXPECTED_ERRORS) or isinstance(error, OSError):
        code, line = FAILED, str(error)
    else:
        code, line = FAILED, _unexpected(error)
    click.echo(f"error: {' '.join(line.split())}", err=True)
    return code


def usage_line(error: click.ClickException) -> str:
    """Write a usage error in one line that names the help to read."""
    line = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return line if context is None else f"{line} See `{context.command_path} -h`."


def _is_one_of(error: Exception, names: dict[str, set[str]]) -> bool:
    return any(cls.__name__ in names.get(cls.__module__, ()) for cls in type(error).__mro__)


def _unexpected(error: Exception) -> str:
    """Describe a bug; its traceback goes to a file, as a long run cannot be repeated for it."""
    line = f"unexpected {type(error).__name__}: {error}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="proxmo-error-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exception(*sys.exc_info(), file=file)
    except OSError:
        return f"{line} (--debug shows the traceback)"
    return f"{line} (the traceback is in {file.name})"
