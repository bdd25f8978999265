"""The errors the environments raise on purpose: what came, what was expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# What a message quotes of a name it does not know, and how many known ones it lists.
_LONGEST = 200
_LISTED = 10


class ProxmoEnvError(Exception):
    """Base of every error of `proxmo_envs`."""


class InvalidOptionError(ProxmoEnvError):
    """An argument of `gymnasium.make`, `reset` or `task_set` is not one of the possible values."""


class InvalidActionError(ProxmoEnvError):
    """An action is not a string."""


class NoEpisodeError(ProxmoEnvError):
    """An environment was used before its first reset."""


class UnknownTaskError(ProxmoEnvError):
    """A task id does not exist in the data the environment was made with."""


class GameFileError(ProxmoEnvError):
    """A file exists but cannot be read as the game (or the games) it should hold."""


class ContractError(ProxmoEnvError):
    """An environment breaks the contract of docs/environments.md; `findings` lists every breach."""

    def __init__(self, findings: Iterable[str], env: str = "the environment") -> None:
        self.findings = tuple(findings)
        super().__init__(f"{env} breaks the contract of environments: {'; '.join(self.findings)}")


class ServerError(ProxmoEnvError):
    """The server that an environment plays on does not answer, or refuses."""


class ShopFullError(ServerError):
    """The server has no room for one more episode."""


class DataNotFoundError(ProxmoEnvError):
    """A data directory or file does not exist."""


def quote(name: object) -> str:
    """Return what came, in quotes and no longer than a message should be."""
    return repr(str(name)[:_LONGEST])


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the text for a name that is not known, with near names where there are some."""
    names = sorted(known)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = f"known: {', '.join(names[:_LISTED])}{more}."
    return f"unknown {kind} {quote(name)}; {_near(name, names, n=3, cutoff=0.5) or listed}"


def _near(name: object, names: list[str], *, n: int, cutoff: float) -> str:
    near = difflib.get_close_matches(str(name)[:_LONGEST], names, n=n, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}?" if near else ""


def unknown_env(env_id: str) -> str:
    """Return the text for an environment id nobody registered, with near names of text worlds."""
    import gymnasium

    # Gymnasium's own hint proposes its robots.
    worlds = sorted(
        name
        for name, spec in gymnasium.registry.items()
        # An entry point is a text, a class or a function.
        if not str(getattr(spec.entry_point, "__module__", spec.entry_point)).startswith(
            "gymnasium."
        )
    )
    hint = _near(env_id, worlds, n=2, cutoff=0.7) or f"known: {', '.join(worlds)}"
    return (
        f"unknown environment {quote(env_id)}; {hint} "
        "(MODULE:ID imports the module that registers one of your own)"
    )
