"""An ALFWorld game as data: the furniture, the items, and the goal; and reading official files.

The engine (`world.py`) plays a `Game`, whether it comes from an official game file or from the
generator. A `Game` is immutable, so any number of environments and threads can share it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from proxmo_envs.errors import GameFileError, quote

Grammar = Literal["move", "put"]
TaskType = Literal[
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
]


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A piece of furniture or an appliance.

    `id` is the lower-cased PDDL id, `kind` the lower-cased type (`cabinet`).
    """

    id: str
    kind: str
    location: str
    openable: bool = False
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """Everything but furniture: things to take, lamps, and scenery, which only has a number.

    `flags` holds those of `ITEM_FLAGS` that are true at the start. `receptacles` are the ids of the
    receptacles it lies in (usually one, possibly none or two); `contents` the ids of the items in
    it.
    """

    id: str
    kind: str
    location: str | None = None
    receptacles: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HouseholdGoal:
    """The kinds of things that win the game.

    `receptacle_kind` is None for look_at_obj_in_light, `lamp_kind` for all other types.
    """

    task_type: TaskType
    item_kind: str
    receptacle_kind: str | None = None
    lamp_kind: str | None = None


@dataclass(frozen=True, slots=True)
class Game:
    """A game; `task` is the sentence after "Your task is to: ", with its full stop."""

    task_id: str
    task: str
    goal: HouseholdGoal
    start_location: str
    receptacles: tuple[Receptacle, ...]
    items: tuple[Item, ...]
    can_contain: frozenset[tuple[str, str]]
    grammar: Grammar = "move"
    split: str = "train"
    walkthrough: tuple[str, ...] = field(default=(), compare=False)


GAME_FILE = "game.tw-pddl"
TASK_TYPES: tuple[TaskType, ...] = get_args(TaskType)
# The one sentence of the grammar that differs from game to game.
_TASK = re.compile(r"Your task is to: ([^\"\\\n]+)")
# The command of json_2.1.1 that puts things down.
_PUT_TEMPLATE = "put {o} in/on {r}"

# The true (subject, object) pairs of each predicate; object may be empty.
Facts = dict[str, list[tuple[str, str]]]
# (predicate subject [object]). The inner part of a cost, `(= (distance a b) 3)`, matches, too.
_FACT = re.compile(r"\(\s*(\w+)\s+([^()\s]+)(?:\s+([^()\s]+))?\s*\)")
_COMMENT = re.compile(r";[^\n]*")
# PDDL predicates of an item, in lower case.
ITEM_FLAGS = (
    "pickupable",
    "cleanable",
    "heatable",
    "coolable",
    "toggleable",
    "sliceable",
    "isreceptacleobject",
    "ishot",
    "iscool",
    "isclean",
    "issliced",
    "istoggled",
)


@dataclass(frozen=True, slots=True)
class GameTexts:
    """The texts of a game file, before its problem is parsed."""

    problem: str
    task: str
    grammar: Grammar
    walkthrough: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        """Hash of the content; equal for the official file of a game and its packed form."""
        content = f"{self.grammar}\n{self.task}\n{self.problem.strip()}"
        return hashlib.sha256(content.encode()).hexdigest()


def read_problem(texts: GameTexts, *, task_id: str, split: str) -> Game:
    """Read the PDDL problem of an official game.

    Like the original we lower-case everything, as PDDL is case-insensitive. Raises GameFileError
    for any other text.
    """
    try:
        f"{task_id}{texts.task}{texts.problem}".encode()
    except UnicodeEncodeError as error:
        # JSON can hold half a character, which we cannot hash, pack or print.
        raise GameFileError(f"{quote(ascii(task_id))}: not text: {error.reason}") from error
    lines = _COMMENT.sub("", texts.problem.lower())
    start, end = lines.find("(:init"), lines.find("(:goal")
    if not 0 <= start < end:
        raise GameFileError(
            f"{task_id}: not an ALFWorld problem: no (:init ...) followed by (:goal ...)"
        )
    facts: Facts = defaultdict(list)
    for predicate, subject, other in _FACT.findall(lines, start, end):
        facts[predicate].append((subject, other))
    try:
        return Game(
            task_id=task_id,
            task=texts.task,
            goal=_read_goal(lines[end:]),
            start_location=_first(facts, "atlocation")[1],
            receptacles=_read_receptacles(facts),
            items=_read_items(facts),
            can_contain=frozenset((_kind(r), _kind(i)) for r, i in facts["cancontain"]),
            grammar=texts.grammar,
            split=split,
            walkthrough=texts.walkthrough,
        )
    except KeyError as error:
        raise GameFileError(f"{task_id}: the problem is incomplete: no fact {error}") from error


