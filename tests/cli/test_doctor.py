"""`proxmo doctor` looks at what a run needs and says what is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proxmo_envs.alfworld.packed import write_packed
from tests.proxmo_envs.alfworld.small import kitchen


def findings(out: str) -> dict[str, dict]:
    return {finding["name"]: finding for finding in json.loads(out)}


def test_a_working_installation_is_exit_code_0(proxmo):
    done = proxmo("doctor", "--json")
    found = findings(done.out)
    assert all(finding["ok"] for finding in found.values()), found
    assert done.code == 0
    assert {"python", "torch", "transformers", "faiss", "ALFWorld-v0", "WebShop-v0"} <= found.keys()
    assert "threads" in found["torch"]["text"]


def test_missing_data_is_a_problem_and_missing_faiss_is_none_as_only_an_option_needs_it(
    proxmo, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "faiss", None)
    done = proxmo("doctor", "--data", "no/games/here")
    assert done.code == 1
    problems = [line for line in done.out.splitlines() if "  problem  " in line]
    assert [line.partition("  ")[0] for line in problems] == ["data no/games/here"]
    (faiss,) = [line for line in done.out.splitlines() if line.startswith("faiss ")]
    assert 'top_k needs it: pip install "proxmo[cpu]"' in faiss


def test_games_of_a_validation_split_alone_are_no_problem(proxmo):
    write_packed(Path("games.packed"), {"valid_unseen": [(kitchen(task_id="valid_unseen/a"), "")]})
    found = findings(proxmo("doctor", "--data", "games.packed", "--json").out)
    assert found["data games.packed"]["text"].startswith("1 tasks in split valid_unseen;")
