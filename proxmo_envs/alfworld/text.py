"""Everything the ALFWorld text world says, in the original's words (grammar `alfred.twl2`).

Two grammars are in circulation: `move` (releases since json_2.1.2) and `put` (json_2.1.1). They
differ in the command that puts things down and its answer, in `help`, and in how an arrival reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from proxmo_envs.alfworld.games import Grammar

NOTHING_HAPPENS = "Nothing happens."
EMPTY_HANDED = "You are not carrying anything."
# The original lists the room only in the first observation; a later `look` away from furniture
# sees nothing.
MIDDLE_OF_ROOM = "You are in the middle of a room. Looking quickly around you, you see nothing."

# Uneven spacing of the `move` line included.
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


# How the two grammars say where a thing goes.
_PREPOSITIONS: dict[Grammar, str] = {"move": " to ", "put": " in/on "}


def translate(command: str, grammar: Grammar) -> str | None:
    """Return what a command of the other grammar is called in `grammar`; None for any other."""
    verb, _, rest = command.strip().partition(" ")
    other: Grammar = "put" if grammar == "move" else "move"
    if verb != other or _PREPOSITIONS[other] not in rest:
        return None
    return f"{grammar} {rest.replace(_PREPOSITIONS[other], _PREPOSITIONS[grammar], 1)}"


def listing(names: Sequence[str]) -> str:
    """Join names as the original does: a comma before "and" even between two; or `nothing`."""
    if len(names) > 1:
        return f"{', '.join(names[:-1])}, and {names[-1]}"
    return names[0] if names else "nothing"


def welcome(scene: str, task: str) -> str:
    """Return the first observation: greeting, what is seen, the task."""
    return f"-= Welcome to TextWorld, ALFRED! =-\n\n{scene}\n\nYour task is to: {task}"


def room(receptacles: Sequence[str]) -> str:
    """Return what is seen from the middle of the room, at the very start."""
    return (
        "You are in the middle of a room. Looking quickly around you, "
        f"you see {listing([f'a {name}' for name in receptacles])}."
    )


def facing(receptacles: Sequence[str], beside: Sequence[str]) -> str:
    """Return what `look` says in front of furniture."""
    return f"You are facing the {listing(receptacles)}. Next to it, you see {listing(beside)}."


def item_state(name: str, *, hot: bool, cool: bool, clean: bool, sliced: bool) -> str:
    """Return what `examine` says of a held item that cannot hold others."""
    if clean and hot:
        state = "hot and clean "
    elif clean and cool:
        state = "cool and clean "
    elif hot:
        state = "hot "
    elif clean:
        state = "clean "
    elif cool:
        # The original says cold when whole and cool when sliced.
        state = "cool " if sliced else "cold "
    else:
        state = ""
    if sliced:
        state += "sliced "
    if not state:
        return f"There's nothing special about {name}."
    return f"This is a {state}{name}."
