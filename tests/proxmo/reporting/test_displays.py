"""The listeners show what a run says: plain lines in a pipe, a panel on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from proxmo.reporting.history import RECENT, History
from proxmo.reporting.lines import PHASE_EVERY_S, PlainLines
from proxmo.reporting.live import LiveDisplay

METRICS = {
    "train/success_rate": 0.5625,
    "train/success_rate_low": 0.471,
    "train/success_rate_high": 0.649,
    "train/success_rate_heat": 0.25,
    "train/success_rate_cool": 0.75,
    "train/return_mean": 0.5,
    "train/episode_length_steps": 11.25,
    "train/invalid_action_share": 0.031,
    "loss/kl": 0.0021,
    "loss/entropy": 0.8125,
    "loss/clip_fraction": 0.012,
    "speed/tokens_per_s": 4712.0,
    "time/iteration_s": 10.0,
}
EVALUATION = {
    "split": "valid_unseen",
    "success_rate": 0.885,
    "low": 0.806,
    "high": 0.935,
    "episodes": 96,
    "errors": 0,
}


class Clock:
    """A clock that only goes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def plain(clock: Clock) -> tuple[PlainLines, io.StringIO]:
    stream = io.StringIO()
    return PlainLines(stream, History(clock=clock), clock), stream


def drawn(display: LiveDisplay) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(display.render())
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def display(clock: Clock):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    display = LiveDisplay(console, "proxmo · ALFWorld-v0", History(clock=clock))
    yield display
    display.close()


def test_an_iteration_is_one_line_with_everything_measured(clock: Clock):
    lines, stream = plain(clock)
    lines.iteration(METRICS, 1, 40)
    assert stream.getvalue() == (
        "iteration 1/40  success 56.2 % [47.1, 64.9]  return 0.500  episode steps 11.2  "
        "invalid actions 3.1 %  KL 0.0021  entropy 0.812  clip fraction 0.012  tokens/s 4.7 k  "
        "left 6:30  by type: cool 75.0 %, heat 25.0 %\n"
    )


def test_what_was_not_measured_is_left_out_of_the_line(clock: Clock):
    lines, stream = plain(clock)
    clock.now = 3.0
    lines.iteration({"loss/kl": 0.5, "loss/entropy": float("nan")}, 1, 2)
    assert stream.getvalue() == "iteration 1/2  KL 0.5000  left 0:03\n"


def test_a_phase_is_said_once_and_again_only_when_it_takes_long(clock: Clock):
    lines, stream = plain(clock)
    for done in range(3):
        lines.phase("cloning", done=done, total=9, text=f"loss {done}")
    clock.now += PHASE_EVERY_S
    lines.phase("cloning", done=8, total=9)
    lines.phase("rollout")
    lines.phase("cloning", done=1, total=9)
    assert stream.getvalue().splitlines() == ["cloning  0/9  loss 0", "cloning  8/9", "rollout"]


def test_an_evaluation_is_a_line_that_counts_errors_only_when_there_are_some(clock: Clock):
    lines, stream = plain(clock)
    lines.evaluation(EVALUATION)
    lines.evaluation({**EVALUATION, "errors": 2})
    first, second = stream.getvalue().splitlines()
    assert first == "evaluation on valid_unseen: success 88.5 % [80.6, 93.5], 96 episodes"
    assert second == f"{first}, 2 errors"


def test_the_panel_shows_progress_metrics_and_task_types(display: LiveDisplay):
    display.iteration({**METRICS, "train/success_rate": 0.25}, 1, 40)
    display.iteration(METRICS, 2, 40)
    text = drawn(display)
    for part in ("ALFWorld-v0", "iteration 2/40", "6:20 left", "56.2 %", "[47.1, 64.9]", "▃▅"):
        assert part in text
    for part in ("0.500", "11.2", "3.1 %", "0.0021", "0.812", "0.012", "4.7 k", "heat", "25.0 %"):
        assert part in text


def test_the_panel_keeps_the_phases_of_the_warm_start_until_training_begins(
    display: LiveDisplay, clock: Clock
):
    display.phase("copying", done=1, total=2, text="loss 2.1")
    clock.now = 30.0
    display.phase("cloning", done=1, total=4, text="loss 0.9")
    clock.now = 37.0
    text = drawn(display)
    assert "copying" in text and "0:30" in text and "loss 2.1" in text
    assert "cloning" in text and "0:07" in text and "loss 0.9" in text
    display.iteration(METRICS, 1, 40)
    assert "cloning" not in drawn(display)
    display.phase("rollout", done=1, total=4)
    assert "rollout" in drawn(display)


def test_a_phase_that_comes_back_starts_at_zero(display: LiveDisplay, clock: Clock):
    display.phase("evaluating", done=96, total=96)
    clock.now = 50.0
    display.phase("rollout")
    clock.now = 60.0
    display.phase("evaluating", done=1, total=96)
    clock.now = 61.0
    line = next(line for line in drawn(display).splitlines() if "evaluating" in line)
    assert "0:01" in line


def test_the_panel_keeps_the_last_evaluation(display: LiveDisplay):
    display.evaluation(EVALUATION)
    assert "88.5 % [80.6, 93.5]" in drawn(display)


def test_brackets_in_names_are_text_and_no_markup(display: LiveDisplay):
    display.phase("loading [bold]model[/]", text="[red]path")
    display.iteration({"train/success_rate_[odd]": 1.0}, 1, 2)
    display.phase("loading [bold]model[/]", text="[red]path")
    text = drawn(display)
    assert all(part in text for part in ("loading [bold]model[/]", "[red]path", "[odd]"))


def test_time_left_follows_the_pace_of_late_and_counts_down(clock: Clock):
    history = History(clock=clock)
    assert history.time_left() is None
    history.record({"time/iteration_s": 1000.0}, 1, 100)
    for iteration in range(2, 2 + RECENT):
        history.record({"time/iteration_s": 10.0}, iteration, 100)
    assert history.time_left() == 10.0 * (100 - 1 - RECENT)
    clock.now += 4.0
    assert history.time_left() == 10.0 * (100 - 1 - RECENT) - 4.0


def test_time_left_is_never_more_than_the_time_budget(clock: Clock):
    history = History(minutes=2, clock=clock)
    clock.now = 90.0
    history.record({"time/iteration_s": 90.0}, 1, 100)
    assert history.time_left() == 30.0
    clock.now = 130.0
    assert history.time_left() == 0.0


def test_values_that_are_not_finite_do_not_enter_the_history(clock: Clock):
    history = History(clock=clock)
    history.record({"loss/kl": float("nan"), "loss/entropy": 1.0}, 1, 2)
    assert (history.latest("loss/kl"), history.latest("loss/entropy")) == (None, 1.0)


def test_the_interval_is_no_task_type(clock: Clock):
    history = History(clock=clock)
    history.record(METRICS, 1, 2)
    assert list(history.task_types()) == ["cool", "heat"]