def _kind(type_name: str) -> str:
    return type_name.removesuffix("type")


def _read_receptacles(facts: Facts) -> tuple[Receptacle, ...]:
    location = dict(facts["receptacleatlocation"])
    openable = {subject for subject, _ in facts["openable"]}
    opened = {subject for subject, _ in facts["opened"]}
    return tuple(
        Receptacle(name, _kind(kind), location[name], name in openable, name in opened)
        for name, kind in sorted(facts["receptacletype"])
    )


def _read_items(facts: Facts) -> tuple[Item, ...]:
    location = dict(facts["objectatlocation"])
    known, furniture = dict(facts["objecttype"]), dict(facts["receptacletype"])
    receptacles, contents, flags = defaultdict(set), defaultdict(set), defaultdict(set)
    for item, receptacle in facts["inreceptacle"]:
        if receptacle not in furniture:
            raise KeyError(f"receptacletype {receptacle}")
        receptacles[item].add(receptacle)
    for inner, outer in facts["inreceptacleobject"]:
        if inner not in known:
            raise KeyError(f"objecttype {inner}")
        contents[outer].add(inner)
    for flag in ITEM_FLAGS:
        for item, _ in facts[flag]:
            flags[item].add(flag)
    return tuple(
        Item(
            id=item,
            kind=_kind(kind),
            location=location.get(item),
            receptacles=tuple(sorted(receptacles[item])),
            contents=tuple(sorted(contents[item])),
            flags=frozenset(flags[item]),
        )
        for item, kind in sorted(facts["objecttype"])
    )


def _read_goal(goal: str) -> HouseholdGoal:
    """Derive the task type from the predicates of the goal."""
    required: Facts = defaultdict(list)
    for predicate, subject, other in _FACT.findall(goal):
        required[predicate].append((subject, other))
    kind_of = {thing: _kind(kind) for thing, kind in required["objecttype"]}
    if "istoggled" in required:
        lamp, held = _first(required, "istoggled")[0], _first(required, "holds")[1]
        return HouseholdGoal("look_at_obj_in_light", kind_of[held], lamp_kind=kind_of[lamp])
    item = kind_of[_first(required, "objecttype")[0]]
    furniture = _kind(_first(required, "receptacletype")[1])
    task_type = "pick_two_obj_and_place" if len(kind_of) > 1 else "pick_and_place_simple"
    for verb, state in (("clean", "isclean"), ("heat", "ishot"), ("cool", "iscool")):
        if state in required:
            task_type = f"pick_{verb}_then_place_in_recep"
    return HouseholdGoal(cast(TaskType, task_type), item, furniture)


def _first(facts: Facts, predicate: str) -> tuple[str, str]:
    if not facts[predicate]:
        raise KeyError(predicate)
    return facts[predicate][0]


def read_game_file(path: Path, *, task_id: str, split: str) -> tuple[Game, str]:
    """Read an official game file; return the game and its content hash.

    Raises GameFileError when the file cannot be read as a game.
    """
    texts = read_texts(path)
    try:
        return read_problem(texts, task_id=task_id, split=split), texts.content_hash
    except GameFileError as error:
        raise GameFileError(f"{path}: {error}") from error


def read_texts(path: Path) -> GameTexts:
    """Read the texts of a game file; raises GameFileError when one is missing."""
    content = _load(path)
    grammar = content["grammar"]
    task = _TASK.search(grammar)
    if task is None:
        raise GameFileError(f"{path}: the grammar has no sentence 'Your task is to: ...'")
    walkthrough = content.get("walkthrough")
    return GameTexts(
        problem=content["pddl_problem"],
        task=task[1],
        grammar="put" if _PUT_TEMPLATE in grammar else "move",
        walkthrough=tuple(map(str, walkthrough)) if isinstance(walkthrough, list) else (),
    )


def _load(path: Path) -> dict[str, Any]:
    """Load the JSON object of a game file and check that it has the texts of a game."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise GameFileError(
            f"{path}: the game file cannot be read: {error.strerror or error}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise GameFileError(f"{path}: not a game file (JSON): {error}") from error
    if not isinstance(content, dict):
        raise GameFileError(f"{path}: not a game file: a JSON object was expected")
    for key in ("pddl_problem", "grammar"):
        if not isinstance(content.get(key), str):
            raise GameFileError(f"{path}: not a game file: the text {key!r} is missing")
    return content
