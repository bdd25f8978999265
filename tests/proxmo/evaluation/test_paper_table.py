"""The paper's table: rows from evaluations and runs, written three ways."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from proxmo.config_loading import dump_toml
from proxmo.errors import DataError, UsageError
from proxmo.evaluation import Evaluation, SeedSpread, TypeResult
from proxmo.evaluation.paper_table import columns, measured_rows, notes, published_rows
from proxmo.reporting.paper import paper_latex, paper_markdown, paper_text
from proxmo_envs import description_of
from tests.fakes import counter_config

TYPES = description_of("ALFWorld-v0").task_types


def result(wins: int, *, env: str = "ALFWorld-v0", panel: str = "p", **changes: Any) -> Evaluation:
    """100 episodes; of ALFWorld 50 each of two types, all wins of the first first."""
    kinds = {}
    if env == "ALFWorld-v0":
        kinds = {
            TYPES["Pick"]: TypeResult.of(min(wins, 50), 50),
            TYPES["Heat"]: TypeResult.of(max(wins - 50, 0), 50),
        }
    made = Evaluation(
        env_id=env, split="s", panel=panel, panel_hash=panel * 64, tasks=100, planned=100,
        episodes=100, wins=wins, errors=0, success_rate=wins / 100, low=0.0, high=1.0,
        mean_score=wins / 100 + 0.1, mean_length=1.0, invalid_action_share=0.0, prompt_tokens=0,
        response_tokens=0, cost=0.0, by_task_type=kinds,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


@pytest.fixture
def directory(tmp_path: Path) -> Callable[..., Path]:
    """Makes evaluation directories."""

    def make(evaluation: Evaluation, method: str, model: str = "m", **asked: Any) -> Path:
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        path.mkdir()
        settings = {"panel": {}, "player": {"model": model, "method": method, **asked}}
        (path / "settings.json").write_text(json.dumps(settings))
        (path / "results.jsonl").write_text("")
        (path / "evaluation.json").write_text(json.dumps(evaluation.to_json()))
        return path

    return make


def test_a_row_has_the_types_the_whole_and_the_shop(directory):
    shop = result(40, env="WebShop-v0", panel="w")
    (row,) = measured_rows([directory(result(60), "grpo"), directory(shop, "grpo")])
    assert columns([row]) == ["Pick", "Heat", "All", "Score", "Succ."]
    assert row.cells == {
        "Pick": (100.0, None),
        "Heat": (20.0, None),
        "All": (60.0, None),
        "Score": (50.0, None),
        "Succ.": (40.0, None),
    }


def test_runs_of_a_method_share_a_row_with_mean_and_deviation(directory):
    rows = measured_rows([directory(result(wins), "grpo") for wins in (50, 60, 70)])
    assert [row.method for row in rows] == ["grpo"]
    assert rows[0].cells["All"] == (pytest.approx(60.0), pytest.approx(10.0))
    assert rows[0].cells["Heat"] == (pytest.approx(20.0), None)


def test_seeds_of_one_evaluation_have_a_deviation_too(directory):
    seeds = SeedSpread.of({0: 0.5, 1: 0.7})
    (row,) = measured_rows([directory(result(60, seeds=seeds), "grpo")])
    assert row.cells["All"] == (60.0, pytest.approx(100 * seeds.sd))


def test_the_difference_is_to_grpo_with_the_same_model_on_the_same_panel(directory):
    rows = measured_rows(
        [
            directory(result(80), "proxmo"),
            directory(result(60), "grpo"),
            directory(result(90), "proxmo", model="other"),
            directory(result(20, panel="q"), "gigpo"),
        ]
    )
    found = {(row.model, row.method): row.cells.get("All - GRPO") for row in rows}
    assert found == {
        ("m", "proxmo"): (pytest.approx(20.0), None),
        ("m", "grpo"): None,
        ("other", "proxmo"): None,
        ("m", "gigpo"): None,
    }


def test_different_panels_in_one_row_are_refused_and_in_two_rows_said(directory):
    here, there = result(60), result(60, panel="q")
    with pytest.raises(UsageError, match=r"different panels of ALFWorld-v0: p \(sha256 pppp"):
        measured_rows([directory(here, "grpo"), directory(there, "grpo")])
    said = notes(measured_rows([directory(here, "grpo"), directory(there, "proxmo")]))
    assert said == [
        f"ALFWorld-v0: panel p, sha256 {'p' * 64} (m grpo)",
        f"ALFWorld-v0: panel q, sha256 {'q' * 64} (m proxmo)",
        "ALFWorld-v0: rows of different panels do not compare",
    ]


def test_runs_that_were_asked_in_different_ways_have_no_mean(directory):
    cold, warm = (directory(result(60), "direct", temperature=t) for t in (0.0, 1.0))
    with pytest.raises(UsageError, match=r"direct with m was asked .*: temperature 0.0 and 1.0; "):
        measured_rows([cold, warm])
    # The budget of a prompt is the world's; checkpoints are what the mean is over.
    shop = result(40, env="WebShop-v0", panel="w")
    measured_rows([cold, directory(shop, "direct", temperature=1.0)])
    measured_rows([directory(result(60), "grpo", checkpoint=name) for name in "ab"])


def test_a_run_that_is_named_twice_is_one_run(directory):
    path = directory(result(60), "grpo")
    (row,) = measured_rows([path, path / ".." / path.name])
    assert row.cells["All"] == (60.0, None)


def test_what_could_not_be_scored_is_said(directory):
    rows = measured_rows([directory(result(60, errors=3), "grpo")])
    assert notes(rows)[-1] == "m grpo: 3 episodes ended in an error and are left out"


def test_where_nothing_was_scored_there_is_no_rate(directory):
    with pytest.raises(DataError, match="no scored episode: all 7 ended in errors"):
        measured_rows([directory(result(0, errors=7, episodes=0), "grpo")])


def test_a_training_run_counts_with_its_last_evaluation(tmp_path: Path):
    def run(name: str, *iterations: int) -> Path:
        path = tmp_path / name
        path.mkdir()
        (path / "config.toml").write_text(dump_toml(counter_config("some/model")))
        rows = [{"iteration": i, **result(40 + i).to_json()} for i in iterations]
        (path / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    trained, begun = measured_rows([run("a", 0, 20), run("b", 0)])
    assert (trained.model, trained.method, begun.method) == ("some/model", "grpo", "warm start")
    assert (trained.cells["All"], begun.cells["All"]) == ((60.0, None), (40.0, None))
    with pytest.raises(DataError, match="holds no finished evaluation"):
        measured_rows([run("c")])


def test_an_evaluation_that_is_not_finished_is_a_data_error(directory):
    path = directory(result(60), "grpo")
    (path / "evaluation.json").unlink()
    with pytest.raises(DataError, match="holds no finished evaluation"):
        measured_rows([path])


def test_other_worlds_have_columns_of_their_own(directory):
    rows = measured_rows([directory(result(60, env="tests.fakes:Counter-v0"), "grpo")])
    assert columns(rows) == ["Counter-v0 Score", "Counter-v0 Succ."]


def test_the_published_figures_are_those_of_the_paper():
    rows = {(row.model[8:12].rstrip("-"), row.method): row for row in published_rows()}
    proxmo = rows["1.5B", "proxmo"]
    assert [proxmo.cells[c][0] for c in TYPES] == [94.3, 92.9, 89.3, 92.2, 89.5, 87.0]
    assert proxmo.cells["All"] == (90.6, None)
    # 90.6 - 70.3 and 67.1 - 52.2.
    assert proxmo.cells["All - GRPO"][0] == pytest.approx(20.3)
    assert proxmo.cells["Succ. - GRPO"][0] == pytest.approx(14.9)
    assert rows["7B-I", "reflexion"].cells["Succ."] == (30.2, None)
    assert all(row.published for row in rows.values())


def table(directory: Callable[..., Path]) -> Any:
    runs = [directory(result(wins), "pro_x", model="50%") for wins in (70, 90)]
    return measured_rows([*runs, directory(result(60), "grpo", model="50%")])


def test_markdown_has_a_line_per_row_and_the_panels_below(directory):
    assert paper_markdown(table(directory)).splitlines() == [
        "| model | method | Pick | Heat | All | All - GRPO | panel |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        "| 50% | pro_x | 100.0 | 60.0 | 80.0 ± 14.1 | +20.0 | pppppppp |",
        "| 50% | grpo | 100.0 | 20.0 | 60.0 |  | pppppppp |",
        "",
        f"ALFWorld-v0: panel p, sha256 {'p' * 64}",
    ]


def test_latex_is_a_tabular_with_its_special_letters_escaped(directory):
    assert paper_latex(table(directory)).splitlines() == [
        f"% ALFWorld-v0: panel p, sha256 {'p' * 64}",
        r"\begin{tabular}{llrrrrr}",
        r"\toprule",
        r"model & method & Pick & Heat & All & All - GRPO & panel \\",
        r"\midrule",
        r"50\% & pro\_x & 100.0 & 60.0 & 80.0 $\pm$ 14.1 & +20.0 & pppppppp \\",
        r"50\% & grpo & 100.0 & 20.0 & 60.0 &  & pppppppp \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_text_aligns_the_same_cells(directory):
    console = Console(file=io.StringIO(), width=200)
    console.print(paper_text(table(directory)))
    text = console.file.getvalue().replace("│", " ")  # type: ignore[attr-defined]
    lines = [line.split() for line in text.splitlines()]
    assert ["50%", "pro_x", "100.0", "60.0", "80.0", "±", "14.1", "+20.0", "pppppppp"] in lines
