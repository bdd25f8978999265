"""`proxmo play`: a person, or a file of commands, plays a text environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import click

from proxmo.config import EnvConfig
from proxmo.errors import UsageError

from . import options

_LIST, _QUIT = "?", ":quit"


@click.command("play")
@options.env(default="ALFWorld-v0")
@options.data()
@options.text("--split", "Tasks to draw from", "train", metavar="S")
@options.text("--task", "The task to play  [one drawn with the seed]", metavar="TASK_ID")
@options.seed("Seed of the draw  [random]")
@click.option("--expert", is_flag=True, help="Show the plan, and what the expert would do next.")
@options.assignments(
    "Further argument of the environment, for example difficulty=tiny.", metavar="A=B"
)
@options.debug
def command(
    env: str,
    data: str | None,
    split: str,
    task: str | None,
    seed: int | None,
    expert: bool,
    assignments: Sequence[str],
) -> None:
    """Play a game in the terminal; commands are also read from a pipe, one a line.

    Tab completes what can be done, `?` lists it, `:quit` or Ctrl-D leaves.
    """
    from proxmo.rollout.environments import make_env

    config = EnvConfig(id=env, split=split, data=data, kwargs=dict(map(assignment, assignments)))
    asked = {"expert_action": True} if expert else {}
    with closing(make_env(config, **asked)) as world:
        _play(world, seed, {} if task is None else {"task_id": task}, expert=expert)


def assignment(text: str) -> tuple[str, Any]:
    """Read `name=value`; a value that is JSON (a number, true, null) means what JSON says."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--set takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _play(world: Any, seed: int | None, choice: dict[str, Any], *, expert: bool) -> None:
    observation, info = world.reset(seed=seed, options=choice)
    click.echo(f"{info['task_id']}: {_LIST} lists commands, {_QUIT} leaves", err=True)
    click.echo(observation)
    if expert and hasattr(world.unwrapped, "plan"):
        try:
            click.echo(f"plan: {', '.join(world.unwrapped.plan())}")
        except ValueError as error:
            click.echo(f"no plan: {error}")
    if sys.stdin.isatty():
        _complete_lines(lambda: [*info["admissible_actions"], _QUIT])
    steps, ended = 0, False
    while not ended:
        if expert:
            click.echo(f"expert: {info.get('expert_action', '-')}")
        line = _read_line()
        if line is None or line == _QUIT:
            break
        if line == _LIST:
            listed = info["admissible_actions"] or ["(the environment lists no commands)"]
            click.echo("\n".join(listed))
            continue
        observation, _, terminated, truncated, info = world.step(line)
        click.echo(observation)
        if "hint" in info:
            click.echo(f"hint: {info['hint']}")
        steps, ended = steps + 1, terminated or truncated
    end = "won" if info["won"] else "over" if ended else "left"
    click.echo(f"{end} after {steps} steps, score {info['score']:g}")


def _read_line() -> str | None:
    """Ask for a command; None at the end of the input."""
    if sys.stdin.isatty():
        try:
            return input("> ")
        except EOFError:
            click.echo()
            return None
    line = sys.stdin.readline()
    if not line:
        return None
    # A pipe shows nothing of what it says, and the answers alone are no transcript.
    click.echo(f"> {line.rstrip()}")
    return line.rstrip("\r\n")


def _complete_lines(choices: Callable[[], list[str]]) -> None:
    """Let the Tab key complete a whole line to one of `choices`."""
    try:
        import readline
    except ImportError:  # Windows has none, and plays without.
        return

    def complete(text: str, state: int) -> str | None:
        fitting = [choice for choice in choices() if choice.startswith(text)]
        return fitting[state] if state < len(fitting) else None

    readline.set_completer_delims("")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
