"""The modules of the shop import only layers below their own, and never each other in a circle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

# Each layer may import itself and these.
BELOW = {
    "errors": set(),
    "data": {"errors"},
    "search": {"errors", "data"},
    "rules": {"errors", "data"},
    "packing": {"errors", "data", "search", "rules"},
    "shop": {"errors", "data", "search", "rules", "packing"},
    "session": {"errors", "data", "rules", "shop"},
    "app": {"errors", "data", "rules", "shop", "session"},
}


def module_imports(repository: Path) -> dict[str, set[str]]:
    """For each module of the shop, the modules of the shop that it imports, also in functions."""
    files = {
        ".".join(path.relative_to(repository).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (repository / "webshop_server").rglob("*.py")
        if path.stem != "bench"
    }
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: the relative import hides its layer"
                for alias in node.names:
                    module_name = f"{node.module}.{alias.name}"
                    names.add(module_name if module_name in files else str(node.module))
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        found[module] = names & set(files)
    return found


def test_arrows_between_layers_point_one_way(repository: Path) -> None:
    imports = module_imports(repository)
    assert len(imports) > 30
    for module, others in imports.items():
        if module == "webshop_server":
            continue
        layer = module.split(".")[1]
        allowed = BELOW[layer] | {layer}
        assert {other.split(".")[1] for other in others} <= allowed, module


def test_no_module_imports_itself_through_others(repository: Path) -> None:
    TopologicalSorter(module_imports(repository)).prepare()
