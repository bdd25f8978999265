"""The sentences of ALFWorld, in the original's words (grammar `alfred.twl2`).

Two grammars are in use: `move` (releases since json_2.1.2) and `put` (json_2.1.1). They differ in
the command that puts things down and its answer, in `help`, and in the sentence for an arrival.
"""

from __future__ import annotations

from collections.abc import Sequence

from proxmo_envs.alfworld.games import Grammar, TaskType

# The two sentences of the original per task type.
TASK_SENTENCES: dict[TaskType, tuple[str, str]] = {
    "pick_and_place_simple": ("put a {thing} in {target}.", "put some {thing} on {target}."),
    "look_at_obj_in_light": (
        "look at {thing} under the {target}.",
        "examine the {thing} with the {target}.",
    ),
    "pick_clean_then_place_in_recep": (
        "put a clean {thing} in {target}.",
        "clean some {thing} and put it in {target}.",
    ),
    "pick_heat_then_place_in_recep": (
        "put a hot {thing} in {target}.",
        "heat some {thing} and put it in {target}.",
    ),
    "pick_cool_then_place_in_recep": (
        "put a cool {thing} in {target}.",
        "cool some {thing} and put it in {target}.",
    ),
    "pick_two_obj_and_place": (
        "put two {thing} in {target}.",
        "find two {thing} and put them in {target}.",
    ),
}

NOTHING_HAPPENS = "Nothing happens."
EMPTY_HANDED = "You are not carrying anything."
# The original lists the room only in the first observation: a later `look` away from furniture
# shows nothing.
MIDDLE_OF_ROOM = "You are in the middle of a room. Looking quickly around you, you see nothing."

# The uneven spacing of the `move` line is the original's.
HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""

# Between the thing and its new place in the command that puts it down.
PREPOSITIONS: dict[Grammar, str] = {"move": " to ", "put": " in/on "}


def translate(command: str, grammar: Grammar) -> str | None:
    """Return a command of the other grammar in the words of `grammar`; None for any other."""
    verb, _, rest = command.strip().partition(" ")
    other: Grammar = "put" if grammar == "move" else "move"
    if verb != other or PREPOSITIONS[other] not in rest:
        return None
    return f"{grammar} {rest.replace(PREPOSITIONS[other], PREPOSITIONS[grammar], 1)}"


def listing(names: Sequence[str]) -> str:
    """Join names as the original does, with a comma before "and" even between two."""
    if len(names) > 1:
        return f"{', '.join(names[:-1])}, and {names[-1]}"
    return names[0] if names else "nothing"


def welcome(scene: str, task: str) -> str:
    """Return the first observation: the greeting, the view of the room, and the task."""
    return f"-= Welcome to TextWorld, ALFRED! =-\n\n{scene}\n\nYour task is to: {task}"


def room(receptacles: Sequence[str]) -> str:
    """Return the view from the middle of the room at the start of an episode."""
    return (
        "You are in the middle of a room. Looking quickly around you, "
        f"you see {listing([f'a {name}' for name in receptacles])}."
    )


def facing(receptacles: Sequence[str], beside: Sequence[str]) -> str:
    """Return the answer to `look` in front of furniture."""
    return f"You are facing the {listing(receptacles)}. Next to it, you see {listing(beside)}."


def item_state(name: str, *, hot: bool, cool: bool, clean: bool, sliced: bool) -> str:
    """Return the answer to `examine` for a held item that cannot hold others."""
    words = [word for word, holds in (("hot", hot), ("cool", cool and not hot)) if holds]
    state = " and ".join([*words, "clean"] if clean else words)
    if state == "cool" and not sliced:
        # The original says cold when whole and cool when sliced.
        state = "cold"
    state = f"{state} sliced".strip() if sliced else state
    return f"This is a {state} {name}." if state else f"There's nothing special about {name}."
