"""The two ablations of ProxMO (arXiv 2602.19225), by names of their own.

`proxmo` takes either part away by an option; a name makes it one flag: `--method proxmo-no-...`.
"""

from __future__ import annotations

from proxmo.credit.proxmo import proxmo
from proxmo.credit.registry import Parts, method
from proxmo.credit.rows import Rows


@method("proxmo-no-modulation")
def proxmo_no_modulation(
    rows: Rows,
    *,
    tau: float = 0.1,
    omega: float = 1.0,
    norm: str = "zscore",
    embedding: str = "tfidf",
    scope: str = "group",
    exclude: str = "none",
    top_k: int | None = None,
) -> Parts:
    """A = Z + omega (G_t - B_t): `proxmo` where every episode weighs 1; see there for the options.

    Args:
        rows: the steps, with states.
        tau: temperature of the similarity softmax, > 0.
        omega: weight of the step part.
        norm: "zscore" or "mean", of the episode part.
        embedding: of the states.
        scope: steps that are compared: those of the "group", or of the whole "batch".
        exclude: steps left out of the baseline: "none", "self", "episode".
        top_k: most neighbours per state; None takes all.
    """
    return proxmo(
        rows,
        modulation=False,
        tau=tau,
        omega=omega,
        norm=norm,
        embedding=embedding,
        scope=scope,
        exclude=exclude,
        top_k=top_k,
    )


@method("proxmo-no-aggregation")
def proxmo_no_aggregation(
    rows: Rows, *, alpha: float = 4.0, beta: float = 0.1, norm: str = "zscore"
) -> Parts:
    """A = w(R, p) Z: `proxmo` without a step part, so that states do not matter.

    Args:
        rows: the steps.
        alpha: how fast the modulation fades as an outcome becomes common, > 0.
        beta: width of the range of modulation weights.
        norm: "zscore" or "mean", of the episode part.
    """
    return proxmo(rows, aggregation=False, alpha=alpha, beta=beta, norm=norm)
