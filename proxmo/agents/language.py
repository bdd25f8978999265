"""The agent that is trained: prompt, one reply of the policy, strict parsing."""

from __future__ import annotations

from collections.abc import Sequence

from proxmo.agents.base import Decision, Situation, own_seeds
from proxmo.agents.parser import parse_action
from proxmo.agents.prompts import Cut, PromptBuilder
from proxmo.policies.base import Policy


class LanguageAgent:
    """Asks a policy for one reply per situation."""

    def __init__(
        self,
        policy: Policy,
        builder: PromptBuilder,
        *,
        style: str,
        temperature: float,
        max_new_tokens: int,
    ) -> None:
        self.policy = policy
        self.builder = builder
        self.style = style
        self.temperature = temperature
        self.max_new_tokens = max_new_tokens

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Builds prompts, samples, parses; a prompt over its budget gives an overflow decision."""
        prompts = [self.builder.build(s.view) for s in situations]
        asked = [i for i, prompt in enumerate(prompts) if Cut.OVER_BUDGET not in prompt.cuts]
        replies = self.policy.generate(
            [prompts[i].ids for i in asked],
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            seed=seed,
            seeds=own_seeds([situations[i] for i in asked]),
        )
        decisions = [
            Decision(None, valid=False, reason="overflow", overflow=True) for _ in situations
        ]
        for i, reply in zip(asked, replies, strict=True):
            parsed = parse_action(
                reply.text,
                situations[i].view.admissible,
                finish_reason=reply.finish_reason,
                style=self.style,
            )
            decisions[i] = Decision(
                action=parsed.action,
                valid=parsed.valid,
                reason=parsed.reason.value,
                response=reply.text,
                prompt_ids=tuple(prompts[i].ids),
                response_ids=reply.ids,
                logprobs=reply.logprobs,
                weight_version=reply.weight_version,
                cuts=tuple(cut.value for cut in prompts[i].cuts),
            )
        return decisions
