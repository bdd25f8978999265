"""WebShop-v0 as a Gymnasium environment: the contract of design.md section 5."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import proxmo_envs
from proxmo.agents.parser import ParseReason, parse_action
from proxmo_envs.errors import (
    DataNotFoundError,
    InvalidOptionError,
    ProxmoEnvError,
    UnknownTaskError,
)
from proxmo_envs.webshop.env import WebShopEnv
from tests.proxmo_envs.test_text_env import trace
from tests.webshop_server.rows import row, wish, write
from webshop_server import shop
from webshop_server.data import bundled
from webshop_server.packing import pack

SMALL = {"difficulty": "small"}
INFO = {
    "task",
    "task_id",
    "task_type",
    "admissible_actions",
    "won",
    "score",
    "action_valid",
}


def make(**kwargs: Any) -> gymnasium.Env[str, str]:
    """Make the environment over a small bundled catalogue."""
    return gymnasium.make("WebShop-v0", **{**SMALL, **kwargs})


def shop_until(env: gymnasium.Env[str, str], rng: np.random.Generator) -> list[Any]:
    """Play one random episode to its end; return everything that was said."""
    said: list[Any] = [env.reset(seed=int(rng.integers(1000)))]
    ended = False
    while not ended:
        said.append(env.step(str(rng.choice(said[-1][-1]["admissible_actions"]))))
        ended = said[-1][2] or said[-1][3]
    return said


def open_first_product(env: gymnasium.Env[str, str]) -> dict[str, Any]:
    """Search for the instruction and open the first result; return the info."""
    task = env.unwrapped._now().play.task  # type: ignore[attr-defined]
    info = env.step(f"search[{task}]")[4]
    first = next(a for a in info["admissible_actions"] if a.startswith("click[b0"))
    return env.step(first)[4]


def test_the_environment_checker_has_no_complaint_about_the_original_profile() -> None:
    check_env(make(profile="original", split="test", render_mode="ansi").unwrapped)


def test_reset_gives_the_whole_info_and_the_task_of_the_observation() -> None:
    observation, info = make().reset(seed=0)
    assert set(info) == INFO
    assert observation == f"WebShop [SEP] Instruction: [SEP] {info['task']} [SEP] Search"
    assert info["admissible_actions"] == ["search[<your query>]"]
    assert info["score"] == 0.0 and info["won"] is False and info["action_valid"] is True


def test_a_purchase_terminates_and_pays_its_score_once() -> None:
    env = make()
    env.reset(seed=0)
    open_first_product(env)
    observation, reward, terminated, truncated, info = env.step("click[buy now]")
    assert terminated and not truncated and 0 < reward <= 1
    assert info["score"] == reward and info["won"] is (reward == 1.0)
    assert str(reward) in observation
    parts = info["reward_parts"]
    assert {"r_type", "r_att", "w_att", "r_price", "w_price"} <= set(parts)
    share = sum(parts[f"w_{name}"] * parts.get(f"r_{name}", 0) for name in ("att", "price"))
    share += parts.get("w_option", 0) * parts.get("r_option", 0)
    assert reward == pytest.approx(parts["r_type"] * share)
    after = env.step("click[back to search]")
    assert after[:4] == (observation, 0.0, True, False)
    assert after[4]["score"] == reward and not after[4]["action_valid"] and after[4]["hint"]


def test_what_is_not_on_offer_costs_a_step_and_is_told() -> None:
    env = make()
    observation, info = env.reset(seed=1)
    after, reward, terminated, truncated, told = env.step("click[the moon]")
    assert (after, reward, terminated, truncated) == (observation, 0.0, False, False)
    assert told["action_valid"] is False and "the moon" in told["hint"]
    assert told["admissible_actions"] == info["admissible_actions"]
    assert "hint" not in env.step("search[lamp]")[4]


def test_the_admissible_list_is_exact_and_holds_for_the_parser() -> None:
    env = make()
    rng = np.random.default_rng(0)
    seen = set()
    for seed in range(30):
        _, info = env.reset(seed=seed)
        info = env.step("search[pack of two <b> shirts]")[4]
        for _ in range(8):
            for action in info["admissible_actions"]:
                reply = f"<action>{action}</action>"
                assert parse_action(reply, info["admissible_actions"]).reason is ParseReason.OK
                outcome = copy.deepcopy(env).step(action)
                assert outcome[4]["action_valid"], action
                seen.add(action)
            if not info["admissible_actions"]:
                break
            info = env.step(str(rng.choice(info["admissible_actions"])))[4]
    assert len(seen) > 50


def test_any_search_is_admissible_where_there_is_a_bar_and_none_elsewhere() -> None:
    env = make()
    _, info = env.reset(seed=3)
    reply = "<action>search[red shoes, 2 < 3]</action>"
    assert parse_action(reply, info["admissible_actions"]).valid
    info = env.step("search[red shoes, 2 < 3]")[4]
    assert info["action_valid"]
    assert parse_action(reply, info["admissible_actions"]).reason is ParseReason.NOT_ADMISSIBLE
    assert not env.step("search[red shoes, 2 < 3]")[4]["action_valid"]


def test_a_packed_catalogue_is_played_like_the_one_it_was_made_from(tmp_path: Path) -> None:
    pack(bundled.catalogue("small").entries, tmp_path / "packed")
    envs = [make(), gymnasium.make("WebShop-v0", data=tmp_path / "packed")]
    rngs = [np.random.default_rng(1) for _ in envs]
    played = [[shop_until(env, rng) for _ in range(3)] for env, rng in zip(envs, rngs, strict=True)]
    assert played[0] == played[1]


def test_goals_in_free_words_are_played_on_request() -> None:
    _, info = make(goals="human").reset(seed=0)
    assert info["task_id"].startswith("human/") and info["task"]


@pytest.mark.parametrize("mode", ["text", "text_rich", "url", "html"])
def test_every_observation_mode_shows_the_same_walk(mode: str) -> None:
    env = make(observation_mode=mode)
    observation, info = env.reset(seed=6)
    start = {"text": "WebShop [SEP]", "text_rich": "WebShop\n", "html": "<!DOCTYPE html>"}
    assert observation.startswith(start.get(mode, "http://127.0.0.1:3000/"))
    info = open_first_product(env)
    reference = make()
    reference.reset(seed=6)
    assert open_first_product(reference)["admissible_actions"] == info["admissible_actions"]


def test_earlier_pages_and_actions_come_first_on_request() -> None:
    env = make(num_prev_obs=1, num_prev_actions=2)
    plain = make()
    first, _ = env.reset(seed=7)
    plain.reset(seed=7)
    page = plain.step("search[lamp]")[0]
    assert env.step("search[lamp]")[0] == f"{first} [SEP] search[lamp] [SEP] {page}"
    after = plain.step("click[back to search]")[0]
    expected = ["search[lamp]", page, "click[back to search]", after]
    assert env.step("click[back to search]")[0] == " [SEP] ".join(expected)
    assert env.reset()[0].startswith("WebShop [SEP] Instruction:")


def test_a_task_is_chosen_by_its_id_or_number_from_any_split() -> None:
    wanted = proxmo_envs.task_set("WebShop-v0", "test", **SMALL)[3].task_id
    env = make(split="train")
    observation, info = env.reset(options={"task_id": wanted})
    assert info["task_id"] == wanted
    number = int(wanted.rpartition("/")[2])
    for same in (number, np.int64(number)):
        assert env.reset(options={"goal_index": same})[0] == observation


def test_the_clean_splits_share_no_product() -> None:
    def products(split: str) -> set[str]:
        env = WebShopEnv(split=split, **SMALL)
        ids = proxmo_envs.task_set("WebShop-v0", split, **SMALL).ids
        source: Any = env._source
        return {source.start(task_id).goal.asin for task_id in ids}

    found = [products(split) for split in ("train", "validation", "test")]
    assert all(found) and len(set.union(*found)) == sum(map(len, found))


def test_manifests_tell_shops_and_profiles_apart() -> None:
    def manifest(**kwargs: Any) -> str:
        return proxmo_envs.task_set("WebShop-v0", "test", **{**SMALL, **kwargs}).manifest_hash

    assert manifest() == manifest(observation_mode="url", render_mode="ansi")
    assert len({manifest(), manifest(profile="original"), manifest(goals="human")}) > 1
    tasks = proxmo_envs.task_set("WebShop-v0", "test", **SMALL)
    original = proxmo_envs.task_set("WebShop-v0", "test", profile="original", **SMALL)
    shared = sorted(set(tasks.ids) & set(original.ids))[:3]
    hashes = {task.task_id: task.content_hash for task in original}
    assert all(t.content_hash != hashes[t.task_id] for t in tasks if t.task_id in shared)


@pytest.mark.parametrize(
    ("kwargs", "complaint"),
    [
        ({"split": "valid"}, "unknown split 'valid'; did you mean validation"),
        ({"profile": "cleen"}, "did you mean clean"),
        ({"goals": "humans"}, "did you mean human"),
        ({"observation_mode": "texts"}, "did you mean text"),
        ({"render_mode": "human"}, "unknown render_mode 'human'; known: ansi"),
        ({"difficulty": "tinny"}, "tiny"),
        ({"num_prev_obs": -1}, "0 or more"),
        ({"num_prev_obs": 1.5}, "0 or more; got 1.5 and 0"),
        ({"num_prev_actions": "two"}, "0 or more; got 0 and 'two'"),
        ({"show_attributes": "no"}, "show_attributes is a truth value .*, got 'no'"),
        ({"data": 5}, "data is a path, got 5"),
        ({"title_nouns": 5}, "title_nouns is a path, got 5"),
        ({"base_url": 5, "difficulty": None}, "base_url is an address like .*, got 5"),
    ],
)
def test_wrong_arguments_are_one_clear_error(kwargs: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ProxmoEnvError, match=complaint):
        WebShopEnv(**{**SMALL, **kwargs})


def test_a_split_without_goals_is_one_clear_error() -> None:
    with pytest.raises(InvalidOptionError, match="'train' of 'bundled' has no synthetic goals"):
        WebShopEnv(profile="original", **SMALL)


@pytest.mark.parametrize("profile", ["clean", "original"])
def test_goals_of_people_without_their_file_are_one_clear_error(
    profile: str, tmp_path: Path
) -> None:
    data = write(tmp_path / "raw", [row()])
    with pytest.raises(DataNotFoundError, match="no human goals.*from items_human_ins.json"):
        WebShopEnv(data, profile=profile, goals="human")


def test_what_a_split_without_goals_is_told_fits_its_profile(tmp_path: Path) -> None:
    unmeetable = row(customization_options={"pack": [{"value": " "}]})
    data = write(tmp_path / "raw", [unmeetable], {"B000000001": wish("soft wool")})
    with pytest.raises(InvalidOptionError, match="profile 'clean' goals that no"):
        WebShopEnv(data)
    with pytest.raises(InvalidOptionError, match="profile 'original' the first 500 are for test"):
        WebShopEnv(data, profile="original")


@pytest.mark.parametrize("name", ["nowhere", "x" * 5000])
def test_missing_data_is_one_clear_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match=f"no catalogue at {tmp_path}/{name[:20]}"):
        WebShopEnv(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"task_id": "synthetic/0000000", "goal_index": 0}, InvalidOptionError),
        ({"goal_index": "3"}, InvalidOptionError),
        ({"goal_index": True}, InvalidOptionError),
        ({"goal_index": -1}, UnknownTaskError),
        ({"goal_index": 10**9}, UnknownTaskError),
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


def test_a_snapshot_can_be_restored_any_number_of_times() -> None:
    env = WebShopEnv(**SMALL, num_prev_obs=1)
    env.reset(seed=7)
    open_first_product(env)
    snapshot = env.snapshot()
    endings = []
    for _ in range(2):
        restored = env.restore(snapshot)
        endings.append((restored, env.step("click[features]"), env.step("click[< prev]")))
    assert endings[0] == endings[1]
    other = WebShopEnv(**SMALL)
    assert other.restore(snapshot)[1]["task_id"] == endings[0][0][1]["task_id"]


def test_a_snapshot_of_another_observation_mode_is_refused() -> None:
    env, other = WebShopEnv(**SMALL), WebShopEnv(**SMALL, observation_mode="html")
    env.reset(seed=7)
    with pytest.raises(InvalidOptionError, match="observation_mode='text', this one has 'html'"):
        other.restore(env.snapshot())


def test_a_history_without_end_is_as_long_as_the_episode() -> None:
    env, plain = make(num_prev_obs=10**30), make()
    first, _ = env.reset(seed=7)
    plain.reset(seed=7)
    assert env.step("search[lamp]")[0] == f"{first} [SEP] {plain.step('search[lamp]')[0]}"


def test_a_deep_copy_is_an_environment_of_its_own_in_the_same_shop() -> None:
    env = make(max_episode_steps=5)
    env.reset(seed=8)
    open_first_product(env)
    twin = copy.deepcopy(env)
    twin.step("click[buy now]")
    assert env.step("click[buy now]")[1] > 0
    assert twin.unwrapped._source is env.unwrapped._source  # type: ignore[attr-defined]
    # The step limit is copied, too: both have taken three of five steps.
    assert [env.step("look")[3] for _ in range(2)] == [False, True]
    assert [twin.step("look")[3] for _ in range(2)] == [False, True]
    assert env.reset()[1]["task_id"] == twin.reset()[1]["task_id"]


def test_environments_with_the_same_arguments_share_one_shop() -> None:
    # What earlier tests opened would decide which catalogues are still kept.
    shop._open.cache_clear()
    shop._stock.cache_clear()
    first: Any = WebShopEnv(**SMALL)
    second: Any = WebShopEnv(split="test", observation_mode="url", **SMALL)
    assert first._source.shop is second._source.shop
    original: Any = WebShopEnv(profile="original", split="test", **SMALL)
    assert original._source.shop.index is first._source.shop.index


@pytest.mark.parametrize("profile", ["clean", "original"])
def test_the_expert_on_request_buys_and_mostly_wins(profile: str) -> None:
    env = make(profile=profile, split="test", expert_action=True)
    scores = []
    for seed in range(20):
        _, info = env.reset(seed=seed)
        ended = False
        while not ended:
            _, _, terminated, truncated, info = env.step(info["expert_action"])
            ended = terminated or truncated
        assert terminated
        scores.append(info["score"])
    assert np.mean(scores) > 0.8


def test_the_expert_reads_text_whatever_the_agent_is_shown() -> None:
    told = [
        make(observation_mode=mode, expert_action=True).reset(seed=1) for mode in ("url", "text")
    ]
    assert told[0][1]["expert_action"] == told[1][1]["expert_action"]


def test_a_forked_process_shops_on() -> None:
    # The original hangs there: its search engine does not survive a fork.
    make().reset(seed=0)
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        assert list(pool.map(trace, ["webshop"] * 2, range(2))) == [
            trace("webshop", k) for k in range(2)
        ]


def test_memory_stays_flat_over_many_episodes() -> None:
    env = WebShopEnv(**SMALL)
    rng = np.random.default_rng(0)
    for _ in range(20):
        shop_until(gymnasium.wrappers.TimeLimit(env, 15), rng)
    gc.collect()
    tracemalloc.start()
    for _ in range(100):
        shop_until(gymnasium.wrappers.TimeLimit(env, 15), rng)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # One live session, and titles whose nouns were found meanwhile; not a hundred sessions.
    assert kept < 500_000
