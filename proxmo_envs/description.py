"""What is known of an environment besides its class: its description, one per environment id.

Gymnasium's registry tells how to make an environment. A description adds what a trainer, an
evaluation or a table wants to know of it: the kinds of tasks, the splits, published panels, the
settings of the embedded model. All of it is optional. A package that registers an environment may
describe it as well; an environment without a description gets one of defaults:

    gymnasium.register(id="Mine-v0", entry_point="mine.env:MineEnv", max_episode_steps=30)
    proxmo_envs.describe(EnvDescription(id="Mine-v0", eval_split="test"))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PublishedPanel:
    """A panel whose tasks come from data that users bring: the first `tasks` of `splits`.

    Attributes:
        splits: where the tasks are from.
        tasks: how many there are.
        needs: the data in words, for the error that asks for it; "" where users bring none.
        variable: environment variable that may name the data; "" where there is none.
        kwargs: arguments of the environment.
        hash: of the panel in the data as it was published; "" where it is not known.
    """

    splits: tuple[str, ...]
    tasks: int
    needs: str = ""
    variable: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""


@dataclass(frozen=True, slots=True)
class PanelFamily:
    """Panels of data that comes with the package: PREFIX[-DIFFICULTY]-TASKS[-seedSEED].

    Attributes:
        data: the argument `data` of the environment; None for one that takes none.
        split: where the tasks are from.
        listed: names that `proxmo panels` lists.
    """

    data: str | None
    split: str
    listed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """How the embedded model is made for an environment, where the defaults do not fit.

    Attributes:
        preset: preset that lies under all other layers while the embedded model is trained: the
            name of one of ours, `package:file.toml` for one beside a package's code, or a path.
        vocabulary: tokens of its tokenizer under that preset; None where nobody counted.
        settings: fields of `proxmo.training.tiny.TinyConfig` that differ from the defaults.
        sources: further packages the environment is made of, besides that of its class; a change
            in one of them makes the model anew.
    """

    preset: str = "tiny"
    vocabulary: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvDescription:
    """What is known of an environment.

    Attributes:
        id: as registered with Gymnasium.
        splits: names of the splits; empty where the environment has none.
        eval_split: split of an evaluation that names none.
        default_data: value of the argument `data` that None means on a machine without data.
        max_prompt_tokens: token budget of the prompt of one step with its history.
        examples: file of worked episodes for ReAct and Reflexion, next to the package's code, as
            "package:file"; "" where there is none.
        task_types: columns of a results table, label to `info["task_type"]`.
        success_label: column of the success rate in a results table.
        score_label: column of the mean score; "" where the score says nothing more than success.
        panels: published panels by name.
        panel_families: generated panels by prefix.
        embedded: how the embedded model is made.
    """

    id: str
    splits: tuple[str, ...] = ()
    eval_split: str = "valid_unseen"
    default_data: str | None = None
    max_prompt_tokens: int = 2048
    examples: str = ""
    task_types: Mapping[str, str] = field(default_factory=dict)
    success_label: str = "Success"
    score_label: str = "Score"
    panels: Mapping[str, PublishedPanel] = field(default_factory=dict)
    panel_families: Mapping[str, PanelFamily] = field(default_factory=dict)
    embedded: EmbeddedModel = EmbeddedModel()


_DESCRIPTIONS: dict[str, EnvDescription] = {}


def describe(description: EnvDescription) -> None:
    """Add the description of an environment, or replace the one it has."""
    _DESCRIPTIONS[description.id] = description


def description_of(env_id: str) -> EnvDescription:
    """Return the description of an environment, one of defaults where nobody described it.

    Args:
        env_id: an id with or without the module that registers it ("mine:Mine-v0"); a module is not
            imported here.
    """
    name = env_id.rpartition(":")[2]
    return _DESCRIPTIONS.get(name) or EnvDescription(id=name)


def descriptions() -> list[EnvDescription]:
    """Return all descriptions, in the order they were added."""
    return list(_DESCRIPTIONS.values())
