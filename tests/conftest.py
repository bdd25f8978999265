"""What every test relies on: a calm OpenMP, no network, the reference data where it exists."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Before torch is imported anywhere: with the default wait policy its threads spin, and a busy
# two-core machine runs five times slower. The hub is off limits: no test downloads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# A script's background job ignores Ctrl-C, and so do its children: those that tests press it in.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def official_games(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official ALFWorld games of both validation splits, packed."""
    from tests.proxmo_envs.alfworld.reference import pack_rows, read_rows

    rows = read_rows(shared, ["valid_seen", "valid_unseen"])
    return pack_rows(rows, tmp_path_factory.mktemp("official") / "games.packed")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data beside the checkout, or $PROXMO_SHARED; its tests skip without it."""
    path = Path(os.environ.get("PROXMO_SHARED", REPOSITORY.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no reference data at {path} (set PROXMO_SHARED to its directory)")
    return path
