"""`proxmo play`, by a pipe and at a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome
from tests.proxmo_envs.alfworld.small import kitchen, write_game
from tests.webshop_server.rows import row, write

Proxmo = Callable[..., Outcome]
FIRST = "generated/train/tiny/000000"


@pytest.fixture
def play(proxmo: Proxmo, type_in: Callable[[str], None]) -> Proxmo:
    """Plays the commands that are piped in."""

    def call(commands: str, *arguments: str) -> Outcome:
        type_in(commands)
        return proxmo("play", *arguments)

    return call


def test_a_pipe_of_commands_plays_and_leaves_a_transcript(play: Proxmo) -> None:
    done = play("inventory\ndance\n", "--task", FIRST)
    assert done.code == 0
    assert done.out.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle")
    assert done.out.endswith(
        "Your task is to: put a clean tomato in fridge.\n"
        "> inventory\nYou are not carrying anything.\n"
        "> dance\nNothing happens.\n"
        "left after 2 steps, score 0\n"
    )
    assert FIRST in done.error_line


def test_the_plan_of_the_expert_wins_and_ends_the_game(play: Proxmo) -> None:
    (line,) = (x for x in play("", "--task", FIRST, "--expert").out.splitlines() if "plan: " in x)
    plan = line.removeprefix("plan: ").split(", ")
    done = play("\n".join([*plan, "look"]), "--task", FIRST, "--expert")
    assert done.out.endswith(f"won after {len(plan)} steps, score 1\n") and "> look" not in done.out
    assert done.out.count("expert: ") == len(plan)


def test_a_question_mark_lists_what_can_be_done_and_costs_no_step(play: Proxmo) -> None:
    done = play("?\n:quit\nlook\n", "--task", FIRST)
    assert "\ngo to fridge 1\n" in done.out and done.out.endswith("left after 0 steps, score 0\n")


def test_arguments_of_the_environment_are_set(play: Proxmo) -> None:
    done = play("look\n" * 9, "--task", FIRST, "--set", "max_episode_steps=3")
    assert done.out.endswith("over after 3 steps, score 0\n")
    done = play("move mug 1 to shelf 1\n", "--set", "difficulty=tiny", "--set", "grammar=put")
    assert "hint: this game's grammar is 'put': try 'put mug 1 in/on shelf 1'" in done.out


def test_the_same_seed_draws_the_same_task(play: Proxmo) -> None:
    first, second = (play("", "--seed", "7", "--set", "difficulty=tiny") for _ in range(2))
    assert first.out == second.out


def test_a_game_of_ones_own_that_cannot_be_won_is_played_all_the_same(
    play: Proxmo, tmp_path: Path
) -> None:
    path = write_game(tmp_path, kitchen(items=()))
    done = play("look\n", "--data", str(path), "--expert")
    assert done.code == 0 and "no plan: " in done.out


def test_what_the_terminal_has_no_letters_for_is_shown_by_number(tmp_path: Path) -> None:
    data = write(tmp_path / "raw", [row(name="Écharpe \ud800")])
    done = subprocess.run(
        [sys.executable, "-m", "proxmo_cli", "play", "--env", "WebShop-v0", "--data", data]
        + ["--set", "profile=original", "--split", "test"],
        input=b"search[scarf \xff]\n",
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
    )
    assert done.returncode == 0, done.stderr
    assert "> search[scarf \ufffd]" in done.stdout.decode()
    assert r"Écharpe \ud800 [SEP] $12.99" in done.stdout.decode()


def test_at_a_terminal_tab_completes_what_can_be_done(repository: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "proxmo_cli", "play", "--task", FIRST]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "dumb"}
    )
    os.close(theirs)
    try:
        assert "> " in read_until(ours, "> ")
        os.write(ours, b"go to fr\t\n")
        # Up to the next prompt: what comes before it is not yet read as keys.
        said = read_until(ours, "The fridge 1 is closed.\r\n> ")
        assert "go to fridge 1" in said and "You arrive at fridge 1." in said
        os.write(ours, b"\x04")
        assert "left after 1 steps" in read_until(ours, "score 0")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, wanted: str, seconds: float = 120) -> str:
    """Read what a terminal shows until `wanted` is there."""
    said, end = "", time.monotonic() + seconds
    while wanted not in said:
        assert time.monotonic() < end, f"{wanted!r} did not come: {said!r}"
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 4096).decode()
    return said
