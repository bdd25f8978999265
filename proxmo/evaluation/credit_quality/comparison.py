"""Scores credit methods against the true advantages.

The score of a method is the cosine between its advantages and the true ones, divided by the square
root of the truth's reliability: the noise of the Monte Carlo estimate lowers every cosine alike,
and the division undoes it (correction for attenuation, Spearman 1904). The reliability is that of
both halves together, 2 r / (1 + r) of the cosine r between the halves (Spearman-Brown).

Only steps that do not win count: the few winning steps hold a large share of the sum of squares,
and a method that rewards just them, which any can do, beats every published method on all steps.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo import credit
from proxmo.credit.returns import step_returns
from proxmo.errors import UsageError
from proxmo.evaluation.credit_quality.truth import Truth

Floats = NDArray[np.float64]

DEFAULT_METHODS = ("grpo", "gigpo", "proxmo", "proxmo[omega=10]")
ORACLE = "oracle: G - V"
TRIVIAL = {"trivial: reward alone": 0.0, "trivial: reward decayed by 0.3": 0.3}
RESAMPLES = 1000
# Arguments of `assign` that come from the episodes; a name in brackets sets the others.
_GIVEN = {*inspect.signature(credit.assign).parameters} - {"reward_scale", "options"}
_NAME = re.compile(r"(?P<method>[^\[\]]+)(\[(?P<options>[^\[\]]*)\])?")


@dataclass(frozen=True, slots=True)
class Score:
    """How close a method comes to the truth.

    Attributes:
        cosine: corrected cosine on the steps that do not win, -1 to 1.
        low, high: its 95 % interval, by bootstrap over tasks.
        auc: probability that an expert's action has a higher advantage than another one, on the
            steps that do not win; None where there is no expert, or only one kind of action.
        all_steps: corrected cosine on all steps.
        differences: to other methods, (mean, low, high), paired over tasks.
    """

    cosine: float
    low: float
    high: float
    auc: float | None
    all_steps: float
    differences: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scores of the methods, of the oracle and of the trivial baselines.

    `success` is the policy's success rate, `reliability` the truth's on the steps that do not win,
    `winning_share` the share of the winning steps in the sum of squared true advantages.
    """

    methods: Mapping[str, Score]
    oracle: Score
    trivial: Mapping[str, Score]
    reliability: float
    success: float
    steps: int
    winning_share: float


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of all tasks as columns."""

    task: NDArray[np.int64]
    episode: NDArray[np.int64]
    step: NDArray[np.int64]
    reward: Floats
    success: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    state: list[str]
    action: list[str]
    expert: NDArray[np.bool_] | None
    value: Floats
    halves: Floats
    winning: NDArray[np.bool_]

    @classmethod
    def of(cls, truths: Sequence[Truth], gamma: float) -> _Steps:
        task = np.repeat(np.arange(len(truths)), [len(t.step) for t in truths])
        first = np.cumsum([0, *(int(t.episode.max()) + 1 for t in truths[:-1])])
        episode = np.concatenate([t.episode + f for t, f in zip(truths, first, strict=True)])
        reward = np.concatenate([t.reward for t in truths])
        last = np.append(episode[1:] != episode[:-1], True)
        known = [t.expert for t in truths if t.expert is not None]
        return cls(
            task=task,
            episode=episode,
            step=np.concatenate([t.step for t in truths]),
            reward=reward,
            success=np.concatenate([t.success for t in truths]),
            truncated=np.concatenate([t.truncated for t in truths]),
            state=[state for t in truths for state in t.state],
            action=[action for t in truths for action in t.action],
            expert=np.concatenate(known) if len(known) == len(truths) else None,
            value=np.concatenate([t.value.mean(1) for t in truths]),
            halves=np.concatenate([t.advantage(gamma) for t in truths]),
            winning=last & (reward > 0),
        )

    @property
    def advantage(self) -> Floats:
        return self.halves.mean(1)


def compare(
    truths: Sequence[Truth],
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    gamma: float = 0.95,
    against: Sequence[str] = ("gigpo", "proxmo"),
    limit_ends: bool = False,
    seed: int = 0,
) -> Comparison:
    """Scores methods, the trivial baselines and the oracle on the same steps.

    Args:
        truths: of at least two tasks.
        methods: names as `proxmo.credit.assign` takes them, with options in brackets:
            "proxmo[omega=10,tau=0.2]".
        gamma: discount factor, that of the truth.
        against: methods to which all others are compared, where they are among `methods`.
        limit_ends: tell methods that the step limit is a real end, as the truth has it; False tells
            them that it cut the episode off, as the trainer does.
        seed: of the bootstrap.

    Raises:
        UsageError: a name is not of that form, or the truth is all noise.
        ConfigError: a method or an option does not exist.
    """
    steps = _Steps.of(truths, gamma)
    returns = step_returns(steps.reward, steps.episode, steps.step, gamma)
    advantages = {name: _assign(name, steps, gamma, limit_ends) for name in dict.fromkeys(methods)}
    for name, decay in TRIVIAL.items():
        advantages[name] = step_returns(steps.reward, steps.episode, steps.step, decay)
    advantages[ORACLE] = returns - steps.value
    counted = ~steps.winning
    sums = {name: _sums(a, steps, counted) for name, a in advantages.items()}
    if not _reliability(sums[ORACLE].sum(0)) > 0:
        raise UsageError("the true advantages are all noise; raise --continuations or --tasks")
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(truths), size=(RESAMPLES, len(truths)))
    boot = {name: np.array([_cosine(s[draw].sum(0)) for draw in draws]) for name, s in sums.items()}
    scores = {}
    for name, advantage in advantages.items():
        low, high = np.quantile(boot[name], (0.025, 0.975))
        scores[name] = Score(
            cosine=_cosine(sums[name].sum(0)),
            low=float(low),
            high=float(high),
            auc=_auc(advantage, steps, counted),
            all_steps=_cosine(_sums(advantage, steps, np.ones_like(counted)).sum(0)),
            differences={
                other: _difference(name, other, sums, boot)
                for other in against
                if other in sums and other != name
            },
        )
    squares = steps.advantage**2
    ends = np.append(steps.episode[1:] != steps.episode[:-1], True)
    return Comparison(
        methods={name: scores[name] for name in dict.fromkeys(methods)},
        oracle=scores[ORACLE],
        trivial={name: scores[name] for name in TRIVIAL},
        reliability=_reliability(sums[ORACLE].sum(0)),
        success=float(steps.success[ends].mean()),
        steps=len(steps.task),
        winning_share=float(squares[steps.winning].sum() / squares.sum()),
    )


def _assign(name: str, steps: _Steps, gamma: float, limit_ends: bool) -> Floats:
    method, options = parse_method(name)
    assigned = credit.assign(
        method,
        group=steps.task,
        episode=steps.episode,
        step=steps.step,
        reward=steps.reward,
        success=steps.success,
        state=steps.state,
        truncated=None if limit_ends else steps.truncated,
        action=steps.action,
        gamma=gamma,
        **options,
    )
    return np.asarray(assigned.advantage, dtype=np.float64)


def check_methods(methods: Sequence[str], against: Sequence[str] = ()) -> None:
    """Tries every method on two steps, so that a mistake shows before anything is measured.

    Raises:
        UsageError: no method, a name of another form, an option that is no method's, or a method
            in `against` that is not among `methods`.
        ConfigError: a method or an option does not exist.
    """
    if not methods:
        raise UsageError("no method to compare; name some, such as gigpo,proxmo")
    for name in against:
        if name not in methods:
            raise UsageError(f"differences to {name!r} need it among the methods: {methods}")
    for name in methods:
        method, options = parse_method(name)
        if taken := _GIVEN & options.keys():
            raise UsageError(f"{name!r}: {min(taken)} is not the method's; the comparison sets it")
        if credit.needs_values(method) or credit.needs_policy(options):
            raise UsageError(f"{name!r} needs a model's values or hidden states; there are none")
        credit.try_method(method, options)


def split_names(text: str | None) -> list[str]:
    """Splits "a,b[x=1,y=2],c" into its names; None gives `DEFAULT_METHODS`."""
    if text is None:
        return list(DEFAULT_METHODS)
    return [name.strip() for name in re.split(r",(?![^\[]*\])", text) if name.strip()]


def parse_method(name: str) -> tuple[str, dict[str, Any]]:
    """Splits "method[option=value,...]" into the method and its options.

    Raises:
        UsageError: the name is not of that form.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise UsageError(f"{name!r} is not of the form method or method[option=value,...]")
    options: dict[str, Any] = {}
    for assignment in filter(None, (match["options"] or "").split(",")):
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip().isidentifier():
            raise UsageError(f"{name!r}: {assignment!r} is not of the form option=value")
        options[key.strip()] = _parse(value.strip())
    return match["method"], options


