"""Writes games as official ALFWorld folders, which the original engine and its tools play, too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from proxmo_envs.alfworld import generator
from proxmo_envs.alfworld.games import GAME_FILE, Game
from proxmo_envs.alfworld.pddl import camel, domain_text, grammar_text, problem_text
from proxmo_envs.alfworld.planner import plan
from proxmo_envs.alfworld.sources import GeneratedGames
from proxmo_envs.errors import InvalidOptionError

TRAJECTORY_FILE: Final = "traj_data.json"
# Ids of generated games have six digits.
_NUMBERS: Final = 1_000_000


def draw(episodes: int, seed: int | None = None) -> list[int]:
    """Return the numbers of generated games: the first ones, or different ones drawn with a seed.

    Raises InvalidOptionError when there are not as many.
    """
    if not 0 <= episodes <= _NUMBERS:
        raise InvalidOptionError(f"between 0 and {_NUMBERS:,} games can be written, not {episodes}")
    if seed is None:
        return list(range(episodes))
    chosen = np.random.default_rng(seed).choice(_NUMBERS, episodes, replace=False)
    return sorted(chosen.tolist())


def write_generated(
    root: Path, split: str, numbers: Iterable[int], difficulty: str = "default"
) -> Iterator[Path]:
    """Write generated games below `root`, one after the other; yield the folder of each.

    Raises InvalidOptionError for an unknown split or difficulty.
    """
    GeneratedGames(difficulty).ids(split)
    for number in numbers:
        game = generator.generate(split, number, difficulty)
        scene = generator.scene(split, number, difficulty)
        yield write_game(root, game, scene=scene, trial=f"trial_{difficulty}_{number:06d}")


def write_game(root: Path, game: Game, *, scene: int, trial: str) -> Path:
    """Write a game as `SPLIT/TYPE-THING-None-TARGET-SCENE/TRIAL/` below `root`; return the folder.

    Its walkthrough is the shortest plan. Raises ValueError when it cannot be won.
    """
    goal = game.goal
    target = camel(goal.receptacle_kind or goal.lamp_kind or "")
    task = f"{goal.task_type}-{camel(goal.item_kind)}-None-{target}-{scene}"
    folder = root / game.split / task / trial
    content = {
        "pddl_domain": domain_text(game.grammar),
        "grammar": grammar_text(game.task, game.grammar),
        "pddl_problem": problem_text(game),
        "solvable": True,
        "walkthrough": game.walkthrough or plan(game),
    }
    trajectory = {
        "task_id": trial,
        "task_type": goal.task_type,
        "pddl_params": {
            "object_target": camel(goal.item_kind),
            "parent_target": camel(goal.receptacle_kind or ""),
            "toggle_target": camel(goal.lamp_kind or ""),
            "mrecep_target": "",
            "object_sliced": False,
        },
        "scene": {"floor_plan": f"FloorPlan{scene}", "scene_num": scene},
        "turk_annotations": {"anns": [{"task_desc": game.task}]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TRAJECTORY_FILE).write_text(json.dumps(trajectory, indent=1), encoding="utf-8")
    # Last: a folder without its game file is one that the original leaves out.
    (folder / GAME_FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder
