"""The options of `proxmo eval` that say who plays, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxmo.config import EnvConfig
from proxmo.errors import UsageError

from . import options

if TYPE_CHECKING:
    from proxmo.evaluation import Evaluation, Panel, Player

_DEFAULT_ENV = "ALFWorld-v0"

# Which options belong to which player; those of an agent to every language model.
_AGENT = ("agent", "style", "temperature", "max_tokens", "prompt_tokens", "tries")
_API = ("base_url", "rate", "timeout", "price_in", "price_out")
_ALLOWED = {
    "checkpoint": {*_AGENT, "device"},
    "model": {*_AGENT, "device"},
    "api": {*_AGENT, *_API},
    "policy": set[str](),
}
# A checkpoint is prompted as in its training; these need another --agent.
_OTHER_AGENT = {"style", "max_tokens", "prompt_tokens", "tries"}
# Options that only one agent takes.
_OWN = {"style": "direct", "tries": "reflexion"}
# Options whose field in the library has another name.
_FIELDS = {"max_tokens": "max_new_tokens"}
_WORKERS, _API_WORKERS = 64, 8

_FLAGS = (
    options.path("--checkpoint", "Player: a checkpoint, or a run directory for its latest one."),
    options.text("--model", "Player: directory or hub id of a model.", metavar="M"),
    options.text("--api", "Player: a model behind an OpenAI-compatible API.", metavar="NAME"),
    options.text("--policy", "Player: expert, random, or MODULE:NAME of an agent.", metavar="NAME"),
    options.text("--agent", "direct, react or reflexion  [direct]", metavar="A"),
    options.text("--style", "Prompt of the direct agent: think, terse, bare  [think]", metavar="S"),
    options.number(
        "--temperature",
        "Sampling temperature, 0 is greedy  [0.4, or as in training]",
        minimum=0,
        metavar="T",
    ),
    options.count("--max-tokens", "Longest response  [512]"),
    options.count("--prompt-tokens", "Longest prompt  [the environment's, a whole episode 8192]"),
    options.count("--tries", "Tries per task, Reflexion  [3]"),
    options.device(),
    options.text("--base-url", "Address of the API  [$OPENAI_BASE_URL]", metavar="URL"),
    options.number("--rate", "Most requests per minute  [no limit]", above=0),
    options.number("--timeout", "Most seconds for one response  [120]", above=0, metavar="S"),
    options.number("--price-in", "Per million tokens read.", minimum=0, metavar="P"),
    options.number("--price-out", "Per million tokens written.", minimum=0, metavar="P"),
)


def player_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which hands their values to `PlayerOptions.take`."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


@dataclass(frozen=True, slots=True)
class PlayerOptions:
    """Who plays: its kind, its name, and the flags that were given with it."""

    kind: str
    name: str
    flags: Mapping[str, Any]

    @classmethod
    def take(cls, settings: dict[str, Any]) -> PlayerOptions:
        """Take these options out of a command's settings; UsageError for a wrong combination."""
        players = {kind: settings.pop(kind) for kind in _ALLOWED}
        given = {kind: name for kind, name in players.items() if name is not None}
        if len(given) != 1:
            raise UsageError("give one of --checkpoint DIR, --model M, --api NAME, --policy NAME")
        ((kind, name),) = given.items()
        flags = {flag: settings.pop(flag) for flag in (*_AGENT, *_API, "device")}
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
        if settings["workers"] is None:
            settings["workers"] = _API_WORKERS if kind == "api" else _WORKERS
        return cls(kind, str(name), flags)

    @property
    def agent_settings(self) -> dict[str, Any]:
        """The fields of `AgentSettings` that were given."""
        return {_FIELDS.get(f, f): value for f, value in self.flags.items() if f in _AGENT}

    @property
    def device(self) -> str:
        """Where a local model runs."""
        return str(self.flags.get("device", "auto"))

    def evaluate(
        self, panel: Panel | None, choice: Mapping[str, Any], settings: dict[str, Any]
    ) -> Evaluation:
        """Play a panel, or else the tasks of a choice: `env`, `split`, `data`, `episodes`."""
        tasks: dict[str, Any] = dict(choice) if panel is None else {"panel": panel}
        if self.kind == "checkpoint" and "agent" not in self.flags:
            from proxmo.evaluation import evaluate_checkpoint

            return evaluate_checkpoint(Path(self.name), **tasks, **self.flags, **settings)
        if panel is None and self.kind != "checkpoint":
            tasks["env"] = tasks["env"] or _DEFAULT_ENV
            tasks["split"] = tasks["split"] or eval_split(tasks["env"])
        if self.kind == "policy":
            from proxmo.evaluation import evaluate_policy

            return evaluate_policy(self.name, **tasks, **settings)
        from proxmo.evaluation import checkpoint_panel, evaluate, make_panel

        if self.kind == "checkpoint":
            from proxmo.evaluation.baselines import checkpoint_with_agent

            env_id = choice["env"] if panel is None else panel.env.id
            player, config = checkpoint_with_agent(
                Path(self.name), self.agent_settings, env_id=env_id, device=self.device
            )
            return evaluate(player, panel or checkpoint_panel(config, **choice), **settings)
        if panel is None:
            config_env = EnvConfig(id=tasks["env"], data=tasks["data"])
            panel = make_panel(config_env, [tasks["split"]], episodes=tasks["episodes"])
        with self._player(panel.env.id, settings) as player:
            return evaluate(player, panel, **settings)

    def _player(self, env_id: str, settings: Mapping[str, Any]) -> AbstractContextManager[Player]:
        from proxmo.agents.baselines import AgentSettings
        from proxmo.evaluation.baselines import api_player, model_player

        agent = AgentSettings(**self.agent_settings)
        if self.kind == "model":
            return nullcontext(model_player(self.name, env_id, agent, device=self.device))
        from proxmo.policies.openai import ApiLimits
        from proxmo.policies.usage import Prices

        limits = {"rate": self.flags.get("rate"), "workers": settings["workers"]}
        if "timeout" in self.flags:
            limits["timeout_s"] = self.flags["timeout"]
        return api_player(
            self.name,
            env_id,
            agent,
            base_url=self.flags.get("base_url"),
            limits=ApiLimits(**limits),
            prices=Prices(self.flags.get("price_in", 0.0), self.flags.get("price_out", 0.0)),
            out=settings["out"],
            listener=settings["listener"],
        )


def eval_split(env_id: str) -> str:
    """Return the split an environment is evaluated on, once the module that describes it is in."""
    from proxmo_envs import description_of
    from proxmo_envs.creators import creator_of

    creator_of(env_id)
    return description_of(env_id).eval_split


def _named(flags: list[str]) -> str:
    return ", ".join(f"--{flag.replace('_', '-')}" for flag in flags)
