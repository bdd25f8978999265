"""Summarises results of episodes: rates with intervals, seeds, pass@k, costs."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any, TypeVar

from proxmo.evaluation.panels import Panel
from proxmo.evaluation.results import Result
from proxmo.evaluation.statistics import mean_interval, pass_at_k, wilson_interval
from proxmo.types import Outcome

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TypeResult:
    """Success among some episodes; `low` and `high` bound it with 95 % confidence (Wilson).

    The episodes of one task are no independent draws of a task: the interval is that of as many
    episodes as there are tasks.
    """

    episodes: int
    wins: int
    success_rate: float
    low: float
    high: float

    @classmethod
    def of(cls, wins: int, episodes: int, tasks: int | None = None) -> TypeResult:
        """Computes rate and interval; `tasks` is how many tasks there were, if not `episodes`."""
        rate = wins / max(episodes, 1)
        n = episodes if tasks is None else tasks
        low, high = wilson_interval(wins if n == episodes else rate * n, n)
        return cls(episodes, wins, rate, low, high)

    @classmethod
    def of_results(cls, results: Sequence[Result]) -> TypeResult:
        """Counts scored results."""
        return cls.of(sum(r.won for r in results), len(results), len({r.task_id for r in results}))


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Success of several seeds; `low` and `high` bound the mean with 95 % confidence (Student)."""

    success_rates: dict[str, float]
    mean: float
    sd: float
    low: float
    high: float

    @classmethod
    def of(cls, rates: Mapping[int, float]) -> SeedSpread:
        """Computes mean, standard deviation and interval of at least two seeds."""
        values = list(rates.values())
        by_seed = {str(seed): rate for seed, rate in rates.items()}
        low, high = mean_interval(values)
        # A rate lies in [0, 1], which Student's interval does not know.
        return cls(by_seed, mean(values), stdev(values), max(low, 0.0), min(high, 1.0))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result on one panel.

    `episodes` were scored and `errors` could not be, of `planned`: tasks by seeds by trials;
    `error_causes` counts the latter. Of the scored ones `overflows` ended without a win because a
    prompt did not fit its token budget. With several seeds `seeds` holds their spread; with several
    trials `pass_at` maps k to pass@k. Where an agent played lost tasks again, `success_after` maps
    k to the success after k tries.
    """

    env_id: str
    split: str
    panel: str
    panel_hash: str
    tasks: int
    planned: int
    episodes: int
    wins: int
    errors: int
    success_rate: float
    low: float
    high: float
    mean_score: float
    mean_length: float
    invalid_action_share: float
    prompt_tokens: int
    response_tokens: int
    cost: float
    by_task_type: dict[str, TypeResult]
    error_causes: dict[str, int] = field(default_factory=dict)
    seeds: SeedSpread | None = None
    pass_at: dict[str, float] = field(default_factory=dict)
    success_after: dict[str, float] = field(default_factory=dict)
    overflows: int = 0

    @property
    def complete(self) -> bool:
        """Whether all planned episodes are scored."""
        return self.episodes == self.planned

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_json`."""
        kinds = {kind: TypeResult(**result) for kind, result in data["by_task_type"].items()}
        seeds = None if data.get("seeds") is None else SeedSpread(**data["seeds"])
        return cls(**{**data, "by_task_type": kinds, "seeds": seeds})


def summarise(
    results: Sequence[Result], panel: Panel, *, seeds: Sequence[int] = (0,), trials: int = 1
) -> Evaluation:
    """Counts results; every rate leaves out episodes that ended in an error."""
    scored = [r for r in results if r.scored]
    overall = TypeResult.of_results(scored)
    steps = sum(r.steps for r in scored)
    causes = Counter(str(r.error) for r in results if not r.scored)
    by_seed = _grouped(scored, lambda r: r.seed)
    spread = None
    if len(seeds) > 1 and len(by_seed) > 1:
        rates = {seed: by_seed[seed] for seed in seeds if seed in by_seed}
        spread = SeedSpread.of({s: sum(r.won for r in g) / len(g) for s, g in rates.items()})
    return Evaluation(
        env_id=panel.env.id,
        split=panel.split,
        panel=panel.name,
        panel_hash=panel.hash,
        tasks=len(panel.tasks),
        planned=len(panel.tasks) * len(seeds) * trials,
        errors=len(results) - len(scored),
        **{f.name: getattr(overall, f.name) for f in dataclasses.fields(TypeResult)},
        mean_score=float(mean(r.score for r in scored)) if scored else 0.0,
        mean_length=steps / max(len(scored), 1),
        invalid_action_share=sum(r.invalid_actions for r in scored) / max(steps, 1),
        prompt_tokens=sum(r.prompt_tokens for r in results),
        response_tokens=sum(r.response_tokens for r in results),
        cost=math.fsum(r.cost for r in results),
        by_task_type={
            kind: TypeResult.of_results(group)
            for kind, group in sorted(_grouped(scored, lambda r: r.task_type).items())
        },
        error_causes=dict(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        seeds=spread,
        pass_at=_pass_at(scored, trials),
        success_after=_success_after(scored),
        overflows=sum(r.outcome is Outcome.OVERFLOW for r in scored),
    )


def _success_after(scored: Sequence[Result]) -> dict[str, float]:
    most = max((r.tries for r in scored), default=1)
    if most == 1:
        return {}
    return {str(k): mean(float(r.won and r.tries <= k) for r in scored) for k in range(1, most + 1)}


def _pass_at(scored: Sequence[Result], trials: int) -> dict[str, float]:
    """Estimates pass@1, 2, 4, ... and pass@trials, over the tasks that were scored often enough."""
    if trials < 2:
        return {}
    counts = [
        (len(g), sum(r.won for r in g)) for g in _grouped(scored, lambda r: r.task_id).values()
    ]
    sizes = [k for k in (2**power for power in range(trials.bit_length())) if k < trials]
    estimates = {}
    for k in (*sizes, trials):
        values = [pass_at_k(n, wins, k) for n, wins in counts if n >= k]
        if values:
            estimates[str(k)] = mean(values)
    return estimates


def _grouped(results: Sequence[Result], key: Callable[[Result], Key]) -> dict[Key, list[Result]]:
    groups: dict[Key, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups
