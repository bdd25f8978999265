"""ALFWorld-v0 as a Gymnasium environment: the contract of design.md section 5."""

from __future__ import annotations

import copy
import gc
import gzip
import json
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from proxmo_envs.alfworld.env import ALFWorldEnv
from proxmo_envs.alfworld.generator import generate
from proxmo_envs.alfworld.official import pack
from proxmo_envs.alfworld.packed import write_packed
from proxmo_envs.errors import (
    InvalidActionError,
    InvalidOptionError,
    NoEpisodeError,
    ProxmoEnvError,
    UnknownTaskError,
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


def test_the_environment_checker_has_no_complaint() -> None:
    check_env(make(render_mode="ansi", expert_action=True).unwrapped)
    check_env(make().unwrapped)


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


@pytest.mark.parametrize(
    ("policy", "task"),
    [
        ("chores", "train/look_at_obj_in_light-CD-None-DeskLamp-316/trial_T20190909_114559_561870"),
        (
            "tour",
            "valid_unseen/look_at_obj_in_light-Mug-None-DeskLamp-308/trial_T20190908_201421_021646",
        ),
    ],
)
def test_what_the_original_said_after_the_end_is_said_too(
    policy: str, task: str, shared: Path
) -> None:
    with gzip.open(shared / f"alfworld/transcripts/{policy}.jsonl.gz", "rt") as lines:
        steps = next(row["steps"] for row in map(json.loads, lines) if row["game"] == task)
    env = ALFWorldEnv(data=shared / "alfworld/games")
    env.reset(options={"task_id": task})
    ends = []
    for step in steps:
        observation, _, terminated, _, info = env.step(step["command"])
        ends.append(terminated)
        assert (observation, terminated) == (step["observation"], step["done"])
        assert (info["score"], info["admissible_actions"]) == (step["score"], step["admissible"])
    assert ends[-2:] == [True, True]


def test_what_is_not_admissible_costs_a_step_and_is_told() -> None:
    env = make()
    before = env.reset(seed=1)[1]["admissible_actions"]
    observation, reward, terminated, truncated, info = env.step("fly to the moon")
    assert observation == "Nothing happens."
    assert (reward, terminated, truncated, info["action_valid"]) == (0.0, False, False, False)
    assert info["admissible_actions"] == before and "hint" not in info
    assert env.step("look")[4]["action_valid"] is True


@pytest.mark.parametrize("limit", [None, 7])
def test_the_step_limit_truncates(limit: int | None) -> None:
    env = make() if limit is None else make(max_episode_steps=limit)
    env.reset(seed=2)
    ends = [env.step("look")[2:4] for _ in range(limit or 50)]
    assert ends == [(False, False)] * ((limit or 50) - 1) + [(False, True)]


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


def test_the_seed_decides_which_tasks_are_drawn() -> None:
    def draw(env: gymnasium.Env[str, str]) -> list[str]:
        return [env.reset(seed=seed)[1]["task_id"] for seed in (5, None, None, 6)]

    first = draw(make())
    assert draw(make()) == first and len(set(first)) == 4


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
    ("options", "error"),
    [
        (5, InvalidOptionError),
        ("task_id", InvalidOptionError),
        ({1: "x", "y": "z"}, InvalidOptionError),
        ({"taskid": "x"}, InvalidOptionError),
        ({"task_id": "x", "game_file": "y"}, InvalidOptionError),
        ({"task_id": 3}, InvalidOptionError),
        ({"task_id": "x"}, UnknownTaskError),
        ({"game_file": "/etc/passwd"}, ProxmoEnvError),
    ],
)
def test_wrong_reset_options_leave_the_episode_as_it_was(
    options: dict[str, Any], error: type[Exception]
) -> None:
    env = make()
    task = env.reset(seed=1)[1]["task_id"]
    with pytest.raises(error):
        env.reset(options=options)
    assert env.step("look")[4]["task_id"] == task


@pytest.mark.parametrize("action", [None, 3, b"look", ["look"], np.array("look")])
def test_an_action_that_is_no_string_is_one_clear_error(action: Any) -> None:
    env = make().unwrapped
    env.reset(seed=1)
    with pytest.raises(InvalidActionError, match=type(action).__name__):
        env.step(action)


def test_a_huge_action_does_nothing() -> None:
    env = make()
    env.reset(seed=1)
    for action in ("x" * 1_000_000, "go to " + "y" * 1_000_000, "put " * 300_000, "\0\ud800"):
        assert env.step(action)[0] == "Nothing happens."


def test_nothing_works_before_the_first_reset() -> None:
    env = ALFWorldEnv(**TINY, render_mode="ansi")
    for call in (lambda: env.step("look"), env.render, env.snapshot):
        with pytest.raises(NoEpisodeError, match="reset"):
            call()


