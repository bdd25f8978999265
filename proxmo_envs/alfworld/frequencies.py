"""How often things occur in ALFWorld's rooms and where they lie, counted in the official games.

The generator draws rooms from these numbers and the searching expert looks in likely places first:
a generated game rewards the same common sense as an official one.
"""

from __future__ import annotations

from typing import Final

from proxmo_envs.alfworld.games import TaskType
from proxmo_envs.alfworld.vocabulary import APPLIANCES_WITH_DOOR, OFTEN_WITH_DOOR, words_by_key

# Official training games by room and task type: the mix of the default difficulty.
GAME_MIX: Final[dict[tuple[str, TaskType], int]] = {
    ("bathroom", "pick_and_place_simple"): 264,
    ("bathroom", "pick_clean_then_place_in_recep"): 149,
    ("bathroom", "pick_two_obj_and_place"): 233,
    ("bedroom", "look_at_obj_in_light"): 257,
    ("bedroom", "pick_and_place_simple"): 237,
    ("bedroom", "pick_two_obj_and_place"): 240,
    ("kitchen", "pick_and_place_simple"): 79,
    ("kitchen", "pick_clean_then_place_in_recep"): 501,
    ("kitchen", "pick_cool_then_place_in_recep"): 533,
    ("kitchen", "pick_heat_then_place_in_recep"): 459,
    ("kitchen", "pick_two_obj_and_place"): 124,
    ("livingroom", "look_at_obj_in_light"): 51,
    ("livingroom", "pick_and_place_simple"): 210,
    ("livingroom", "pick_two_obj_and_place"): 216,
}

# Ten equally likely counts of each kind of furniture in a room.
FURNITURE: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    room: {kind: tuple(map(int, counts)) for kind, counts in words_by_key(text).items()}
    for room, text in {
        "kitchen": """
            cabinet: 3 7 9 10 12 13 15 18 21 25
            coffeemachine: 1 1 1 1 1 1 1 1 1 1
            countertop: 1 1 2 2 2 2 3 3 3 4
            diningtable: 0 0 0 0 0 1 1 1 2 2
            drawer: 1 2 3 3 4 5 5 7 10 18
            fridge: 1 1 1 1 1 1 1 1 1 1
            garbagecan: 1 1 1 1 1 1 1 1 1 1
            microwave: 1 1 1 1 1 1 1 1 1 1
            shelf: 0 0 0 0 0 0 0 1 3 3
            sidetable: 0 0 0 0 0 0 0 0 0 1
            sinkbasin: 1 1 1 1 1 1 1 1 1 1
            stoveburner: 4 4 4 4 4 4 4 4 4 5
            toaster: 1 1 1 1 1 1 1 1 1 1
        """,
        "livingroom": """
            armchair: 0 1 1 1 1 1 2 2 2 2
            cabinet: 0 0 0 0 0 0 0 0 2 5
            coffeetable: 0 0 1 1 1 1 1 1 2 2
            diningtable: 0 0 0 0 0 1 1 1 1 2
            drawer: 0 0 1 1 4 4 4 6 7 14
            dresser: 0 0 0 0 0 0 1 1 1 1
            garbagecan: 1 1 1 1 1 1 1 1 1 1
            ottoman: 0 0 0 0 0 0 0 0 0 1
            shelf: 0 0 0 0 0 0 1 3 8 12
            sidetable: 0 0 1 1 1 2 2 3 3 4
            sofa: 1 1 1 1 1 1 1 1 2 2
            tvstand: 0 0 0 0 0 0 0 1 1 2
        """,
        "bedroom": """
            armchair: 0 0 0 0 0 0 0 0 1 2
            bed: 1 1 1 1 1 1 1 1 2 2
            cabinet: 0 0 0 0 0 0 0 0 1 3
            desk: 0 0 0 1 1 1 1 1 1 2
            diningtable: 0 0 0 0 0 0 0 0 0 1
            drawer: 1 2 3 3 4 5 6 9 11 15
            dresser: 0 0 0 0 0 0 1 1 1 2
            garbagecan: 1 1 1 1 1 1 1 1 1 1
            laundryhamper: 0 0 0 0 0 0 0 1 1 1
            safe: 0 0 0 0 0 0 0 0 1 1
            shelf: 0 0 0 1 1 1 4 5 7 12
            sidetable: 0 0 0 0 1 1 1 1 2 2
        """,
        "bathroom": """
            bathtubbasin: 0 0 0 1 1 1 1 1 1 1
            cabinet: 0 0 0 0 0 2 4 4 4 6
            cart: 0 0 0 0 0 0 0 0 0 1
            countertop: 0 1 1 1 1 1 1 1 1 2
            drawer: 0 0 0 0 1 1 4 5 7 8
            dresser: 0 0 0 0 0 0 0 0 0 1
            garbagecan: 1 1 1 1 1 1 1 1 1 1
            handtowelholder: 1 1 1 1 1 1 2 2 2 3
            shelf: 0 0 0 0 0 0 0 0 2 3
            sidetable: 0 0 0 0 0 0 0 0 0 1
            sinkbasin: 1 1 1 1 1 2 2 2 2 2
            toilet: 1 1 1 1 1 1 1 1 1 1
            toiletpaperhanger: 1 1 1 1 1 1 1 1 1 1
            towelholder: 1 1 1 1 1 1 1 2 2 2
        """,
    }.items()
}

