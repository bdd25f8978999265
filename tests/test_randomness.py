"""Random numbers come from generators that somebody owns."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

# Seeding or drawing from the state that a whole process shares.
SHARED = {"np.random", "numpy.random", "random", "torch", "torch.cuda", "torch.random"}
FORBIDDEN = {"seed", "manual_seed", "manual_seed_all", "set_seed", "rand", "randn", "randint"}


def calls_on_shared_state(source: str) -> list[str]:
    """Calls like `np.random.seed(...)` that are not inside `with torch.random.fork_rng(...)`."""
    found: list[str] = []

    def visit(node: ast.AST, forked: bool) -> None:
        if isinstance(node, ast.With):
            forked = forked or any("fork_rng" in ast.unparse(i.context_expr) for i in node.items)
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            bare = not owner and name in {"set_seed", "manual_seed"}
            if bare or (owner in SHARED and name in FORBIDDEN and not forked):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        for child in ast.iter_child_nodes(node):
            visit(child, forked)

    visit(ast.parse(source), False)
    return found


@pytest.mark.parametrize("package", ["proxmo", "proxmo_envs", "webshop_server", "cli"])
def test_no_package_touches_the_random_state_of_the_process(package: str, repository: Path):
    files = sorted((repository / package).rglob("*.py"))
    assert files
    found = {str(path): calls_on_shared_state(path.read_text(encoding="utf-8")) for path in files}
    assert {path: calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "source",
    [
        "np.random.seed(0)",
        "import random\nrandom.seed(1)",
        "def f():\n    torch.manual_seed(3)",
        "x = np.random.rand(2)",
        "torch.cuda.manual_seed_all(0)",
        "from transformers import set_seed\nset_seed(0)",
        "with torch.no_grad():\n    torch.manual_seed(3)",
    ],
)
def test_the_search_finds(source: str):
    assert len(calls_on_shared_state(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "rng = np.random.default_rng(0)\nrng.random()",
        "generator.manual_seed(0)",
        "with torch.random.fork_rng(devices=[]):\n    torch.manual_seed(3)",
    ],
)
def test_the_search_lets_pass(source: str):
    assert calls_on_shared_state(source) == []
