"""What `proxmo bench env --env WebShop-v0` measures: the bundled catalogues, or `--data`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proxmo_envs.bench import Subject
from webshop_server.data.bundled import DIFFICULTIES


def sizes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the arguments of the environment for each bundled catalogue."""
    return {difficulty: {"difficulty": difficulty} for difficulty in DIFFICULTIES}


SUBJECT = Subject(sizes)
