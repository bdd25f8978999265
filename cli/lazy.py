"""Groups of commands that are imported when they are used, so that `--help` answers at once."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

CONTEXT = {"help_option_names": ["-h", "--help"]}


class LazyGroup(click.Group):
    """A group that imports only the command that is called, and proposes near names for others.

    Args:
        modules: name of the command -> module of this package (it holds `command`), line of help.
        kind: noun for its commands in the error about an unknown one.
        settings: those of `click.Group`.
    """

    def __init__(
        self,
        *,
        modules: Mapping[str, tuple[str, str]],
        kind: str = "command",
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.modules = modules
        self.kind = kind

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(self.modules)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or propose the ones with a near name."""
        known = list(self.modules)
        if args and args[0] not in known and not args[0].startswith("-"):
            from proxmo.errors import UnknownNameError

            raise UnknownNameError(self.kind, args[0], known)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.modules:
            return None
        module = importlib.import_module(f".{self.modules[cmd_name][0]}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.modules.items()])
