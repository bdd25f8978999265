"""`proxmo panels`: the fixed lists of tasks that evaluations are compared on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proxmo.errors import ProxmoError, UsageError

from . import options
from .display import show_json, show_table

# Options whose parameter has another name, and the values of options that are not given.
_FLAGS = {"splits": "--split", "assignments": "--set"}
_NONE = (None, ())


@click.command("panels")
@click.argument("panel", required=False)
@options.path("--new", "Write a new panel.", metavar="FILE")
@options.env("List the panels of this environment; with --new the environment of the panel")
@options.text(
    "--split",
    "Split of the new panel, several for their union  [the environment's for evaluation]",
    name="splits",
    metavar="S",
    multiple=True,
)
@options.data("Where the tasks come from.")
@options.count("--episodes", "Tasks of the new panel  [all]")
@options.seed("Seed of the choice  [0]")
@options.text("--name", "What the new panel is called  [as its file]", metavar="NAME")
@options.assignments(
    "Environment of the new panel, for example env.kwargs.difficulty=tiny, env.max_steps=20."
)
@options.as_json("Print as JSON.")
@options.debug
def command(
    panel: str | None,
    new: Path | None,
    env: str | None,
    data: str | None,
    as_json: bool,
    **choice: Any,
) -> None:
    """List the built-in panels, print the tasks of PANEL (a name or a file), or write a --new one.

    A panel names each of its tasks once, with the hash of what the task is. Built-in panels of
    generated games may have any size, difficulty and seed: alfworld-generated-400,
    alfworld-generated-tiny-96, alfworld-generated-200-seed3.
    """
    if new is not None:
        if panel is not None:
            raise UsageError(f"--new {new} makes a panel; leave {panel} out")
        _write(new, env, data, **choice)
        return
    given = [_FLAGS.get(name, f"--{name}") for name, value in choice.items() if value not in _NONE]
    if given:
        raise UsageError(f"{', '.join(given)} describes a new panel: give --new FILE as well")
    if panel is None:
        _list(env, data, as_json=as_json)
        return
    from proxmo.evaluation.panels import dump_panel, open_panel

    opened = open_panel(panel, data)
    if as_json:
        show_json({"name": opened.name, "hash": opened.hash, "tasks": dict(opened.tasks)})
    else:
        click.echo(dump_panel(opened), nl=False)


def _write(
    path: Path,
    env: str | None,
    data: str | None,
    *,
    splits: tuple[str, ...],
    episodes: int | None,
    seed: int | None,
    name: str | None,
    assignments: tuple[str, ...],
) -> None:
    from proxmo.config import Config
    from proxmo.config_loading import resolve
    from proxmo.evaluation.panels import make_panel, write_panel
    from proxmo.rollout.environments import make_env
    from proxmo_envs import description_of

    if path.exists():
        raise UsageError(f"--new {path} exists; a panel is not changed, choose another name")
    if any(not text.startswith("env.") for text in assignments):
        raise UsageError(f"--set {' '.join(assignments)}: a panel has keys of env only")
    flags = {"env.id": env, "env.data": data}
    world = resolve((), flags, assignments, base=Config()).env
    made = make_panel(
        world,
        splits or (description_of(world.id).eval_split,),
        name=name or path.stem,
        episodes=episodes,
        seed=seed or 0,
    )
    if episodes is not None and len(made.tasks) < episodes:
        raise UsageError(
            f"--episodes {episodes}: {made.split} holds {len(made.tasks)} tasks; leave it out "
            "to take all of them"
        )
    # What nobody can play is no panel.
    make_env(made.env).close()
    write_panel(made, path)
    click.echo(f"{path}: panel {made.name}, {len(made.tasks)} tasks, sha256 {made.hash}")


def _list(env: str | None, data: str | None, *, as_json: bool) -> None:
    from proxmo.evaluation.panels import listed_panels, named_panels, open_panel
    from proxmo_envs import ProxmoEnvError

    rows: list[dict[str, Any]] = []
    fits, problem = False, None
    published = named_panels()
    for name in listed_panels(env):
        short = name.rpartition(":")[2]
        try:
            opened = open_panel(name, data if short in published else None)
            fits = fits or short in published
            about: tuple[Any, ...] = (opened.env.id, opened.split, len(opened.tasks), opened.hash)
            note = ""
        except (ProxmoError, ProxmoEnvError) as missing:
            # The data that is named fits the panels of one environment.
            (description, known), problem = published[short], problem or missing
            about = (description.id, "+".join(known.splits), known.tasks, "")
            note = f"needs {known.needs}"
        keys = ("name", "env", "split", "tasks", "hash", "note")
        rows.append(dict(zip(keys, (name, *about, note), strict=True)))
    if data is not None and not fits and problem is not None:
        raise problem
    if as_json:
        show_json(rows)
        return
    headings = ("panel", "environment", "split", "tasks", "sha256")
    cells = [
        (one["name"], one["env"], one["split"], str(one["tasks"]), one["hash"] or one["note"])
        for one in rows
    ]
    show_table(headings, cells, words=3)