# The same for what belongs to the room or lies on its floor: nobody can take it, but it counts in
# the numbering.
ON_THE_FLOOR: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    room: {kind: tuple(map(int, counts)) for kind, counts in words_by_key(text).items()}
    for room, text in {
        "kitchen": """
            blinds: 0 0 0 0 0 0 0 0 1 1
            butterknife: 0 0 0 0 0 0 0 0 0 1
            chair: 0 0 1 1 1 1 2 2 2 3
            curtains: 0 0 0 0 0 0 0 0 0 1
            egg: 0 0 0 0 0 0 0 0 0 1
            fork: 0 0 0 0 0 0 0 0 0 1
            knife: 0 0 0 0 0 0 0 0 0 1
            lightswitch: 1 1 1 1 1 1 1 1 1 1
            mirror: 0 0 0 0 0 0 0 0 0 1
            mug: 0 0 0 0 0 0 0 0 0 1
            plate: 0 0 0 0 0 0 0 0 0 1
            sink: 0 1 1 1 1 1 1 1 1 1
            spoon: 0 0 0 0 0 0 0 0 0 1
            stoveknob: 4 4 4 4 4 4 4 4 4 5
            window: 0 1 1 1 1 1 1 2 2 2
        """,
        "livingroom": """
            boots: 0 0 0 0 0 0 0 0 1 1
            box: 0 0 0 0 0 0 0 0 1 1
            chair: 0 0 0 1 1 3 4 4 6 8
            curtains: 0 0 0 0 0 0 0 1 1 2
            floorlamp: 1 1 1 1 1 1 1 1 1 1
            houseplant: 0 0 0 0 0 0 1 1 1 1
            keychain: 0 0 0 0 0 0 0 1 1 2
            lightswitch: 1 1 1 1 1 1 1 1 1 1
            mirror: 0 0 0 0 0 0 0 0 0 1
            painting: 1 1 1 1 2 2 2 2 3 3
            remotecontrol: 0 0 0 0 0 0 0 0 0 1
            television: 0 0 0 0 0 0 0 1 1 1
            vase: 0 0 0 0 0 0 0 0 0 1
            wateringcan: 0 0 0 0 0 0 1 1 1 1
            window: 0 1 2 2 2 2 3 3 4 7
        """,
        "bedroom": """
            baseballbat: 0 0 0 0 0 0 1 1 1 2
            basketball: 0 0 0 0 0 0 1 1 1 1
            blinds: 0 1 1 1 1 1 2 2 2 3
            boots: 0 0 0 0 0 0 0 0 0 1
            box: 0 0 0 0 0 0 1 1 1 1
            cd: 0 0 0 0 0 0 0 1 1 1
            chair: 0 0 1 1 1 1 1 1 2 2
            cloth: 0 0 0 0 0 0 0 0 1 2
            curtains: 0 0 0 0 0 0 0 0 0 1
            keychain: 0 0 0 0 0 0 0 0 0 1
            laundryhamperlid: 0 0 0 0 0 0 0 1 1 1
            lightswitch: 1 1 1 1 1 1 1 1 1 1
            mirror: 0 1 1 1 1 1 1 1 1 1
            painting: 0 0 0 0 0 0 1 1 2 2
            poster: 0 0 0 0 0 0 0 0 1 2
            teddybear: 0 0 0 0 0 0 0 0 0 1
            television: 0 0 0 0 0 0 0 0 0 1
            tennisracket: 0 0 0 0 0 0 1 1 1 1
            window: 0 1 1 1 1 1 2 2 2 3
        """,
        "bathroom": """
            bathtub: 0 0 0 1 1 1 1 1 1 1
            candle: 0 0 0 0 0 0 0 0 1 1
            floorlamp: 0 0 0 0 0 0 0 0 0 1
            lightswitch: 1 1 1 1 1 1 1 1 1 1
            mirror: 0 1 1 1 1 1 1 1 1 1
            plunger: 1 1 1 1 1 1 1 1 1 1
            scrubbrush: 1 1 1 1 1 1 1 1 1 1
            showerdoor: 0 0 0 0 1 1 1 1 1 1
            showerglass: 0 0 0 0 0 0 1 1 1 1
            sink: 0 0 1 1 1 1 2 2 2 2
            soapbar: 0 0 0 0 0 0 0 0 0 1
            soapbottle: 0 0 0 0 0 0 0 0 0 2
            toiletpaper: 0 0 0 0 0 0 1 1 1 1
            window: 0 0 0 0 1 1 1 1 2 3
        """,
    }.items()
}

