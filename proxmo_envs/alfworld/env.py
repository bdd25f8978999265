"""ALFWorld as a Gymnasium environment."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

from proxmo_envs.alfworld import text
from proxmo_envs.alfworld.games import Game
from proxmo_envs.alfworld.room import Room
from proxmo_envs.alfworld.sources import GENERATED, GeneratedGames, load_game_file, open_source
from proxmo_envs.alfworld.world import World
from proxmo_envs.errors import InvalidOptionError, unknown
from proxmo_envs.task import TaskSet
from proxmo_envs.text_env import Kinds, Moment, TextEnv, check_names, reset_option

GrammarChoice = Literal["auto", "move", "put"]
_OPTIONS: Kinds = {"task_id": (str, "a string"), "game_file": ((str, os.PathLike), "a path")}


@dataclass(slots=True, kw_only=True)
class _Moment(Moment):
    world: World
    valid: bool = True
    won: bool = False
    condition_rate: float = 0.0


class ALFWorldEnv(TextEnv[_Moment]):
    """A household room in text: find things, treat them, put them where the task says.

    Description:
        One room (kitchen, living room, bedroom or bathroom), one agent. Tasks are of six types,
        from "put a mug in cabinet" to "look at book under the desklamp". The engine gives the texts
        of the original ALFWorld, byte for byte, on official game files, and plays generated games
        in the same words.

    Observation:
        What the world says, as a string. The first observation lists the furniture and holds the
        task.

    Actions:
        One command as a string. It must be word for word one of `info["admissible_actions"]` (white
        space around it is forgiven); everything else is answered with "Nothing happens." and costs
        a step.

    Rewards:
        1.0 at the step that reaches the goal, otherwise 0.0.

    Termination:
        `terminated` when the goal is reached. `truncated` at the step limit, 50, or
        `max_episode_steps` of `gymnasium.make`. An episode that is won stays won: the world still
        answers, as the original does, but further steps pay nothing.

    Info:
        `task` (the instruction), `task_id`, `task_type`, `admissible_actions` (a new sorted list
        each step), `won`, `score` (1.0 when won), `action_valid` (the last command was admissible),
        `goal_condition_rate` (share of the goal's conditions that hold), `grammar`; `expert_action`
        when the environment was made with `expert_action=True`; `hint` after a command of the other
        grammar: what it is called in this one.

    Options:
        `data`: None (the directory in $ALFWORLD_DATA if set, else generated games), "generated", or
        a path: an official data directory, a packed file or one game file.
        `split`: train, valid_seen, valid_unseen. `difficulty`: size of generated rooms.
        `grammar`: "auto" (the game's own), "move" (`move X to Y`) or "put" (`put X in/on Y`, the
        releases before json_2.1.2). `render_mode`: None or "ansi".
        `reset(options={"task_id": ...})` plays a given task, `{"game_file": PATH}` a given file;
        without options the environment's own random generator draws a task of the split.
        `gymnasium.make_vec("ALFWorld-v0", num_envs=N)` steps N games in one call;
        `vectorization_mode="async"` uses processes and needs
        `vector_kwargs={"shared_memory": False}`, as texts have no fixed size.

    Registered ids:
        ALFWorld-v0
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        split: str = "train",
        difficulty: str | None = None,
        grammar: GrammarChoice = "auto",
        render_mode: str | None = None,
        expert_action: bool = False,
    ) -> None:
        """Open the data; see the class for the arguments.

        Raises DataNotFoundError, GameFileError and InvalidOptionError.
        """
        super().__init__(render_mode=render_mode, expert_action=expert_action)
        _check_grammar(grammar)
        _check_split(split)
        self._source = open_source(data, difficulty)
        self._ids = self._source.ids(split)
        if not self._ids:
            raise InvalidOptionError(f"split {split!r} of {data!r} has no playable game")
        self.split = split
        self.grammar = grammar

    @classmethod
    def task_set(
        cls,
        split: str = "train",
        data: str | os.PathLike[str] | None = None,
        difficulty: str | None = None,
        grammar: GrammarChoice = "auto",
        **others: Any,
    ) -> TaskSet:
        """Return the tasks of a split; takes the arguments of the environment."""
        check_names(cls, others)
        _check_split(split)
        source = open_source(data, difficulty)

        def content_hash(task_id: str) -> str:
            # The hash covers the game's own grammar; another one makes it another task.
            own = source.content_hash(task_id)
            if grammar == "auto":
                return own
            return hashlib.sha256(f"{grammar} {own}".encode()).hexdigest()

        def facts() -> dict[str, str]:
            # Files of both releases can lie in one split: then all grammars in force are named.
            if grammar != "auto":
                return {"grammar": grammar}
            return {"grammar": "+".join(sorted({*map(source.grammar, source.ids(split))}))}

        _check_grammar(grammar)
        word = GENERATED if isinstance(source, GeneratedGames) else None
        return TaskSet("ALFWorld-v0", split, source.ids(split), content_hash, facts, word)

    def _start(self, options: object) -> _Moment:
        game = self._choose(options)
        world = World(Room(game, None if self.grammar == "auto" else self.grammar))
        moment = _Moment(world=world, observation=world.welcome())
        _judge(moment)
        if self._with_expert:
            from proxmo_envs.alfworld.expert import SearchingExpert

            moment.expert = SearchingExpert()
            moment.expert.reset(moment.observation)
        return moment

    def _choose(self, options: object) -> Game:
        """Return the game that `options` name, or draw one."""
        chosen = reset_option(options, _OPTIONS)
        if chosen is None:
            return self._source.game(self._ids[int(self.np_random.integers(len(self._ids)))])
        name, value = chosen
        if name == "game_file":
            return load_game_file(value, self._source)
        return self._source.game(value)

    def _act(self, moment: _Moment, action: str) -> tuple[float, bool]:
        was_won = moment.won
        said = moment.world.act(action)
        moment.action = action
        moment.valid = said is not None
        moment.observation = text.NOTHING_HAPPENS if said is None else said
        if not was_won:
            _judge(moment)
        return float(moment.won and not was_won), moment.won

    def _info(self, moment: _Moment) -> dict[str, Any]:
        world = moment.world
        game = world.room.game
        admissible = world.admissible()
        self.action_space.choices = admissible.copy()
        info: dict[str, Any] = {
            "task": game.task,
            "task_id": game.task_id,
            "task_type": game.goal.task_type,
            "admissible_actions": admissible,
            "won": moment.won,
            "score": float(moment.won),
            "action_valid": moment.valid,
            "goal_condition_rate": moment.condition_rate,
            "grammar": world.room.grammar,
        }
        if not moment.valid and moment.action is not None:
            ours = text.translate(moment.action, world.room.grammar)
            if ours is not None:
                info["hint"] = f"this game's grammar is {world.room.grammar!r}: try {ours!r}"
        if moment.expert is not None:
            info["expert_action"] = moment.expert.act(moment.observation, admissible)
        return info

    def plan(self) -> list[str]:
        """Return the shortest commands that win the present game from its start.

        Raises ValueError when it cannot be won.
        """
        from proxmo_envs.alfworld.planner import plan

        room = self._now().world.room
        return plan(room.game, room.grammar)


def _judge(moment: _Moment) -> None:
    """Bring `won` and the rate of met conditions up to date."""
    met, total = moment.world.conditions
    moment.won = met == total
    moment.condition_rate = met / total


def _check_grammar(grammar: str) -> None:
    if grammar not in get_args(GrammarChoice):
        raise InvalidOptionError(unknown("grammar", grammar, get_args(GrammarChoice)))


def _check_split(split: object) -> None:
    if not isinstance(split, str):
        raise InvalidOptionError(f"split is a string such as 'train', got {type(split).__name__}")
