"""Presets that come with the package: all resolve, and the recipes are the paper's experiment."""

from __future__ import annotations

import pytest

from proxmo import credit
from proxmo.config_files import preset_names
from proxmo.config_loading import resolve
from proxmo.credit import credit_options

RECIPES = [f"{w}-qwen2.5-{s}" for w in ("alfworld", "webshop") for s in ("1.5b", "7b")]
METHODS = ("proxmo", "grpo", "gigpo", "proxmo-no-modulation", "proxmo-no-aggregation")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_resolves(name: str):
    assert resolve([name]) == resolve([name, name])


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_the_settings_of_the_paper(name: str):
    config = resolve([name])
    world, _, size = name.partition("-qwen2.5-")
    paper = {"alfworld": ("ALFWorld-v0", 50, 2048), "webshop": ("WebShop-v0", 15, 4096)}[world]
    prompt = config.prompt
    assert (config.env.id, config.env.max_steps, prompt.max_prompt_tokens) == paper
    assert config.model.name == f"Qwen/Qwen2.5-{size.upper()}-Instruct"
    assert config.model.lora_rank == 0
    assert (prompt.style, config.sampling.max_new_tokens) == ("think", 512)
    assert (config.rollout.tasks, config.rollout.group_size) == (16, 8)
    assert config.rollout.engine == "vllm"
    assert (config.credit.method, config.credit.gamma, config.credit.omega) == ("proxmo", 0.95, 1.0)
    assert config.credit.options == {"alpha": 4.0, "beta": 0.1, "tau": 0.1}
    optim = config.optim
    assert (optim.iterations, optim.lr, optim.kl_coef) == (150, 1e-6, 0.01)
    assert (optim.clip_low, optim.clip_high) == (0.2, 0.2)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("method", METHODS)
def test_one_flag_makes_it_another_method_and_changes_nothing_else(name: str, method: str):
    from dataclasses import replace

    recipe, other = resolve([name]), resolve([name], {"credit.method": method, "seed": 2})
    assert other.credit.method == method in credit.method_names()
    assert other.credit.options == (recipe.credit.options if method == "proxmo" else {})
    assert replace(other, credit=recipe.credit, seed=0) == recipe
    assert credit_options(other.credit)["gamma"] == 0.95


def test_the_options_of_the_recipes_are_the_defaults_the_ablations_have():
    full = resolve([RECIPES[0]]).credit.options
    for name in METHODS[3:]:
        defaults = credit.method_options(name)
        assert {k: v for k, v in full.items() if k in defaults}.items() <= defaults.items()
