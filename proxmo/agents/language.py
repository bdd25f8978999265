"""The agent that is trained and compared: prompt, one response of the policy, strict parsing."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from proxmo.agents.base import Decision, Situation, own_seeds
from proxmo.agents.parser import parse_action
from proxmo.agents.prompts import Cut, Prompt, PromptBuilder
from proxmo.policies.base import ChatPolicy, Policy, Response


class LanguageAgent:
    """Asks a policy for one response per situation.

    Args:
        policy: who responds; one behind an API gets messages, any other the ids of the prompts.
        builder: writes the prompts; made with the policy's tokenizer, or none for an API.
        style: how the response is read, as `parse_action` names it.
        temperature: of the sampling, 0 is greedy.
        max_new_tokens: longest response.
    """

    def __init__(
        self,
        policy: Policy | ChatPolicy,
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
        # Whether the policy answers one by one, so that episodes need not wait for each other.
        self.concurrent = bool(getattr(policy, "concurrent", False))
        # Tokens of all responses so far.
        self.sampled_tokens = 0
        # A tokenizer sets its truncation on every call and panics when two threads do so.
        self._lock = threading.Lock()

    def abandon(self) -> None:
        """Gives up the pending requests of the policy, if it can."""
        getattr(self.policy, "abandon", lambda: None)()

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        """Builds prompts, samples, parses; a prompt over its budget gives an overflow decision."""
        with self._lock:
            prompts = [self.builder.build(s.view) for s in situations]
        asked = [i for i, prompt in enumerate(prompts) if Cut.OVER_BUDGET not in prompt.cuts]
        seeds = own_seeds([situations[i] for i in asked])
        responses = self.ask([prompts[i] for i in asked], seed=seed, seeds=seeds)
        with self._lock:
            self.sampled_tokens += sum(len(response.ids) for response in responses)
        decisions = [
            Decision(None, valid=False, reason="overflow", overflow=True) for _ in situations
        ]
        for i, response in zip(asked, responses, strict=True):
            if response.error is not None:
                decisions[i] = Decision(None, valid=False, reason="error", error=response.error)
                continue
            parsed = parse_action(
                response.text,
                situations[i].view.admissible,
                finish_reason=response.finish_reason,
                style=self.style,
            )
            decisions[i] = Decision(
                action=parsed.action,
                valid=parsed.valid,
                reason=parsed.reason.value,
                response=response.text,
                prompt_ids=tuple(prompts[i].ids),
                response_ids=response.ids,
                logprobs=response.logprobs,
                weight_version=response.weight_version,
                cuts=tuple(cut.value for cut in prompts[i].cuts),
                counted=response.counted,
            )
        return decisions

    def ask(
        self,
        prompts: Sequence[Prompt],
        *,
        seed: Sequence[int],
        seeds: Sequence[Sequence[int]] | None = None,
    ) -> list[Response]:
        """Returns the policy's response to each prompt."""
        if isinstance(self.policy, ChatPolicy):
            return self.policy.respond(
                [prompt.text for prompt in prompts],
                temperature=self.temperature,
                max_new_tokens=self.max_new_tokens,
                seed=seed,
            )
        return self.policy.generate(
            [prompt.ids for prompt in prompts],
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            seed=seed,
            seeds=seeds,
        )
