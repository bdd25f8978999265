"""The command `proxmo`: a group whose commands are imported when they are used.

    proxmo train --env ALFWorld-v0

`proxmo --help` has to answer at once, so nothing here imports torch, transformers or gymnasium.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from .failures import FAILED, INCOMPLETE, report, usage_line
from .lazy import CONTEXT, LazyGroup

# name -> module and one line of help; the module is imported when the command is used.
_COMMANDS = {
    "train": ("train", "Train an agent by reinforcement learning."),
    "sft": ("sft", "Fine-tune a model on an expert's or on recorded episodes."),
    "eval": ("evaluate", "Measure the success of a checkpoint, a model, the expert or chance."),
    "play": ("play", "Play a game in the terminal."),
    "panels": ("panels", "List, print or make panels of tasks to evaluate on."),
    "compare": ("compare", "Compare two evaluations of the same panel, task by task."),
    "table": ("table", "Set results side by side in the form of the paper's table."),
    "data": ("data", "Prepare the tasks of an environment."),
    "webshop": ("webshop", "Serve the web shop to browsers and environments."),
    "explain": ("explain", "Show why the steps of a run got their advantages."),
    "bench": ("bench", "Measure the speed of a part, beside what it replaces."),
    "doctor": ("doctor", "Check what is installed and whether it works."),
}

# Defaults, to be set before torch is imported; values that the user has set stay.
_ENVIRONMENT = {
    # Idle OpenMP threads must sleep: with the default (spinning) two busy cores are 5 times slower.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Tokenizers would start threads of their own and warn about them after a fork.
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # Hints and bars of theirs would run through our display; errors are still reported.
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


@click.group(
    cls=LazyGroup, modules=_COMMANDS, invoke_without_command=True, context_settings=CONTEXT
)
@click.version_option(package_name="proxmo", message="proxmo %(version)s")
@click.pass_context
def proxmo(ctx: click.Context) -> None:
    """Train and evaluate LLM agents in multi-turn text environments.

    `proxmo COMMAND -h` explains a command. Exit codes: 0 done, 1 failed, 2 usage, 3 incomplete.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Show characters that the terminal cannot encode as escapes, instead of failing.
    for stream, errors in (
        (sys.stdin, "replace"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)
    # Finds the user's own methods and environments, `module:name`; last, so that it hides nothing.
    sys.path.append(os.getcwd())
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; every error becomes one line on stderr."""
    try:
        # Not standalone: click would print its errors in several lines and exit by itself.
        code = proxmo.main(arguments, prog_name="proxmo", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        click.echo(f"error: {usage_line(error)}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INCOMPLETE
    except BrokenPipeError:
        # The reader of our output went away; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if "--debug" in arguments:
            raise
        return report(error)
