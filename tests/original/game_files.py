"""Writes games as official game files, which the original engine plays, too.

That engine plays a game from three texts: PDDL domain, PDDL problem and text grammar. Domain and
grammar are our own wording of the rules in `world.py` and of the sentences in `text.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Final

from proxmo_envs.alfworld import text
from proxmo_envs.alfworld.games import GAME_FILE, ITEM_FLAGS, Game, Grammar, HouseholdGoal

_PREDICATES: Final = """
  (atLocation ?a - agent ?l - location) (receptacleAtLocation ?r - receptacle ?l - location)
  (objectAtLocation ?o - object ?l - location) (receptacleType ?r - receptacle ?t - rtype)
  (objectType ?o - object ?t - otype) (canContain ?rt - rtype ?ot - otype)
  (openable ?r - receptacle) (opened ?r - receptacle) (inReceptacle ?o - object ?r - receptacle)
  (inReceptacleObject ?inner - object ?outer - object) (holds ?a - agent ?o - object)
  (holdsAny ?a - agent) (noticed ?thing)"""

_HERE: Final = "(atLocation ?a ?l) (receptacleAtLocation ?r ?l)"
_ACCESSIBLE: Final = "(or (not (openable ?r)) (opened ?r))"
_ARH: Final = "?a - agent ?r - receptacle ?l - location"
# The planner drops what has no effect, so whoever only looks notices something.
_LOOKING: Final = "(noticed ?a)"

# name -> parameters, precondition, effect
_ACTIONS: Final[dict[str, tuple[str, str, str]]] = {
    "look": ("?a - agent ?l - location", "(atLocation ?a ?l)", "(noticed ?l)"),
    "inventory": ("?a - agent", "", _LOOKING),
    "help": ("?a - agent", "", _LOOKING),
    "inspect": (_ARH, _HERE, "(noticed ?r)"),
    "examine": ("?a - agent ?o - object", "(holds ?a ?o)", "(noticed ?o)"),
    "go": (
        "?a - agent ?from - location ?r - receptacle ?l - location",
        "(atLocation ?a ?from) (receptacleAtLocation ?r ?l) (not (= ?from ?l))",
        "(not (atLocation ?a ?from)) (atLocation ?a ?l)",
    ),
    "open": (_ARH, f"{_HERE} (openable ?r) (not (opened ?r))", "(opened ?r)"),
    "close": (_ARH, f"{_HERE} (openable ?r) (opened ?r)", "(not (opened ?r))"),
    "take": (
        f"{_ARH} ?o - object",
        f"{_HERE} {_ACCESSIBLE} (pickupable ?o) (inReceptacle ?o ?r) (not (holdsAny ?a))",
        "(holds ?a ?o) (holdsAny ?a) (not (inReceptacle ?o ?r)) (not (objectAtLocation ?o ?l))",
    ),
    "place": (
        f"{_ARH} ?o - object ?rt - rtype ?ot - otype",
        f"{_HERE} {_ACCESSIBLE} (holds ?a ?o) (receptacleType ?r ?rt) (objectType ?o ?ot) "
        "(canContain ?rt ?ot)",
        "(inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a))",
    ),
    "use": (
        f"{_ARH} ?o - object",
        f"{_HERE} (toggleable ?o) (inReceptacle ?o ?r)",
        "(isToggled ?o) (noticed ?r)",
    ),
    "slice": (
        "?a - agent ?l - location ?o - object ?k - object",
        "(atLocation ?a ?l) (objectAtLocation ?o ?l) (sliceable ?o) (holds ?a ?k) "
        "(or (objectType ?k KnifeType) (objectType ?k ButterknifeType))",
        "(isSliced ?o) (noticed ?o)",
    ),
    **{
        verb: (
            f"{_ARH} ?o - object",
            f"{_HERE} (holds ?a ?o) ({verb}able ?o) (receptacleType ?r {appliance}Type)",
            f"{effect} (noticed ?o)",
        )
        for verb, appliance, effect in (
            ("clean", "Sinkbasin", "(isClean ?o)"),
            ("heat", "Microwave", "(isHot ?o) (not (isCool ?o))"),
            ("cool", "Fridge", "(isCool ?o) (not (isHot ?o))"),
        )
    },
}
_STATES: Final = {"clean": "isClean", "heat": "isHot", "cool": "isCool"}


def domain_text(grammar: Grammar = "move") -> str:
    """Return the PDDL domain: every rule of the world."""
    commands = _commands(grammar)
    flags = "\n  ".join(f"({flag} ?o - object)" for flag in ITEM_FLAGS)
    actions = "\n".join(
        f"(:action {name}\n :parameters ({parameters})\n :precondition (and {condition})\n"
        f" :effect (and {effect} (increase (total-cost) 1)))"
        for name, (parameters, condition, effect) in _ACTIONS.items()
        if name in commands
    )
    return (
        "(define (domain alfred)\n(:requirements :adl :action-costs :typing)\n"
        "(:types agent location receptacle object rtype otype)\n"
        f"(:predicates{_PREDICATES}\n  {flags})\n(:functions (total-cost) - number)\n{actions}\n)\n"
    )


def _type(kind: str) -> str:
    """Write a kind as a PDDL type; upper and lower case do not differ there."""
    return f"{kind.capitalize()}Type"


def problem_text(game: Game) -> str:
    """Return the PDDL problem: what there is, what is true at the start, what wins."""
    rtypes = {f"{_type(r.kind)}" for r in game.receptacles}
    otypes = {f"{_type(i.kind)}" for i in game.items}
    rtypes |= {f"{_type(r)}" for r, _ in game.can_contain}
    otypes |= {f"{_type(i)}" for _, i in game.can_contain} | {"KnifeType", "ButterknifeType"}
    # The domain names these, whether the room has them or not.
    rtypes |= {"SinkbasinType", "MicrowaveType", "FridgeType"}
    goal = game.goal
    rtypes |= {f"{_type(goal.receptacle_kind)}"} if goal.receptacle_kind else set()
    otypes |= {f"{_type(kind)}" for kind in (goal.item_kind, goal.lamp_kind) if kind}
    places = {game.start_location, *(r.location for r in game.receptacles)}
    places |= {i.location for i in game.items if i.location is not None}
    declared = {
        "rtype": rtypes,
        "otype": otypes,
        "location": places,
        "receptacle": [r.id for r in game.receptacles],
        "object": [i.id for i in game.items],
    }
    objects = "\n  ".join(
        f"{name} - {kind}" for kind in declared for name in sorted(declared[kind])
    )
    facts = "\n  ".join(_facts(game))
    return (
        "(define (problem game)\n(:domain alfred)\n"
        f"(:objects\n  agent1 - agent\n  {objects})\n"
        f"(:init\n  (= (total-cost) 0)\n  {facts})\n"
        f"(:goal {_goal(game.goal)})\n(:metric minimize (total-cost)))\n"
    )


def _facts(game: Game) -> Iterable[str]:
    yield f"(atLocation agent1 {game.start_location})"
    for r in game.receptacles:
        yield f"(receptacleType {r.id} {_type(r.kind)})"
        yield f"(receptacleAtLocation {r.id} {r.location})"
        yield from [f"(openable {r.id})"] * r.openable + [f"(opened {r.id})"] * r.opened
    for i in game.items:
        yield f"(objectType {i.id} {_type(i.kind)})"
        yield from [f"(objectAtLocation {i.id} {i.location})"] * (i.location is not None)
        yield from (f"(inReceptacle {i.id} {r})" for r in i.receptacles)
        yield from (f"(inReceptacleObject {inner} {i.id})" for inner in i.contents)
        yield from (f"({flag} {i.id})" for flag in ITEM_FLAGS if flag in i.flags)
    for furniture, thing in sorted(game.can_contain):
        yield f"(canContain {_type(furniture)} {_type(thing)})"


def _goal(goal: HouseholdGoal) -> str:
    thing = f"(objectType ?o {_type(goal.item_kind)})"
    if goal.lamp_kind is not None:
        return (
            "(and (exists (?lamp - object ?r - receptacle ?a - agent ?l - location) (and "
            f"(objectType ?lamp {_type(goal.lamp_kind)}) (toggleable ?lamp) (isToggled ?lamp) "
            f"(inReceptacle ?lamp ?r) {_HERE}))\n"
            f" (exists (?o - object ?a - agent) (and {thing} (holds ?a ?o))))"
        )
    placed = f"{thing} (receptacleType ?r {_type(goal.receptacle_kind or '')}) (inReceptacle ?o ?r)"
    if goal.task_type == "pick_two_obj_and_place":
        return (
            "(exists (?r - receptacle ?o - object ?o2 - object) (and (not (= ?o ?o2)) "
            f"{placed} {thing.replace('?o', '?o2')} (inReceptacle ?o2 ?r)))"
        )
    for verb, state in _STATES.items():
        if goal.task_type == f"pick_{verb}_then_place_in_recep":
            placed += f" ({verb}able ?o) ({state} ?o)"
    return f"(exists (?r - receptacle ?o - object) (and {placed}))"


def _list(thing: str, condition: str) -> str:
    return f"[{{{thing}.indefinite + ' ' + {thing}.name | {condition}}}]"


_IN_IT: Final = _list("o", "inreceptacle(o:object, r:receptacle)")
_INSIDE: Final = _list("o2", "inreceptacleobject(o2:object, o:object)")
_AT_PLACE: Final = (
    "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
)
_BESIDE: Final = (
    "atlocation(a:agent, l:location) & objectatlocation(o:object, l:location) & "
    "receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)"
)

Rules = dict[str, list[tuple[str, str]]]


def _rules(task: str) -> Rules:
    """Return the sentences by name, each a list of (condition, words): the first that fits."""
    return {
        "intro": [("", text.welcome("#look.feedback#", task))],
        "look.feedback": [
            (_AT_PLACE, f"You are facing the [{{r.name | {_AT_PLACE}}}]. #beside#"),
            ("", f"{text.MIDDLE_OF_ROOM.removesuffix('nothing.')}#room#."),
        ],
        "beside": [
            (_BESIDE, f"Next to it, you see {_list('o', _BESIDE)}."),
            ("", "Next to it, you see nothing."),
        ],
        "room": [
            (
                "receptacleatlocation(r:receptacle, l:location)",
                _list("r", "receptacleatlocation(r:receptacle, l:location)"),
            ),
            ("", "nothing"),
        ],
        "inside": [
            (
                "openable(r:receptacle) & opened(r:receptacle)",
                f"The {{r.name}} is open. In it, you see {_IN_IT}.",
            ),
            ("openable(r:receptacle)", "The {r.name} is closed."),
            ("", f"On the {{r.name}}, you see {_IN_IT}."),
        ],
        "hands": [
            ("holdsany(a:agent)", f"You are carrying: {_list('o', 'holds(a:agent, o:object)')}."),
            ("", text.EMPTY_HANDED),
        ],
        "state": [
            (
                "isreceptacleobject(o:object)",
                f"This is a normal {{o.name}}. In it, you see {_INSIDE}.",
            ),
            *_states(),
        ],
        "list_empty": [("", "nothing")],
        "list_separator": [("", ", ")],
        "list_last_separator": [("", ", and ")],
    }


def _states() -> Iterable[tuple[str, str]]:
    """Yield what `examine` says of an item in each of its states, the most special first."""
    for sliced, clean, heat in product((True, False), (True, False), ("hot", "cool", "")):
        states = {"issliced": sliced, "isclean": clean, f"is{heat}": bool(heat)}
        condition = " & ".join(f"{name}(o:object)" for name, holds in states.items() if holds)
        yield (
            condition,
            text.item_state(
                "{o.name}", hot=heat == "hot", cool=heat == "cool", clean=clean, sliced=sliced
            ),
        )


def _commands(grammar: Grammar) -> dict[str, tuple[str, str]]:
    """Return of each action how it is commanded and what is answered."""
    new = grammar == "move"
    commands = {
        "look": ("look", "#look.feedback#"),
        "inventory": ("inventory", "#hands#"),
        "inspect": ("examine {r}", "#inside#"),
        "examine": ("examine {o}", "#state#"),
        "go": ("go to {r}", f"You arrive at {{{'r' if new else 'l'}.name}}. #inside#"),
        "open": ("open {r}", "You open the {r.name}. #inside#"),
        "close": ("close {r}", "You close the {r.name}."),
        "take": ("take {o} from {r}", "You pick up the {o.name} from the {r.name}."),
        "place": (
            ("move {o} to {r}", "You move the {o.name} to the {r.name}.")
            if new
            else ("put {o} in/on {r}", "You put the {o.name} in/on the {r.name}.")
        ),
        "use": ("use {o}", "You turn on the {o.name}."),
        "slice": ("slice {o} with {k}", "You sliced the {o.name} with the {k.name}."),
    }
    for verb in _STATES:
        commands[verb] = (
            f"{verb} {{o}} with {{r}}",
            f"You {verb} the {{o.name}} using the {{r.name}}.",
        )
    if new:
        commands["help"] = ("help", f"\n{text.HELP}")
    return commands


def grammar_text(task: str, grammar: Grammar = "move") -> str:
    """Return the text grammar: every sentence of the world, and how each action is commanded."""
    rules = _rules(task)
    commands = _commands(grammar)
    for name, (_, feedback) in commands.items():
        rules.setdefault(f"{name}.feedback", [("", feedback)])
    spelled = {
        name: [{"condition": c, "rhs": words} if c else {"rhs": words} for c, words in lines]
        for name, lines in rules.items()
    }
    actions = "\n".join(
        f'action {name} {{\n template :: "{command}";\n feedback :: "#{name}.feedback#";\n}}'
        for name, (command, _) in commands.items()
    )
    return f'grammar :: """\n{json.dumps(spelled, indent=1)}\n""";\n\n{actions}\n'


def game_file_text(game: Game, *, solvable: bool | None = True) -> str:
    """Write a game as the content of an official game file; None leaves `solvable` out."""
    content: dict[str, object] = {
        "pddl_domain": domain_text(game.grammar),
        "grammar": grammar_text(game.task, game.grammar),
        "pddl_problem": problem_text(game),
    }
    if solvable is not None:
        content["solvable"] = solvable
    if game.walkthrough:
        content["walkthrough"] = game.walkthrough
    return json.dumps(content)


def write_game(root: Path, game: Game, *, solvable: bool | None = True) -> Path:
    """Write a game file in the folder that the task id names, below `root`."""
    path = root / game.task_id / GAME_FILE
    path.parent.mkdir(parents=True)
    path.write_text(game_file_text(game, solvable=solvable), encoding="utf-8")
    return path
