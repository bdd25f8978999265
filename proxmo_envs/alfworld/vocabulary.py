"""What there is in ALFWorld's rooms: kinds of furniture and of things, and what holds what.

Read off the 3,827 official games, which all agree. How often it occurs is in `frequencies.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from proxmo_envs.alfworld.games import TaskType

TASK_TYPES: Final[tuple[TaskType, ...]] = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
ROOMS: Final = ("kitchen", "livingroom", "bedroom", "bathroom")


def words_by_key(text: str) -> dict[str, tuple[str, ...]]:
    """Parse `key: word word ... key: word ...` (any line breaks) to a tuple of words per key."""
    lists: dict[str, list[str]] = {}
    for word in text.split():
        if word.endswith(":"):
            words = lists.setdefault(word[:-1], [])
        else:
            words.append(word)
    return {key: tuple(words) for key, words in lists.items()}


# Doors: closed at the start. Cabinets, drawers and safes of some official rooms have none.
APPLIANCES_WITH_DOOR: Final = frozenset({"fridge", "microwave"})
OFTEN_WITH_DOOR: Final = frozenset({"cabinet", "drawer", "safe"})

_GROUPS: Final = words_by_key(
    """
    cleanable: apple bowl butterknife cloth cup dishsponge egg fork kettle knife ladle lettuce mug
        pan plate pot potato soapbar spatula spoon tomato
    heatable: apple bread cup egg mug plate potato tomato
    coolable: apple bowl bread cup egg lettuce mug pan plate pot potato tomato winebottle
    sliceable: apple bread egg lettuce potato tomato
    isreceptacleobject: bowl box cup mug pan plate pot
    toggleable: desklamp floorlamp
    scenery: bathtub blinds chair curtains houseplant laundryhamperlid lightswitch mirror painting
        poster showerdoor showerglass sink stoveknob television window
    never_a_goal: bathtubbasin handtowelholder laundryhamper sinkbasin toaster towelholder tvstand
    """
)
# PDDL predicates of kinds of things. What is neither lamp nor scenery can be picked up.
PROPERTIES: Final[dict[str, frozenset[str]]] = {
    flag: frozenset(_GROUPS[flag])
    for flag in (
        "cleanable",
        "heatable",
        "coolable",
        "sliceable",
        "isreceptacleobject",
        "toggleable",
    )
}
LAMPS: Final = PROPERTIES["toggleable"]
SCENERY: Final = frozenset(_GROUPS["scenery"])
# At most one of these in a room.
UNIQUE: Final = LAMPS | {"houseplant", "television"}
# Furniture that no official task asks to put something in.
NEVER_A_GOAL: Final = frozenset(_GROUPS["never_a_goal"])

# Appliance that changes a held thing, by task type.
APPLIANCE: Final[dict[str, str]] = {
    "pick_clean_then_place_in_recep": "sinkbasin",
    "pick_heat_then_place_in_recep": "microwave",
    "pick_cool_then_place_in_recep": "fridge",
}


# receptacle kind -> kinds of things it can hold (canContain in the PDDL problems).
CAN_CONTAIN: Final[dict[str, frozenset[str]]] = {
    receptacle: frozenset(kinds)
    for receptacle, kinds in words_by_key(
        """
        armchair: book box cellphone cloth creditcard keychain laptop newspaper pillow
            remotecontrol
        bathtubbasin: cloth dishsponge handtowel soapbar
        bed: baseballbat basketball book cellphone laptop pillow tennisracket
        cabinet: book bowl box candle cd cloth cup dishsponge glassbottle handtowel
            kettle ladle mug newspaper pan peppershaker plate plunger pot saltshaker
            soapbar soapbottle spraybottle tissuebox toiletpaper vase wateringcan
            winebottle
        cart: candle cloth dishsponge handtowel plunger soapbar soapbottle spraybottle
            tissuebox toiletpaper
        coffeemachine: mug
        coffeetable: book bowl box candle cellphone creditcard keychain laptop newspaper
            pen pencil plate remotecontrol statue tissuebox vase watch wateringcan
        countertop: alarmclock apple book bowl bread butterknife candle cd cellphone
            cloth creditcard cup dishsponge egg fork glassbottle handtowel kettle
            keychain knife ladle laptop lettuce mug pan pen pencil peppershaker plate
            pot potato remotecontrol saltshaker soapbar soapbottle spatula spoon
            spraybottle statue tissuebox toiletpaper tomato vase winebottle
        desk: alarmclock basketball book bowl box cd cellphone cloth creditcard keychain
            laptop mug pen pencil remotecontrol statue tennisracket tissuebox vase watch
            wateringcan
        diningtable: alarmclock apple baseballbat basketball book bowl box bread
            butterknife candle cd cellphone cloth creditcard cup dishsponge egg fork
            glassbottle kettle keychain knife ladle laptop lettuce mug newspaper pan pen
            pencil peppershaker plate pot potato remotecontrol saltshaker soapbottle
            spatula spoon spraybottle statue tennisracket tissuebox tomato vase watch
            wateringcan winebottle
        drawer: book butterknife candle cd cellphone cloth creditcard dishsponge fork
            handtowel keychain knife ladle newspaper pen pencil peppershaker
            remotecontrol saltshaker soapbar soapbottle spatula spoon spraybottle
            tissuebox toiletpaper watch wateringcan
        dresser: alarmclock basketball book bowl box candle cd cellphone cloth
            creditcard keychain laptop mug newspaper pen pencil plate remotecontrol
            spraybottle statue tennisracket tissuebox toiletpaper vase watch wateringcan
        fridge: apple bowl bread cup egg glassbottle lettuce mug pan plate pot potato
            tomato winebottle
        garbagecan: apple bread cd cloth dishsponge egg handtowel lettuce newspaper pen
            pencil potato soapbar soapbottle spraybottle tissuebox toiletpaper tomato
            winebottle
        handtowelholder: handtowel
        laundryhamper: cloth
        microwave: apple bowl bread cup egg glassbottle mug plate potato tomato
        ottoman: book box cellphone creditcard keychain laptop newspaper pillow
            remotecontrol
        safe: cd cellphone creditcard keychain statue vase watch
        shelf: alarmclock book bowl box candle cd cellphone cloth creditcard cup
            dishsponge glassbottle handtowel kettle keychain mug newspaper pen pencil
            peppershaker plate pot remotecontrol saltshaker soapbar soapbottle
            spraybottle statue tissuebox toiletpaper vase watch wateringcan winebottle
        sidetable: alarmclock apple baseballbat basketball book bowl box bread
            butterknife candle cd cellphone cloth creditcard cup dishsponge egg fork
            handtowel kettle keychain knife laptop lettuce mug newspaper pan pen pencil
            peppershaker plate pot potato remotecontrol saltshaker soapbar soapbottle
            spatula spoon spraybottle statue tennisracket tissuebox toiletpaper tomato
            vase watch wateringcan winebottle
        sinkbasin: apple bowl butterknife cloth cup dishsponge egg fork glassbottle
            handtowel kettle knife ladle lettuce mug pan plate pot potato soapbar
            spatula spoon tomato
        sofa: book box cellphone creditcard keychain laptop newspaper pillow
            remotecontrol
        stoveburner: kettle pan pot
        toilet: candle cloth dishsponge handtowel soapbar soapbottle spraybottle
            tissuebox toiletpaper
        toiletpaperhanger: toiletpaper
        towelholder: towel
        tvstand: tissuebox
        """
    ).items()
}


# What can be put somewhere; a teddy bear, once taken, can never be put down.
_PUTTABLE: Final = frozenset().union(*CAN_CONTAIN.values())


def fits(thing: str, task_type: TaskType) -> bool:
    """Tell whether a task of this type can be about `thing`."""
    if thing not in _PUTTABLE:
        return False
    needs = {"sinkbasin": "cleanable", "microwave": "heatable", "fridge": "coolable"}
    appliance = APPLIANCE.get(task_type)
    return appliance is None or thing in PROPERTIES[needs[appliance]]


def can_be_put_down(thing: str, furniture: Iterable[str]) -> bool:
    """Tell whether a thing cannot be carried at all, or some of the furniture takes it."""
    if thing in LAMPS or thing in SCENERY:
        return True
    return any(thing in CAN_CONTAIN.get(kind, ()) for kind in furniture)


def room_of(furniture: Iterable[str]) -> str:
    """Return the kind of room that has these kinds of furniture."""
    kinds = set(furniture)
    for sign, room in (("fridge", "kitchen"), ("toilet", "bathroom"), ("bed", "bedroom")):
        if sign in kinds:
            return room
    return "livingroom"
