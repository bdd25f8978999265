"""Reflexion (arXiv 2303.11366): ReAct that plays a lost task again with a note to itself.

After a failure the policy reads the whole episode and writes what to do differently; the next trial
of that task, from the same start, begins with the last few such notes. It learns from being told
that it failed, so its success after k trials stands beside that of k tries, not of one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proxmo.agents.base import Decision, Situation, Turn, View
from proxmo.agents.language import LanguageAgent
from proxmo.agents.layouts import PromptLayout
from proxmo.agents.parser import outside_thinking
from proxmo.agents.prompts import GAP, PromptBuilder
from proxmo.agents.react import memory_text, transcript
from proxmo.types import Episode, Outcome

# How many notes are kept, the newest; the paper keeps one to three.
KEPT_NOTES = 3
# Longest note in characters: a model that rambles must not crowd out the episode.
_LONGEST_NOTE = 800
# Parts the draws of notes from those of actions.
_NOTE = 1 << 20

_PROMPT = """\
You played an episode in a text world and did not reach the goal. Find out why, for the next try.

{past}
{transcript}

The next try starts from the same situation. Write a note to yourself in at most three sentences: \
what went wrong, and what exactly you will do instead. Write only the note."""
_ENDINGS = {
    Outcome.LOST: "The episode is over, with a score of {score:.2f} out of 1.",
    Outcome.TRUNCATED: "All {steps} steps are used up.",
    Outcome.OVERFLOW: "The episode became too long to be read.",
}


def _reflection_text(view: View) -> str:
    return _PROMPT.format(past=memory_text(view.memory), transcript=transcript(view))


REFLECTION = PromptLayout(_reflection_text, hidden=frozenset(), one_line=True)


@dataclass(frozen=True, slots=True)
class _Past:
    """Notes on the earlier tries of a task, and (read, written) tokens of tries and notes."""

    notes: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)


class ReflexionAgent:
    """Plays with an actor, up to `tries` times per task; see `RetryingAgent`.

    Args:
        actor: who plays, with a layout that shows `View.memory`.
        builder: writes the request for a note, in the layout `REFLECTION`.
        tries: most episodes per task.
    """

    def __init__(self, actor: LanguageAgent, builder: PromptBuilder, *, tries: int = 3) -> None:
        self.actor = actor
        self.builder = builder
        self.tries = tries
        self.concurrent = actor.concurrent
        # By task, member and the trial they are for.
        self._past: dict[tuple[str, int, int], _Past] = {}

    def abandon(self) -> None:
        """Gives up the pending requests of the policy, if it can."""
        self.actor.abandon()

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Lets the actor decide, with the notes of the task in its view."""
        remembering = []
        for situation in situations:
            place = (str(situation.info.get("task_id")), situation.member, situation.trial)
            view = replace(situation.view, memory=self._past.get(place, _Past()).notes)
            remembering.append(replace(situation, view=view))
        return self.actor.act(remembering, seed=seed)

    def settle(self, episodes: Sequence[Episode], *, seed: Sequence[int]) -> list[Episode | None]:
        """Writes a note on each lost episode; None: play it again, with the note."""
        episodes = [replace(e, earlier=self._of(e).tokens) for e in episodes]
        lost = [i for i, e in enumerate(episodes) if e.outcome in _ENDINGS]
        settled: list[Episode | None] = list(episodes)
        noted = [i for i in lost if episodes[i].trial < self.tries]
        if not noted:
            return settled
        prompts = [self.builder.build(self._view(episodes[i])) for i in noted]
        seeds = [
            (*seed, zlib.crc32(e.task_id.encode()), e.member, e.trial, _NOTE)
            for e in (episodes[i] for i in noted)
        ]
        responses = self.actor.ask(prompts, seed=(*seed, _NOTE), seeds=seeds)
        for i, prompt, response in zip(noted, prompts, responses, strict=True):
            episode = episodes[i]
            if response.error is not None:
                cause = f"no note on trial {episode.trial}: {response.error}"
                settled[i] = replace(episode, outcome=Outcome.ERROR, cause=cause)
                continue
            notes = (*self._of(episode).notes, _note(response.text))
            read, written = response.counted or (len(prompt.ids), len(response.ids))
            place = (episode.task_id, episode.member, episode.trial + 1)
            self._past[place] = _Past(
                tuple(note for note in notes if note)[-KEPT_NOTES:],
                (episode.prompt_tokens + read, episode.response_tokens + written),
            )
            settled[i] = None
        return settled

    def _of(self, episode: Episode) -> _Past:
        return self._past.get((episode.task_id, episode.member, episode.trial), _Past())

    def _view(self, episode: Episode) -> View:
        ending = _ENDINGS[episode.outcome].format(score=episode.score, steps=len(episode.steps))
        return View(
            task=episode.task,
            history=tuple(Turn(s.observation, s.action or "", s.response) for s in episode.steps),
            step=len(episode.steps),
            observation=ending,
            admissible=(),
            memory=self._of(episode).notes,
        )


def _note(text: str) -> str:
    note = " ".join(outside_thinking(text).split())
    return note if len(note) <= _LONGEST_NOTE else note[:_LONGEST_NOTE] + GAP.rstrip()