# Per room: one line per kind of thing. First number: in how many of 100 rooms it occurs; then how
# many lie on 100 pieces of furniture of the kind that heads the column.
_THINGS: Final = {
    "kitchen": """
        kind % cabinet coffeemachine countertop diningtable drawer fridge garbagecan
            microwave shelf sidetable sinkbasin stoveburner
        -
        apple          99   0   0  21  40   0  49  25  25   0  34  18   0
        book           11   0   0   5   3   0   0   0   0   1   0   0   0
        bowl          100   5   0  17  39   0  42   0   5   5   7   6   0
        bread         100   0   0  38  65   0  20   1   0   0  10   0   0
        butterknife    95   0   0  46  63   3   0   0   0   0  20  10   0
        cellphone      15   0   0   6   5   2   0   0   0   2   0   0   0
        creditcard     13   0   0   5   0   2   0   0   0   8   0   0   0
        cup           100   3   0  18  38   0  41   0  14   5  34  19   0
        dishsponge     99   4   0  22  34   7   0  11   0   8  14  15   0
        egg            99   0   0  20  31   0  50  26  23   0  27  26   0
        fork           98   0   0  36  60   7   0   0   0   0  27  17   0
        glassbottle    27   1   0   7   8   0   4   4   0   3   0   5   0
        houseplant     39   0   0  15  12   0   0   0   0   0   0   0   0
        kettle         49   2   0   9   8   0   0   0   0   1   0   1   9
        knife          98   0   0  40  61   6   0   0   0   0  14   9   0
        ladle          33   1   0  12  12   2   0   0   0   0   0   1   0
        lettuce        98   0   0  32  66   0  42   2   0   0  24   9   0
        mug            98   3  39  26  30   0  31   0  16   5  18  13   0
        pan           100   1   0  25  10   0   7   0   0   0   0   0  24
        papertowelroll 38   0   0   9   8   0   0   6   0   6   7   0   0
        pen             6   0   0   2   6   0   0   1   0   0   0   0   0
        pencil          7   0   0   2   3   1   0   1   0   0   0   0   0
        peppershaker  100   5   0  27  45   5   0   0   0  11  44   0   0
        plate          97   5   0  22  36   0  17   0   1   5   2   4   0
        pot           100   0   0  11  10   0   7   0   0   1   0   1  34
        potato         99   0   0  24  41   0  51  13  20   0  23  22   0
        saltshaker    100   5   0  26  45   5   0   0   0  10  42   0   0
        soapbottle     99   4   0  27  52   0   0  21   0  10  26   0   0
        spatula       100   0   0  37  62   7   0   0   0   0  11  18   0
        spoon          99   0   0  32  56   9   0   0   0   0  32  22   0
        spraybottle     6   0   0   2   4   0   0   1   0   0   0   0   0
        statue         19   0   0   8   2   0   0   0   0  19   0   0   0
        tomato         99   0   0  26  52   0  66  18   0   0  29  14   0
        vase           19   1   0   7   1   0   0   0   0  22   0   0   0
        winebottle     40   1   0  13  26   0   1   7   0   4   1   0   0
        """,
    "livingroom": """
        kind % armchair cabinet coffeetable desk diningtable drawer dresser garbagecan
            ottoman safe shelf sidetable sofa tvstand
        -
        book           26   4   0  14   0   8   0  27   0   0   0   0   3   6   1
        bowl           11   0   0   5   0  14   0   0   0   0   0   1   1   0   9
        box            86   3   9  27  43  53   0  12   0   5   0   2   6  25   8
        candle          9   0   0   6   0   8   0   1   0   0   0   0   5   0   3
        cellphone      23   2   0   7  29   7   1  22   0  11  11   1   4   5   2
        creditcard    100  21   0  32  29  35   7  35   0  20   0   5  14  35  36
        desklamp       25   0   0   2   0   0   0   0   0   0   0   0  14   0   0
        houseplant     65   0   0  17   0   8   0  17   0   0   0   0  20   0   7
        keychain       92  10   0  32  29  21   6  23   0  18  17   3  16  17  29
        laptop        100   6   0  35  29  53   0  31   0  18   0   0   6  33  17
        newspaper      63   6   1  21   0  36   1  25   0  11   0   6  10  20   8
        pen            19   0   0  14   0   3   1  20   2   0   0   1   5   0   6
        pencil         16   0   0  10   0   3   1   5   2   0   0   1   7   0   5
        pillow        100  19   0   0   0   0   0   0   0   2   0   0   0  75   0
        plate          34   0   0  14   0  53   0   1   0   0   0   3   4   0   3
        remotecontrol  98  12   0  46  29  37   2  43   0  21   0   3  15  31  39
        statue         96   0   0  55  29  78   0  44   0   0  17  18  25   0  46
        television     70   0   0   6   0   0   0  72   0   0   0   0   1   0  77
        tissuebox      35   0   3  26   0  25   1   6   1   0   0   3   8   0  13
        vase           50   0   5  29  43  39   0  37   0   0  33  21  10   0  21
        watch          51   0   0  27   0  20   5  28   0   0  33   2  12   0  26
        wateringcan     9   0   0   7   0   0   0   0   0   0   0   2   1   0   0
        """,
    "bedroom": """
        kind % armchair bed cabinet countertop desk diningtable drawer dresser garbagecan
            safe shelf sidetable
        -
        alarmclock     99   0   0   0  65  73  95   0  57   0   0  13  39
        book          100  12  83  11  30  43  36   4  17   0   0   1   9
        bowl           47   0   0   0  52  42  36   0  19   0   0   7   3
        box             8   0   0   0   0   6   0   0   0   0   0   1   0
        cd             93   9   0   7   0  46  82   9  48  15   5   4  27
        cellphone     100  20  52   3  39  44  55   6  39   0  31   5  24
        creditcard    100  22   0   0  52  44  55  11  46   0   0  12  38
        desklamp       72   0   0   0   0  36   0   0  36   0   0   4  25
        houseplant     23   0   0  10   0  10   0   0   5   0   0   4   0
        keychain       98  17   0   3   4  43  64   9  50   0  51  10  36
        laptop        100   7 103   0  48  37  28   0  11   0   0   0   0
        mug            52   0   0   8  48  45  70   0  27   0   0   6  17
        pen           100   0   0   0  65  71 107   7  60   4   0  11  35
        pencil        100   0   0   0  57  60  99   6  45  10   0  12  41
        pillow        100   4 146   0   0   0   0   0   0   0   0   0   0
        remotecontrol  11   4   0   0  61   7   8   1   1   0   0   0   4
        statue         14   0   0   0   0   6   0   0  10   0   0   3   1
        teddybear      26   0  23   0   0   0   0   0   0   0   0   0   0
        tissuebox      13   0   0   0   0  11  30   1   1   0   0   1   3
        vase            6   0   0   0   0   2   0   0   9   0   0   2   1
        watch           7   0   0   0   0   3  19   1   3   0   0   1   1
        """,
    "bathroom": """
        kind % bathtubbasin cabinet cart countertop drawer dresser garbagecan
            handtowelholder shelf sidetable sinkbasin toilet toiletpaperhanger towelholder
        -
        candle         97   0  13  37  58   9  27   0   0  25  71   0  56   0   0
        cloth         100  87  21  35  32  11  32   0   0  17   5  10   6   0   0
        dishsponge     22  14   1  33   9   3   0   2   0   9   0   3   4   0   0
        floorlamp       3   0   0   0   0   0   0   0   0   0   0   4   0   0   0
        handtowel     100   0   0   0   4   0   0   0  79   0   0   0   0   0   0
        houseplant      4   0   0   0   0   0   0   0   0   0  68   0   0   0   0
        papertowelroll 13   0   0   9   4   0   0   1   0   4   0   0   4   0   0
        soapbar        97  34  12  32  39   8   0  13   0  16  61  19  31   0   0
        soapbottle     97   0  20  25  55   2  52  16   0  33  34   0  42   0   0
        spraybottle   100   0  17  89  65   0  45  20   0  28  90   0  53   0   0
        tissuebox      24   0   1  23  16   3   0   0   0  27  29   0   1   0   0
        toiletpaper    99   0  12  37  44   8  39  18   0  21  39   0  46  23   0
        towel         100   0   0   0   3   0   0   0   0   0   0   0   0   0  87
        """,
}


def _tables() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, dict[str, int]]]]:
    """Split `_THINGS` into how often a kind occurs and where it lies, per room."""
    occurs: dict[str, dict[str, int]] = {}
    lies: dict[str, dict[str, dict[str, int]]] = {}
    for room, text in _THINGS.items():
        head, body = text.split("-\n")
        columns = head.split()[2:]
        occurs[room], lies[room] = {}, {}
        for line in body.strip().splitlines():
            kind, percent, *rates = line.split()
            occurs[room][kind] = int(percent)
            lies[room][kind] = {c: int(n) for c, n in zip(columns, rates, strict=True) if n != "0"}
    return occurs, lies


# OCCURS[room][thing]: percent of rooms; LIES[room][thing][furniture]: things per 100 of these.
OCCURS, LIES = _tables()


def effort(furniture: str) -> int:
    """Return how many steps it takes to see what is in a piece of furniture: go there, open it."""
    return 2 if furniture in APPLIANCES_WITH_DOOR or furniture in OFTEN_WITH_DOOR else 1


def appeal(room: str, thing: str, furniture: str) -> float:
    """Return how promising it is to look for `thing` there: expected finds per 100 steps."""
    return LIES[room].get(thing, {}).get(furniture, 0) / effort(furniture)
