"""`proxmo bench`: speed, as ratios measured side by side in one run."""

from __future__ import annotations

import click

from .lazy import CONTEXT, LazyGroup

# name -> module and one line of help, as in `main`.
_COMMANDS: dict[str, tuple[str, str]] = {
    "credit": ("bench_credit", "Credit assignment beside a plain dense version."),
    "env": ("bench_env", "An environment beside its original, by size of its rooms."),
    "train": ("bench_train", "The training loop beside TRL's, its rollout, its memory."),
    "search": ("bench_search", "The search of the shop beside a plain one."),
    "webshop-http": ("bench_webshop", "A server of the shop under load."),
}


@click.group("bench", cls=LazyGroup, modules=_COMMANDS, kind="benchmark", context_settings=CONTEXT)
def command() -> None:
    """Measure the speed of a part, beside what it replaces."""
