"""Panels: named, ordered, hashed lists of tasks, the same for everyone who evaluates.

A panel holds each task once, with the hash of what the task is. Which tasks these are follows from
their ids alone: not from workers, the file system, or the seeds of an evaluation.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import tomli_w

import proxmo_envs
from proxmo.config import EnvConfig
from proxmo.config_loading import from_table
from proxmo.errors import DataError, UnknownNameError, UsageError
from proxmo.files import replace_text
from proxmo_envs.creators import creator_of, import_module_of
from proxmo_envs.description import EnvDescription, PublishedPanel, description_of, descriptions
from proxmo_envs.errors import InvalidOptionError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

logger = logging.getLogger(__name__)

# How many tasks an error names.
_NAMED = 5
_KEYS = ("name", "hash", "splits", "env", "tasks")
# What follows the prefix of a panel of generated tasks.
_GENERATED = r"(-(?P<difficulty>[a-z]+))?-(?P<episodes>\d+)(-seed(?P<seed>\d+))?"


@dataclass(frozen=True, slots=True)
class Panel:
    """Tasks to evaluate on.

    `env` is the environment that plays them, `splits` are the splits they come from, and `tasks`
    maps their ids, in order, to the hashes of their contents.
    """

    name: str
    env: EnvConfig
    splits: tuple[str, ...]
    tasks: Mapping[str, str]

    @property
    def hash(self) -> str:
        """SHA-256 of environment, step limit, options, ids and contents.

        Where the data or the server is makes no difference, nor does a step limit that is the
        environment's own.
        """
        head = self.env.id.rpartition(":")[2]
        spec = gymnasium.registry.get(head)
        options = {key: v for key, v in self.env.kwargs.items() if key != "base_url"}
        limit = options.pop("max_episode_steps", None)
        limit = limit if self.env.max_steps is None else self.env.max_steps
        if limit is not None and (spec is None or limit != spec.max_episode_steps):
            head += f" {limit} steps"
        if options:
            head += f" {json.dumps(options, sort_keys=True, default=str)}"
        lines = [f"{head}\n"]
        lines += [f"{task_id} {content}\n" for task_id, content in self.tasks.items()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def split(self) -> str:
        """The splits in one word."""
        return "+".join(self.splits)


def make_panel(
    env: EnvConfig,
    splits: Sequence[str] = (),
    *,
    name: str | None = None,
    episodes: int | None = None,
    seed: int = 0,
) -> Panel:
    """Chooses tasks of an environment.

    Args:
        env: the environment and its data.
        splits: the splits to choose from; empty takes that of `env`.
        name: of the panel; None makes one of environment, splits and size.
        episodes: that many tasks, the first of a fixed shuffle, so that a smaller panel lies in
            every larger one; None takes all.
        seed: of that shuffle.

    Raises:
        UsageError: fewer than one task is asked for.
        ProxmoEnvError: the environment has no such split or data.
    """
    splits = tuple(dict.fromkeys(splits)) or (env.split,)
    env = dataclasses.replace(env, split=splits[0])
    sets = [_task_set(env, split) for split in splits]
    if env.data is None:
        # The default data depends on the machine.
        env = dataclasses.replace(env, data=sets[0].data)
    where = [(one, index) for one in sets for index in range(len(one))]
    if episodes is not None and episodes < 1:
        raise UsageError(f"episodes is {episodes}; expected at least 1")
    if episodes is not None and episodes < len(where):
        chosen = np.random.default_rng(seed).permutation(len(where))[:episodes]
        where = [where[i] for i in sorted(chosen)]
    tasks = {one.ids[index]: one[index].content_hash for one, index in where}
    name = name or f"{env.id.rpartition(':')[2]}/{'+'.join(splits)}/{len(tasks)}"
    return Panel(name, env, splits, tasks)


def open_panel(name: str, data: str | None = None) -> Panel:
    """Opens a built-in panel by name, or a panel file, and checks it against the data.

    Args:
        name: such as "alfworld-valid-unseen" (see `listed_panels`), MODULE:NAME for one that a
            module of your own describes, or the path of a TOML file.
        data: where the tasks come from, in the place of what the panel says.

    Raises:
        UnknownNameError: there is no such panel.
        UsageError: the panel needs data that was not named, or other data than what was.
        DataError: the file is no panel, or the data does not hold these tasks; they are named.
        ProxmoEnvError: the environment has no such split or data.
    """
    if name.endswith(".toml") or Path(name).is_file():
        return _read_panel(Path(name), data)
    module = name.rpartition(":")[0]
    try:
        short = import_module_of(name, "panel")
    except InvalidOptionError as cause:
        raise UsageError(str(cause)) from cause
    if (generated := _generated_panel(module, short, data)) is not None:
        return generated
    if short not in (published := named_panels()):
        raise UnknownNameError("panel", name, listed_panels())
    description, known = published[short]
    if known.needs and data is None and not os.environ.get(known.variable):
        where = "--data PATH" + (f" or ${known.variable}" if known.variable else "")
        raise UsageError(f"the panel {name} needs {known.needs}: name it with {where}")
    if data is not None and data in {
        f.data for one in descriptions() for f in one.panel_families.values()
    }:
        raise UsageError(f"the panel {name} needs {known.needs}, which --data {data} is not")
    env = EnvConfig(id=_full_id(module, description), data=data, kwargs=dict(known.kwargs))
    panel = make_panel(env, known.splits, name=short, episodes=known.tasks)
    if known.hash not in ("", _complete(panel, known.tasks).hash):
        logger.warning(
            "the tasks of %s are not those of the published data: sha256 %s, expected %s",
            name,
            panel.hash,
            known.hash,
        )
    return panel


def _complete(panel: Panel, size: int) -> Panel:
    if len(panel.tasks) != size:
        raise DataError(
            f"the panel {panel.name} has {size} tasks, but the data holds {len(panel.tasks)} of "
            "them; `proxmo panels --new FILE` makes a panel of what is there"
        )
    return panel


def write_panel(panel: Panel, path: Path) -> None:
    """Writes a panel as TOML that `open_panel` reads; a path of data is left out of it.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        replace_text(path, dump_panel(panel))
    except OSError as cause:
        raise DataError(f"cannot write the panel {path}: {cause}") from cause


