"""No package imports one above it: a reader can start at the bottom and never look up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

# From the ground up; "ground" is every module directly in proxmo/.
LAYERS = (
    "ground",
    "credit",
    "policies",
    "agents",
    "rollout",
    "evaluation",
    "training",
    "reporting",
)


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "ground"


def imports(file: Path) -> Iterator[str]:
    """Modules of proxmo that a file imports, in functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            # `from proxmo import credit` imports a package or a name.
            bare = node.module == "proxmo"
            yield from (f"proxmo.{one.name}" for one in node.names) if bare else (node.module,)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def modules(repository: Path) -> dict[str, set[str]]:
    """What each module of proxmo imports, apart from proxmo/__init__.py, which opens them all."""
    found = {}
    for file in sorted((repository / "proxmo").rglob("*.py")):
        name = ".".join(file.relative_to(repository).with_suffix("").parts)
        if name != "proxmo.__init__":
            mine = {one for one in imports(file) if one.partition(".")[0] == "proxmo"}
            found[name.removesuffix(".__init__")] = mine
    return found


def test_every_package_is_a_layer(repository: Path):
    packages = {path.parent.name for path in (repository / "proxmo").glob("*/__init__.py")}
    assert packages == set(LAYERS) - {"ground"}


def test_no_module_imports_a_layer_above_its_own(repository: Path):
    upward = [
        f"{module} imports {other}"
        for module, others in modules(repository).items()
        for other in others
        if LAYERS.index(layer_of(other)) > LAYERS.index(layer_of(module))
    ]
    assert upward == []


def test_no_modules_import_each_other_in_a_circle(repository: Path):
    graph = {
        # A package is loaded by its own modules; that is no circle.
        module: {other for other in others if not module.startswith(f"{other}.")}
        for module, others in modules(repository).items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_the_lower_packages_know_nothing_of_proxmo(repository: Path):
    for package, allowed in {
        "proxmo_envs": {"proxmo_envs", "webshop_server"},
        "webshop_server": {"webshop_server"},
        "proxmo": {"proxmo", "proxmo_envs"},
    }.items():
        for file in (repository / package).rglob("*.py"):
            ours = {one.partition(".")[0] for one in imports(file)}
            ours &= {"proxmo", "proxmo_cli", "proxmo_envs", "webshop_server"}
            assert ours <= allowed, file
