"""The flags of `proxmo eval` that say which model is asked, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxmo.config import EnvConfig
from proxmo.errors import UsageError

from .ranges import Number

if TYPE_CHECKING:
    from proxmo.evaluation import Evaluation, Panel, Player

_DEFAULT_ENV = "ALFWorld-v0"
# What nobody trains on, by the name it has in an environment.
_DEFAULT_SPLIT = {"WebShop-v0": "test"}
_USUAL_SPLIT = "valid_unseen"

# Which flags belong to which player. What is asked by "agent" holds for every language model.
_ASKING = ("agent", "style", "temperature", "max_tokens", "prompt_tokens", "tries")
_API = ("base_url", "rate", "timeout", "price_in", "price_out")
_ALLOWED = {
    "checkpoint": {*_ASKING, "device"},
    "model": {*_ASKING, "device"},
    "api": {*_ASKING, *_API},
    "policy": set[str](),
}
# A checkpoint is asked as it was trained; these change that only for another agent.
_OTHER_AGENT = {"style", "max_tokens", "prompt_tokens", "tries"}
# What one agent alone takes.
_OWN = {"style": "direct", "tries": "reflexion"}
# Flags whose field in the library has another name.
_FIELDS = {"max_tokens": "max_new_tokens"}
_WORKERS = {"api": 8, "other": 64}

_FLAGS = (
    click.option(
        "--checkpoint",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Player: a checkpoint, or a run directory for its latest one.",
    ),
    click.option("--model", metavar="M", help="Player: directory or hub id of a model."),
    click.option("--api", metavar="NAME", help="Player: a model behind an OpenAI-compatible API."),
    click.option("--policy", metavar="NAME", help="Player: expert or random."),
    click.option("--agent", metavar="A", help="direct, react or reflexion  [direct]"),
    click.option(
        "--style", metavar="S", help="Prompt of the direct agent: think, terse, bare  [think]"
    ),
    click.option(
        "--temperature",
        type=Number(min=0),
        metavar="T",
        help="Sampling temperature, 0 is greedy  [0.4, or as in training]",
    ),
    click.option(
        "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Longest reply  [512]"
    ),
    click.option(
        "--prompt-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Longest prompt  [2048, WebShop 4096, a whole episode 8192]",
    ),
    click.option(
        "--tries", type=click.IntRange(min=1), metavar="N", help="Tries per task, Reflexion  [3]"
    ),
    click.option("--device", metavar="D", help="auto, cpu, cuda or cuda:1  [auto]"),
    click.option("--base-url", metavar="URL", help="Address of the API  [$OPENAI_BASE_URL]"),
    click.option(
        "--rate",
        type=Number(min=0, min_open=True),
        metavar="N",
        help="Most requests per minute  [no limit]",
    ),
    click.option(
        "--timeout",
        type=Number(min=0, min_open=True),
        metavar="S",
        help="Most seconds for one reply  [120]",
    ),
    click.option("--price-in", type=Number(min=0), metavar="P", help="Per million tokens read."),
    click.option(
        "--price-out", type=Number(min=0), metavar="P", help="Per million tokens written."
    ),
)


def player_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags to a command, which hands them to `Asked.pop`."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


@dataclass(frozen=True, slots=True)
class Asked:
    """Who plays: its kind, its name, and the flags that were given with it."""

    kind: str
    name: str
    flags: Mapping[str, Any]

    @classmethod
    def pop(cls, options: dict[str, Any]) -> Asked:
        """Takes the flags out of a command's options; refuses what does not fit together."""
        players = {kind: options.pop(kind) for kind in _ALLOWED}
        given = {kind: name for kind, name in players.items() if name is not None}
        if len(given) != 1:
            raise UsageError("give one of --checkpoint DIR, --model M, --api NAME, --policy NAME")
        ((kind, name),) = given.items()
        flags = {flag: options.pop(flag) for flag in (*_ASKING, *_API, "device")}
        flags = {flag: value for flag, value in flags.items() if value is not None}
        strange = [flag for flag in flags if flag not in _ALLOWED[kind]]
        if strange:
            raise UsageError(f"{_named(strange)} has no meaning for --{kind}")
        changing = [flag for flag in flags if flag in _OTHER_AGENT]
        if kind == "checkpoint" and changing and "agent" not in flags:
            raise UsageError(
                f"a checkpoint is asked as it was trained; {_named(changing)} needs --agent"
            )
        agent = flags.get("agent", "direct")
        if others := [flag for flag, own in _OWN.items() if flag in flags and agent != own]:
            raise UsageError(f"{_named(others)} has no meaning for --agent {agent}")
        if options["workers"] is None:
            options["workers"] = _WORKERS.get(kind, _WORKERS["other"])
        return cls(kind, str(name), flags)

    @property
    def asking(self) -> dict[str, Any]:
        """The fields of `Asking` that were given."""
        return {_FIELDS.get(f, f): value for f, value in self.flags.items() if f in _ASKING}

    def evaluate(
        self, panel: Panel | None, choice: Mapping[str, Any], options: dict[str, Any]
    ) -> Evaluation:
        """Plays a panel, or else the tasks of a choice: `env`, `split`, `data`, `episodes`."""
        tasks: dict[str, Any] = dict(choice) if panel is None else {"panel": panel}
        if self.kind == "checkpoint" and "agent" not in self.flags:
            from proxmo.evaluation import evaluate_checkpoint

            return evaluate_checkpoint(Path(self.name), **tasks, **self.flags, **options)
        if self.kind == "checkpoint":
            return self._evaluate_checkpoint(panel, choice, options)
        if panel is None:
            tasks["env"] = tasks["env"] or _DEFAULT_ENV
            name = tasks["env"].rpartition(":")[2]
            tasks["split"] = tasks["split"] or _DEFAULT_SPLIT.get(name, _USUAL_SPLIT)
        if self.kind == "policy":
            from proxmo.evaluation import evaluate_policy

            return evaluate_policy(self.name, **tasks, **options)
        from proxmo.evaluation import evaluate, make_panel

        if panel is None:
            world = EnvConfig(id=tasks["env"], data=tasks["data"])
            panel = make_panel(world, [tasks["split"]], episodes=tasks["episodes"])
        with self._player(panel.env.id, options) as player:
            return evaluate(player, panel, **options)

    def _evaluate_checkpoint(
        self, panel: Panel | None, choice: Mapping[str, Any], options: dict[str, Any]
    ) -> Evaluation:
        from proxmo.evaluation import checkpoint_panel, evaluate
        from proxmo.evaluation.baselines import asked_checkpoint

        world = choice["env"] if panel is None else panel.env.id
        device = self.flags.get("device", "auto")
        player, config = asked_checkpoint(Path(self.name), self.asking, world=world, device=device)
        return evaluate(player, panel or checkpoint_panel(config, **choice), **options)

    @contextmanager
    def _player(self, world: str, options: Mapping[str, Any]) -> Iterator[Player]:
        from proxmo.evaluation.baselines import Asking, api_player, model_player

        asking = Asking(**self.asking)
        if self.kind == "model":
            device = self.flags.get("device", "auto")
            yield model_player(self.name, world, asking, device=device)
            return
        from proxmo.policies.openai import ApiLimits
        from proxmo.policies.usage import Prices

        limits = {"rate": self.flags.get("rate"), "workers": options["workers"]}
        if "timeout" in self.flags:
            limits["timeout_s"] = self.flags["timeout"]
        with api_player(
            self.name,
            world,
            asking,
            base_url=self.flags.get("base_url"),
            limits=ApiLimits(**limits),
            prices=Prices(self.flags.get("price_in", 0.0), self.flags.get("price_out", 0.0)),
            out=options["out"],
            listener=options["listener"],
        ) as player:
            yield player


def _named(flags: list[str]) -> str:
    return ", ".join(f"--{flag.replace('_', '-')}" for flag in flags)