def dump_panel(panel: Panel) -> str:
    """Returns a panel as TOML."""
    env = {k: v for k, v in dataclasses.asdict(panel.env).items() if v not in (None, {})}
    del env["split"]
    if panel.env.data is not None and Path(panel.env.data).expanduser().exists():
        del env["data"]
    head: dict[str, Any] = {"name": panel.name, "hash": panel.hash, "splits": list(panel.splits)}
    return tomli_w.dumps({**head, "env": env, "tasks": dict(panel.tasks)})


def _read_panel(path: Path, data: str | None) -> Panel:
    """Reads a panel file; `tasks` maps ids to content hashes, or merely lists ids."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise DataError(f"cannot read the panel {path}: {cause}") from cause
    if strange := sorted(set(table) - {*_KEYS}):
        raise DataError(f"{path} has an unknown key {strange[0]!r}; known: {', '.join(_KEYS)}")
    splits, env = table.get("splits"), table.get("env", {})
    tasks = _known_contents(path, table.get("tasks"))
    if not (tasks and _are_texts(splits) and isinstance(env, dict)):
        raise DataError(
            f"{path} is no panel: expected `splits`, a list of names, `tasks`, a table of task ids "
            "with the hashes of their contents or a list of ids, each once, and perhaps a table "
            "`env`"
        )
    env = from_table({"env": {**env, "split": splits[0]}}).env
    if data is not None:
        env = dataclasses.replace(env, data=data)
    found = {}
    for one in (_task_set(env, split) for split in splits):
        wanted = [index for index, task_id in enumerate(one.ids) if task_id in tasks]
        found.update({one.ids[index]: one[index].content_hash for index in wanted})
    name = str(table.get("name", path.stem))
    _check_contents(f"the panel {name} ({path})", tasks, found)
    panel = Panel(name, env, tuple(splits), {task_id: found[task_id] for task_id in tasks})
    if table.get("hash", panel.hash) != panel.hash:
        raise DataError(
            f"{path} says its hash is {table['hash']}, but its tasks and their order give "
            f"{panel.hash}: it was edited; leave the line `hash` out to make it a panel of its own"
        )
    return panel


def _known_contents(path: Path, tasks: Any) -> dict[str, str]:
    """The tasks of a file with the hashes that it knows, "" for others; {} where it holds none."""
    if isinstance(tasks, dict) and _are_texts([*tasks.values()]):
        return tasks
    if not _are_texts(tasks):
        return {}
    if twice := [task_id for task_id, number in Counter(tasks).items() if number > 1]:
        raise DataError(f"{path} lists tasks twice: {_named(twice)}; a panel has each once")
    return dict.fromkeys(tasks, "")


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and values != [] and all(isinstance(v, str) for v in values)


def _check_contents(what: str, wanted: Mapping[str, str], found: Mapping[str, str]) -> None:
    missing = [task_id for task_id in wanted if task_id not in found]
    changed = [t for t, content in wanted.items() if t in found and content not in ("", found[t])]
    for tasks, problem in ((missing, "are not in the data"), (changed, "have another content")):
        if tasks:
            raise DataError(
                f"{what} does not fit: {len(tasks)} of its {len(wanted)} tasks {problem} "
                f"({_named(tasks)}); give the data it was made from with --data"
            )


def _named(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:_NAMED]) + (", ..." if len(tasks) > _NAMED else "")


def _task_set(env: EnvConfig, split: str) -> proxmo_envs.TaskSet:
    return proxmo_envs.task_set(env.id, split, env.data, **env.kwargs)


def named_panels() -> dict[str, tuple[EnvDescription, PublishedPanel]]:
    """The published panels of all described environments, by name."""
    return {
        name: (description, panel)
        for description in descriptions()
        for name, panel in description.panels.items()
    }


def listed_panels(env_id: str | None = None) -> list[str]:
    """The names of published panels, and of examples of the generated ones.

    Args:
        env_id: list those of this environment, as `open_panel` takes them: with the module that
            registers it, which is imported; None lists those of every environment.
    """
    if env_id is None:
        chosen, prefix = descriptions(), ""
    else:
        creator_of(env_id)
        chosen = [description_of(env_id)]
        prefix = env_id[: env_id.rfind(":") + 1]
    published = [name for one in chosen for name in one.panels]
    families = [family for one in chosen for family in one.panel_families.values()]
    return [prefix + name for name in (*published, *(n for f in families for n in f.listed))]


def _full_id(module: str, description: EnvDescription) -> str:
    return f"{module}:{description.id}" if module else description.id


def _generated_panel(module: str, name: str, data: str | None) -> Panel | None:
    """Opens a panel of tasks without end; their number, difficulty and seed are in its name."""
    for description in descriptions():
        for prefix, family in description.panel_families.items():
            found = re.fullmatch(re.escape(prefix) + _GENERATED, name)
            if found is None:
                continue
            if data not in (None, family.data):
                raise UsageError(
                    f"the panel {name} is of {family.data or 'built-in'} tasks, which need no "
                    f"data: leave --data {data} out"
                )
            kwargs = {"difficulty": found["difficulty"]} if found["difficulty"] else {}
            env = EnvConfig(_full_id(module, description), family.data, kwargs=kwargs)
            size, seed = int(found["episodes"]), int(found["seed"] or 0)
            made = make_panel(env, [family.split], name=name, episodes=size, seed=seed)
            return _complete(made, size)
    return None
