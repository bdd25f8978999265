"""ALFWorld-v0 as a Gymnasium environment: the contract of design.md section 5."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from proxmo_envs.alfworld.env import ALFWorldEnv
from proxmo_envs.alfworld.generator import generate
from proxmo_envs.alfworld.official import pack
from proxmo_envs.alfworld.packed import write_packed
from proxmo_envs.errors import (
    InvalidOptionError,
    NoEpisodeError,
    ProxmoEnvError,
)
from tests.proxmo_envs.alfworld.small import kitchen, write_game

TINY = {"data": "generated", "difficulty": "tiny"}
INFO = {
    "task",
    "task_id",
    "task_type",
    "admissible_actions",
    "won",
    "score",
    "action_valid",
    "goal_condition_rate",
    "grammar",
}
WIN = ("go to countertop 1", "take mug 1 from countertop 1", "go to shelf 1", "open cabinet 1")


def make(**kwargs: Any) -> gymnasium.Env[str, str]:
    """Make the environment over tiny generated games."""
    return gymnasium.make("ALFWorld-v0", **{**TINY, **kwargs})


@pytest.fixture
def empty_cabinet(tmp_path: Path) -> gymnasium.Env[str, str]:
    """The kitchen, with its other mug out of the cabinet: not won at the start."""
    game = kitchen()
    items = tuple(item for item in game.items if item.id != "mug_bar_2")
    path = write_game(tmp_path, kitchen(items=items))
    return gymnasium.make("ALFWorld-v0", data=path)


def test_reset_gives_the_whole_info_and_the_task_of_the_observation() -> None:
    observation, info = make().reset(seed=0)
    assert set(info) == INFO
    assert observation.endswith(f"Your task is to: {info['task']}")
    assert info["task_id"].startswith("generated/train/tiny/")
    assert info["grammar"] == "move" and info["score"] == 0.0 and info["action_valid"] is True


def test_a_won_game_ends_with_reward_one_stays_won_and_still_answers(
    empty_cabinet: gymnasium.Env[str, str],
) -> None:
    env = empty_cabinet.unwrapped
    env.reset()
    for command in WIN:
        assert env.step(command)[1:4] == (0.0, False, False)
    reward = 1.0
    for command, answer in (
        ("move mug 1 to cabinet 1", "You move the mug 1 to the cabinet 1."),
        ("inventory", "You are not carrying anything."),
        ("take mug 1 from cabinet 1", "You pick up the mug 1 from the cabinet 1."),
        ("move mug 1 to cabinet 1", "You move the mug 1 to the cabinet 1."),
    ):
        observation, *end, info = env.step(command)
        assert (observation, end) == (answer, [reward, True, False])
        assert info["won"] is True and info["score"] == info["goal_condition_rate"] == 1.0
        reward = 0.0


def test_what_is_not_admissible_costs_a_step_and_is_told() -> None:
    env = make()
    before = env.reset(seed=1)[1]["admissible_actions"]
    observation, reward, terminated, truncated, info = env.step("fly to the moon")
    assert observation == "Nothing happens."
    assert (reward, terminated, truncated, info["action_valid"]) == (0.0, False, False, False)
    assert info["admissible_actions"] == before and "hint" not in info
    assert env.step("look")[4]["action_valid"] is True


@pytest.mark.parametrize(
    ("grammar", "command", "hint"),
    [
        ("move", "put mug 1 in/on shelf 1", "'move mug 1 to shelf 1'"),
        ("put", "move mug 1 to shelf 1", "'put mug 1 in/on shelf 1'"),
    ],
)
def test_a_command_of_the_other_grammar_gets_a_hint(grammar: str, command: str, hint: str) -> None:
    env = make(grammar=grammar)
    assert env.reset(seed=3)[1]["grammar"] == grammar
    observation, _, _, _, info = env.step(command)
    assert observation == "Nothing happens." and hint in info["hint"]
    assert "hint" not in env.step("look")[4]


def test_a_task_is_chosen_by_its_id_from_any_split() -> None:
    env = make(split="train")
    wanted = "generated/valid_unseen/tiny/000003"
    assert env.reset(options={"task_id": wanted})[1]["task_id"] == wanted


def test_a_game_file_is_played_by_its_path(tmp_path: Path) -> None:
    path = write_game(tmp_path, kitchen(grammar="put"))
    info = make().reset(options={"game_file": path})[1]
    assert (info["task_id"], info["grammar"]) == ("own/kitchen/1", "put")
    assert make(grammar="move").reset(options={"game_file": path})[1]["grammar"] == "move"


@pytest.mark.parametrize(
    ("kwargs", "complaint"),
    [
        ({"split": "valid"}, "unknown split 'valid'; did you mean valid"),
        ({"difficulty": "tinny"}, "did you mean tiny"),
        ({"grammar": "mov"}, "did you mean move"),
        ({"render_mode": "human"}, "unknown render_mode 'human'; known: ansi"),
        ({"data": 5}, "data is 'generated' or the path of games, got int"),
        ({"data": b"generated"}, "got bytes"),
        ({"split": ["train"]}, "split is a string such as 'train', got list"),
    ],
)
def test_wrong_arguments_are_one_clear_error(kwargs: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidOptionError, match=complaint):
        ALFWorldEnv(**{**TINY, **kwargs})
    if "render_mode" not in kwargs:
        with pytest.raises(InvalidOptionError, match=complaint):
            ALFWorldEnv.task_set(**{**TINY, **kwargs})


@pytest.mark.parametrize(
    "options", [{"task_id": "x", "game_file": "y"}, {"game_file": "/etc/passwd"}]
)
def test_wrong_game_files_leave_the_episode_as_it_was(options: dict[str, Any]) -> None:
    env = make()
    task = env.reset(seed=1)[1]["task_id"]
    with pytest.raises(ProxmoEnvError):
        env.reset(options=options)
    assert env.step("look")[4]["task_id"] == task


@pytest.mark.parametrize("seed", range(6))
def test_a_recorded_episode_is_replayed_from_any_form_of_its_game_and_from_any_moment(
    seed: int, tmp_path: Path
) -> None:
    """Random commands, sensible and not, told again by folder, packed file and snapshot."""
    rng = np.random.default_rng(seed)
    difficulty = ("tiny", "small", "default")[seed % 3]
    env = ALFWorldEnv(data="generated", difficulty=difficulty)
    said = [env.reset(seed=seed)]
    number = int(said[0][1]["task_id"][-6:])
    commands, snapshots = [], []
    for _ in range(60):
        snapshots.append(env.snapshot())
        command = str(rng.choice(said[-1][-1]["admissible_actions"]))
        junk = (command.upper(), command[1:], f" {command}\t", f"{command} 1", "\ud800", "")
        commands.append(str(rng.choice(junk)) if rng.random() < 0.3 else command)
        said.append(env.step(commands[-1]))

    def tell(env: ALFWorldEnv, start: Any, commands: list[str]) -> list[Any]:
        told = [start, *map(env.step, commands)]
        for *_, info in told:
            info["task_id"] = said[0][1]["task_id"]
        return told

    game = generate("train", number, difficulty)
    task_id = f"train/{game.goal.task_type}-{game.goal.item_kind}/trial_1"
    file = write_game(tmp_path, replace(game, task_id=task_id))
    pack(tmp_path, tmp_path / "games.packed")
    for data in (file, tmp_path, tmp_path / "games.packed"):
        other = ALFWorldEnv(data=data)
        assert tell(other, other.reset(), commands) == said
    for moment in map(int, rng.integers(len(commands), size=5)):
        other = ALFWorldEnv(**TINY)
        told = tell(other, other.restore(snapshots[moment]), commands[moment:])
        assert told[1:] == said[moment + 1 :]
        assert told[0][0] == said[moment][0]


def test_the_plan_wins_the_game_from_its_start() -> None:
    for grammar in ("move", "put"):
        env = ALFWorldEnv(**TINY, grammar=grammar)
        env.reset(seed=3)
        assert [env.step(command)[2] for command in env.plan()].index(True) == len(env.plan()) - 1
    with pytest.raises(NoEpisodeError):
        ALFWorldEnv(**TINY).plan()


def test_the_expert_on_request_wins() -> None:
    env = make(expert_action=True)
    for seed in range(10):
        _, info = env.reset(seed=seed)
        ended = False
        while not ended:
            _, _, terminated, truncated, info = env.step(info["expert_action"])
            ended = terminated or truncated
        assert info["won"]


def test_memory_stays_flat_over_many_games(tmp_path: Path) -> None:
    path = tmp_path / "games.packed"
    games = [replace(generate("train", k), task_id=f"train/{k}") for k in range(20)]
    write_packed(path, {"train": [(game, "") for game in games]})
    env = ALFWorldEnv(data=path)
    env.reset(seed=0)
    gc.collect()
    tracemalloc.start()
    for _ in range(300):
        _, info = env.reset()
        for command in info["admissible_actions"][:4]:
            env.step(command)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # One live game (the issue allows 200 kB), not three hundred.
    assert kept < 200_000
