"""ALFWorld as a Gymnasium environment."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import gymnasium

from proxmo_envs.alfworld import text
from proxmo_envs.alfworld.games import Game, Grammar
from proxmo_envs.alfworld.sources import load_game_file, open_source
from proxmo_envs.alfworld.world import Room, World
from proxmo_envs.errors import InvalidActionError, InvalidOptionError, ProxmoEnvError, unknown
from proxmo_envs.task import TaskSet
from proxmo_envs.text_space import TextSpace

if TYPE_CHECKING:
    from proxmo_envs.alfworld.expert import SearchingExpert

GrammarChoice = Literal["auto", "move", "put"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of an episode, for search and branching; `ALFWorldEnv.restore` goes back to it any number of times."""

    world: World
    observation: str
    command: str | None
    won: bool
    expert: SearchingExpert | None


class ALFWorldEnv(gymnasium.Env[str, str]):
    """A household room in text: find things, treat them, put them where the task says.

    Description:
        One room (kitchen, living room, bedroom or bathroom), one agent. Tasks are of six types, from "put a mug in
        cabinet" to "look at book under the desklamp". The engine gives the texts of the original ALFWorld, byte for
        byte, on official game files, and plays generated games in the same words.

    Observation:
        What the world says, as a string. The first observation lists the furniture and holds the task.

    Actions:
        One command as a string. It must be word for word one of `info["admissible_actions"]` (white space around it is
        forgiven); everything else is answered with "Nothing happens." and costs a step.

    Rewards:
        1.0 at the step that reaches the goal, otherwise 0.0.

    Termination:
        `terminated` when the goal is reached. `truncated` at the step limit, 50, or `max_episode_steps` of
        `gymnasium.make`. An episode that is over stays as it is: further steps repeat the last observation.

    Info:
        `task` (the instruction), `task_id`, `task_type`, `admissible_actions` (a new sorted list each step), `won`,
        `score` (1.0 when won), `action_valid` (the last command was admissible), `goal_condition_rate` (share of the
        goal's conditions that hold), `grammar`; `expert_action` when the environment was made with
        `expert_action=True`; `hint` after a command of the other grammar: what it is called in this one.

    Options:
        `data`: None (the directory in $ALFWORLD_DATA if set, else generated games), "generated", or a path: an official
        data directory, a JSON-lines file, a packed file or one game file. `split`: train, valid_seen, valid_unseen.
        `difficulty`: size of generated rooms. `grammar`: "auto" (the game's own), "move" (`move X to Y`) or "put"
        (`put X in/on Y`, the releases before json_2.1.2). `render_mode`: None or "ansi".
        `reset(options={"task_id": ...})` plays a given task, `{"game_file": PATH}` a given file; without options the
        environment's own generator draws a task of the split.

    Registered ids:
        ALFWorld-v0
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        split: str = "train",
        difficulty: str | None = None,
        grammar: GrammarChoice = "auto",
        render_mode: str | None = None,
        expert_action: bool = False,
    ) -> None:
        """Open the data; see the class for the arguments."""
        if grammar not in get_args(GrammarChoice):
            raise InvalidOptionError(unknown("grammar", grammar, get_args(GrammarChoice)))
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InvalidOptionError(
                unknown("render_mode", render_mode, self.metadata["render_modes"])
            )
        self._source = open_source(data, difficulty)
        self._ids = self._source.ids(split)
        if not self._ids:
            raise InvalidOptionError(f"split {split!r} of {data!r} has no playable game")
        self.split = split
        self.grammar = grammar
        self.render_mode = render_mode
        self.observation_space = TextSpace()
        self.action_space: TextSpace = TextSpace()
        self._expert = _make_expert() if expert_action else None
        self._world: World | None = None
        self._observation = ""
        self._command: str | None = None
        self._won = False

    @classmethod
    def task_set(
        cls,
        split: str = "train",
        data: str | os.PathLike[str] | None = None,
        difficulty: str | None = None,
        grammar: GrammarChoice = "auto",
        **_: Any,
    ) -> TaskSet:
        """Return the tasks of a split; takes the arguments of the environment."""
        source = open_source(data, difficulty)
        return TaskSet("ALFWorld-v0", split, source.ids(split), source.content_hash)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode: the task in `options`, or one drawn from the split."""
        super().reset(seed=seed)
        game = self._choose(options or {})
        return self._start(Room(game, None if self.grammar == "auto" else self.grammar))

    def _choose(self, options: Mapping[str, Any]) -> Game:
        """Return the game that `options` name, or draw one."""
        strange = sorted(set(options) - {"task_id", "game_file"})
        if strange:
            raise InvalidOptionError(unknown("reset option", strange[0], ("task_id", "game_file")))
        if len(options) > 1:
            raise InvalidOptionError("reset options: give task_id or game_file, not both")
        if "game_file" in options:
            return load_game_file(options["game_file"])
        if "task_id" in options:
            return self._source.game(options["task_id"])
        return self._source.game(self._ids[int(self.np_random.integers(len(self._ids)))])

    def _start(self, room: Room) -> tuple[str, dict[str, Any]]:
        self._world = World(room)
        self._observation = self._world.welcome()
        self._command = None
        self._won = self._world.won
        if self._expert is not None:
            self._expert.reset(self._observation)
        return self._observation, self._info(self._world, valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one command."""
        if not isinstance(action, str):
            raise InvalidActionError(
                f"an action is a string such as 'look', got {type(action).__name__}"
            )
        world = self._world
        if world is None:
            raise ProxmoEnvError("the environment has no episode yet: call reset() before step()")
        if self._won:
            return self._observation, 0.0, True, False, self._info(world, valid=False)
        said = world.act(action)
        self._command = action
        self._observation = text.NOTHING_HAPPENS if said is None else said
        self._won = world.won
        info = self._info(world, valid=said is not None)
        if said is None:
            hint = world.translate(action)
            if hint is not None:
                info["hint"] = f"this game's grammar is {world.room.grammar!r}: try {hint!r}"
        return self._observation, float(self._won), self._won, False, info

    def _info(self, world: World, *, valid: bool) -> dict[str, Any]:
        game = world.room.game
        met, total = world.conditions
        admissible = world.admissible()
        self.action_space.choices = admissible.copy()
        info = {
            "task": game.task,
            "task_id": game.task_id,
            "task_type": game.goal.task_type,
            "admissible_actions": admissible,
            "won": self._won,
            "score": float(self._won),
            "action_valid": valid,
            "goal_condition_rate": met / total,
            "grammar": world.room.grammar,
        }
        if self._expert is not None:
            info["expert_action"] = self._expert.act(self._observation, admissible)
        return info

    def render(self) -> str | None:  # type: ignore[override]
        """Return the last command and what the world answered (render mode "ansi")."""
        if self.render_mode is None:
            return None
        command = "" if self._command is None else f"> {self._command}\n"
        return f"{command}{self._observation}\n"

    def snapshot(self) -> Snapshot:
        """Return the present moment; the step limit of a wrapper is not part of it (deep-copy the wrapper for that)."""
        if self._world is None:
            raise ProxmoEnvError("the environment has no episode yet: call reset() before snapshot()")
        return Snapshot(
            self._world.copy(), self._observation, self._command, self._won, copy.deepcopy(self._expert)
        )

    def restore(self, snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
        """Go back to a snapshot, also one of another environment; return its observation and info."""
        self._world = snapshot.world.copy()
        self._observation = snapshot.observation
        self._command = snapshot.command
        self._won = snapshot.won
        self._expert = copy.deepcopy(snapshot.expert)
        return self._observation, self._info(self._world, valid=True)


def _make_expert() -> SearchingExpert:
    from proxmo_envs.alfworld.expert import SearchingExpert

    return SearchingExpert()