def _parse(text: str) -> Any:
    """A number, true or false; anything else is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _sums(advantage: Floats, steps: _Steps, counted: NDArray[np.bool_]) -> Floats:
    """(K, 6) sums over the counted steps of each task, from which cosines are made."""
    truth, (one, two) = steps.advantage, steps.halves.T
    products = (advantage * truth, advantage**2, truth**2, one * two, one**2, two**2)
    tasks = int(steps.task.max()) + 1
    return np.stack(
        [np.bincount(steps.task[counted], product[counted], tasks) for product in products], axis=1
    )


def _reliability(sums: Floats) -> float:
    """Reliability of the mean of both halves; 0 where they do not agree."""
    scale = np.sqrt(sums[4] * sums[5])
    halves = sums[3] / scale if scale > 0 else 0.0
    return float(2 * halves / (1 + halves)) if halves > 0 else 0.0


def _cosine(sums: Floats) -> float:
    """Cosine with the truth, corrected for its reliability; 0 for an advantage of zeros."""
    scale = np.sqrt(sums[1] * sums[2] * _reliability(sums))
    return float(sums[0] / scale) if scale > 0 else 0.0


def _difference(
    name: str, other: str, sums: Mapping[str, Floats], boot: Mapping[str, Floats]
) -> tuple[float, float, float]:
    low, high = np.quantile(boot[name] - boot[other], (0.025, 0.975))
    return _cosine(sums[name].sum(0)) - _cosine(sums[other].sum(0)), float(low), float(high)


def _auc(advantage: Floats, steps: _Steps, counted: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve of the expert's actions (Mann-Whitney, ties count half)."""
    from scipy.stats import rankdata

    if steps.expert is None:
        return None
    expert = steps.expert[counted]
    positive = int(expert.sum())
    negative = len(expert) - positive
    if not positive or not negative:
        return None
    ranks = rankdata(advantage[counted])
    return float((ranks[expert].sum() - positive * (positive + 1) / 2) / (positive * negative))