def test_ansi_shows_the_last_command_and_its_answer() -> None:
    env = make(render_mode="ansi")
    observation, _ = env.reset(seed=4)
    assert env.render() == f"{observation}\n"
    env.step("inventory")
    assert env.render() == "> inventory\nYou are not carrying anything.\n"


def test_sampled_actions_are_admissible() -> None:
    env = make()
    admissible = env.reset(seed=5)[1]["admissible_actions"]
    env.action_space.seed(0)
    for _ in range(40):
        action = env.action_space.sample()
        assert action in admissible
        info = env.step(action)[4]
        assert info["action_valid"]
        admissible = info["admissible_actions"]


def test_lists_and_infos_are_never_used_twice() -> None:
    env = make()
    _, first = env.reset(seed=6)
    first["admissible_actions"].clear()
    first["task"] = "mine"
    _, _, _, _, second = env.step("look")
    assert second["task"] != "mine" and "look" in second["admissible_actions"]
    assert env.action_space.sample() != ""


def test_a_snapshot_can_be_restored_any_number_of_times() -> None:
    env = ALFWorldEnv(**TINY, expert_action=True)
    _, info = env.reset(seed=7)
    for _ in range(2):
        info = env.step(info["expert_action"])[4]
    snapshot = env.snapshot()
    endings = []
    for _ in range(2):
        _, info = env.restore(snapshot)
        path = []
        while not info["won"]:
            observation, *_, info = env.step(info["expert_action"])
            path.append(observation)
        endings.append(path)
    assert endings[0] == endings[1] and endings[0]


def test_a_snapshot_of_another_environment_leaves_the_expert_as_it_was_made() -> None:
    """What `expert_action` says holds after a restore, too."""
    plain, expert = ALFWorldEnv(**TINY), ALFWorldEnv(**TINY, expert_action=True)
    plain.reset(seed=1)
    task = expert.reset(seed=2)[1]["task_id"]
    info = plain.restore(expert.snapshot())[1]
    assert info["task_id"] == task and "expert_action" not in info
    assert "expert_action" not in plain.reset()[1]
    with pytest.raises(InvalidOptionError, match="without expert_action"):
        expert.restore(plain.snapshot())
    assert expert.step("look")[4]["task_id"] == task
    assert "expert_action" in expert.reset()[1]


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


def test_a_deep_copy_is_an_environment_of_its_own() -> None:
    env = make(max_episode_steps=5)
    _, info = env.reset(seed=8)
    env.step("look")
    twin = copy.deepcopy(env)
    walk = next(c for c in info["admissible_actions"] if c.startswith("go to"))
    twin.step(walk)
    assert walk in env.step("look")[4]["admissible_actions"]
    # The step limit is copied, too: both have taken two of five steps.
    assert [env.step("look")[3] for _ in range(3)] == [False, False, True]
    assert [twin.step("look")[3] for _ in range(3)] == [False, False, True]
    assert env.reset()[1]["task_id"] == twin.reset()[1]["task_id"]


def test_the_expert_on_request_wins() -> None:
    env = make(expert_action=True)
    for seed in range(10):
        _, info = env.reset(seed=seed)
        ended = False
        while not ended:
            _, _, terminated, truncated, info = env.step(info["expert_action"])
            ended = terminated or truncated
        assert info["won"]


def trace(seed: int) -> list[Any]:
    """Play random episodes; return everything that was said."""
    env = make()
    rng = np.random.default_rng(seed)
    said: list[Any] = []
    for _ in range(3):
        said.append(env.reset(seed=seed if not said else None))
        for _ in range(20):
            said.append(env.step(str(rng.choice(said[-1][-1]["admissible_actions"]))))
    return said


def test_threads_and_processes_play_as_one_alone_does() -> None:
    serial = [trace(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(trace, range(8))) == serial
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(trace, range(8))) == serial


def test_a_vector_environment_plays_as_its_parts_do() -> None:
    vector = gymnasium.make_vec("ALFWorld-v0", num_envs=4, **TINY)
    singles = [make() for _ in range(4)]
    observations, infos = vector.reset(seed=[1, 2, 3, 4])
    alone = [env.reset(seed=seed) for seed, env in zip((1, 2, 3, 4), singles, strict=True)]
    assert list(observations) == [observation for observation, _ in alone]
    for _ in range(20):
        actions = tuple(a[2] for a in infos["admissible_actions"])
        observations, rewards, ended, cut, infos = vector.step(actions)
        steps = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert list(observations) == [step[0] for step in steps]
        assert list(zip(rewards, ended, cut, strict=True)) == [step[1:4] for step in steps]
        assert list(infos["admissible_actions"]) == [s[4]["admissible_actions"] for s in steps]


def test_a_vector_environment_over_processes_works() -> None:
    vector = gymnasium.make_vec(
        "ALFWorld-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "spawn"},
        **TINY,
    )
    try:
        observations, _ = vector.reset(seed=[1, 2])
        assert observations == (make().reset(seed=1)[0], make().reset(seed=2)[0])
    finally:
        vector.close()


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
