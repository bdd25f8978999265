"""`proxmo bench`: speed, as ratios measured side by side in one run.

Each module holds the command that measures one part. Nothing outside this package imports them.
"""

from __future__ import annotations

import click

from ..lazy import CONTEXT, LazyGroup

# name -> module and one line of help, as in `main`.
_COMMANDS = {
    "credit": ("bench.credit", "Credit assignment beside a plain dense version."),
    "credit-quality": ("bench.credit_quality", "Methods beside the true advantages of a policy."),
    "env": ("bench.env", "An environment beside its original, by size of its rooms."),
    "train": ("bench.train", "The training loop beside TRL's, its rollout, its memory."),
    "search": ("bench.search", "The search of the shop beside a plain one."),
    "webshop-http": ("bench.webshop", "A server of the shop under load."),
}


@click.group("bench", cls=LazyGroup, modules=_COMMANDS, kind="benchmark", context_settings=CONTEXT)
def command() -> None:
    """Measure the speed of a part, beside what it replaces."""
