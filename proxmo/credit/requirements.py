"""What a credit method needs of a trainer, and whether it can be used as configured."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from proxmo.credit.assign import assign
from proxmo.credit.registry import method_options
from proxmo.errors import ConfigError


def needs_values(method: str) -> bool:
    """Whether a credit method asks for `value`, the estimates of a critic, as `gae` does."""
    return method_options(method).get("value") is inspect.Parameter.empty


def needs_policy(options: Mapping[str, Any]) -> bool:
    """Whether options of a credit method compare states by hidden states of the policy."""
    return "policy" in (options.get("embedding"), options.get("matcher"))


def credit_options(settings: Any) -> dict[str, Any]:
    """The options of the configured method, tried on two rows so that a mistake shows at once.

    Args:
        settings: has `method`, `gamma`, `omega`, `reward_scale` and `options`, as the section
            `credit` of a configuration.
    """
    options = {
        "gamma": settings.gamma,
        "reward_scale": settings.reward_scale,
        **settings.options,
    }
    if "omega" in method_options(settings.method):
        options["omega"] = settings.omega
    if needs_values(settings.method) and "value" in settings.options:
        raise ConfigError("credit.options.value comes from the critic: leave it out")
    try_method(settings.method, options)
    return options


def try_method(method: str, options: Mapping[str, Any]) -> None:
    """Assigns credit to two steps; raises what `assign` does for a method or options that it lacks.

    Args:
        method: a name, as `assign` takes it.
        options: of the method and of `assign`; the values of a critic are made up.
    """
    values: dict[str, Any] = {"value": np.zeros(2)} if needs_values(method) else {}
    assign(
        method,
        group=[0, 0],
        episode=[0, 1],
        step=[0, 0],
        reward=np.array([0.0, 1.0]),
        success=[False, True],
        state=np.eye(2) if needs_policy(options) else ["one place", "another place"],
        action=["one action", "another action"],
        **options,
        **values,
    )
