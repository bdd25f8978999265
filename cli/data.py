"""`proxmo data`: bring tasks into the form that loads at once."""

from __future__ import annotations

import click

from .lazy import CONTEXT, LazyGroup

# name -> module and one line of help, as in `main`.
_COMMANDS: dict[str, tuple[str, str]] = {
    "alfworld": ("data_alfworld", "Pack the official ALFWorld games into one file."),
    "webshop": ("data_webshop", "Pack the raw files of WebShop into one directory."),
}


@click.group(
    "data", cls=LazyGroup, modules=_COMMANDS, kind="data command", context_settings=CONTEXT
)
def command() -> None:
    """Prepare the tasks of an environment."""
