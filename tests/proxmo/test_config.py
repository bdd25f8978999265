"""Presets, flags and `--set` become one checked configuration, and every mistake is named."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxmo.config import Config, CreditConfig, EnvConfig
from proxmo.config_files import preset_names
from proxmo.config_loading import (
    differing_keys,
    dump_toml,
    fields,
    from_table,
    load_toml,
    resolve,
)
from proxmo.errors import ConfigError, DataError, UnknownNameError


def message(*assignments: str) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(assignments=assignments)
    return str(caught.value)


def test_the_embedded_model_brings_its_preset_along():
    assert resolve().prompt.style == "terse"
    assert resolve() == resolve(["tiny"])


def test_another_model_keeps_the_settings_of_the_paper():
    assert resolve(flags={"model.name": "org/model"}) == from_table(
        {"model": {"name": "org/model"}}
    )
    assert resolve(assignments=["model.name=org/model"]).rollout.group_size == 8
    assert resolve(assignments=["model.name=org/model"]).prompt.style == "think"


def test_the_tiny_preset_lies_under_the_layers_that_are_named():
    smoke = resolve(["smoke"])
    assert smoke.prompt.style == "terse"
    assert smoke.optim.iterations < resolve().optim.iterations


def test_later_layers_win_and_the_order_is_presets_flags_assignments(tmp_path: Path):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text("seed = 1\n[optim]\nlr = 1.0\nepochs = 7\nminibatches = 5\n")
    second.write_text("seed = 2\n[optim]\nlr = 2.0\nepochs = 8\n")
    config = resolve([str(first), str(second)], {"optim.lr": 3.0, "seed": 3}, ["seed=4"])
    assert (config.optim.minibatches, config.optim.epochs) == (5, 8)
    assert (config.optim.lr, config.seed) == (3.0, 4)


def test_a_flag_that_was_not_given_changes_nothing():
    assert resolve(flags={"env.id": None, "seed": None}) == resolve()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_resolves_and_survives_a_round_trip(name: str, tmp_path: Path):
    config = resolve([name])
    path = tmp_path / "config.toml"
    path.write_text(dump_toml(config), encoding="utf-8")
    assert load_toml(path) == config


def test_a_round_trip_keeps_none_tables_quotes_and_small_numbers(tmp_path: Path):
    config = dataclasses.replace(
        Config(seed=7),
        env=EnvConfig(data='a "quoted" pfad/ä\n', max_steps=None, kwargs={"a": {"b": [1, 2.5]}}),
        credit=CreditConfig(gamma=0.1 + 0.2, options={"tau": 1e-300}),
    )
    path = tmp_path / "config.toml"
    path.write_text(dump_toml(config), encoding="utf-8")
    assert load_toml(path) == config


def test_the_word_none_takes_a_value_back():
    assert resolve(assignments=["eval.episodes=3"]).eval.episodes == 3
    assert resolve(assignments=["eval.episodes=3", "eval.episodes=none"]).eval.episodes is None


def test_values_are_toml_and_bare_words_are_texts():
    config = resolve(assignments=["env.data=games/train", 'env.split="x y"', "optim.lr=1e-5"])
    assert (config.env.data, config.env.split, config.optim.lr) == ("games/train", "x y", 1e-5)
    assert resolve(assignments=["env.data=2024"]).env.data == "2024"


def test_a_whole_number_serves_where_a_number_is_expected():
    lr = resolve(assignments=["optim.lr=1"]).optim.lr
    assert (lr, type(lr)) == (1.0, float)


def test_options_of_a_method_are_free_and_one_assignment_replaces_them_all():
    options = resolve(assignments=["credit.options.tau=0.2", "credit.options.top_k=4"])
    assert options.credit.options == {"tau": 0.2, "top_k": 4}
    replaced = resolve(assignments=["credit.options.tau=0.2", "credit.options={beta=0}"])
    assert replaced.credit.options == {"beta": 0}


def test_changing_the_environment_drops_what_only_fitted_the_old_one():
    assert resolve().env.kwargs
    other = resolve(flags={"env.id": "Other-v0"}, assignments=["env.kwargs.profile=original"])
    assert other.env == EnvConfig(id="Other-v0", kwargs={"profile": "original"})
    assert resolve(flags={"env.id": "proxmo_envs:ALFWorld-v0"}).env.kwargs == resolve().env.kwargs


def test_the_embedded_model_has_settings_of_its_own_in_the_web_shop(tmp_path: Path):
    shop = resolve(["tiny-webshop"])
    assert shop.env.id == "WebShop-v0" and shop.env.kwargs == {"difficulty": "tiny"}
    assert resolve(flags={"env.id": "WebShop-v0"}) == shop
    assert resolve(assignments=["env.id=proxmo_envs:WebShop-v0"]).eval == shop.eval
    preset = tmp_path / "mine.toml"
    preset.write_text('seed = 3\nenv.id = "WebShop-v0"')
    assert resolve([str(preset)]) == dataclasses.replace(shop, seed=3)
    assert resolve(flags={"env.id": "WebShop-v0", "env.data": "bundled"}).env.kwargs
    assert resolve(flags={"env.id": "WebShop-v0", "model.name": "m"}).eval == Config().eval


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The id of an environment whose package describes it: its data and its preset."""
    package = tmp_path / "their_world"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from proxmo_envs import EnvDescription, describe\n"
        "from proxmo_envs.description import EmbeddedModel\n"
        "made = EmbeddedModel(preset='their_world:own.toml')\n"
        "describe(EnvDescription(id='Theirs-v0', default_data='own', embedded=made))\n"
    )
    (package / "own.toml").write_text(
        'env.id = "their_world:Theirs-v0"\nenv.kwargs.size = 3\nprompt.history = 7\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("proxmo_envs.description._DESCRIPTIONS", {})
    yield "their_world:Theirs-v0"
    sys.modules.pop("their_world", None)


def test_the_description_of_an_environment_names_the_preset_of_the_embedded_model(described: str):
    assert resolve(flags={"env.id": described}).prompt.history == 7
    assert resolve(flags={"env.id": described, "model.name": "m"}).prompt == Config().prompt


def test_the_data_an_environment_takes_by_default_changes_nothing(described: str):
    kwargs = {
        data: resolve(flags={"env.id": described, "env.data": data}).env.kwargs
        for data in ("own", "none", "/other")
    }
    assert kwargs == {"own": {"size": 3}, "none": {"size": 3}, "/other": {}}


def test_a_preset_lies_on_the_one_it_names_as_its_base(tmp_path: Path):
    preset = tmp_path / "mine.toml"
    preset.write_text('base = "smoke"\nrollout.tasks = 5\n')
    assert resolve([str(preset)]) == resolve(["smoke"], assignments=["rollout.tasks=5"])
    preset.write_text('base = "smok"\n')
    with pytest.raises(UnknownNameError, match="did you mean smoke"):
        resolve([str(preset)])


@pytest.mark.parametrize(
    ("bases", "text"),
    [
        ({"a": "'a.toml'"}, r"in a cycle: \S+a.toml -> \S+a.toml$"),
        ({"a": "'b.toml'", "b": "'../ps/a.toml'"}, r"in a cycle: \S+a.toml -> \S+b.toml -> \S+a"),
        ({"a": "3"}, r"a.toml: base is 3 \(int\), expected a text"),
        ({"a": "true"}, r"base is True \(bool\), expected a text"),
        ({"a": "[]"}, r"base is \[\] \(list\), expected a text"),
        ({"a": "{}"}, r"base is {} \(dict\), expected a text"),
    ],
)
def test_a_base_that_is_no_preset_below_is_refused(
    tmp_path: Path, bases: dict[str, str], text: str
):
    folder = tmp_path / "ps"
    folder.mkdir()
    for name, base in bases.items():
        (folder / f"{name}.toml").write_text(f"base = {base}\n")
    with pytest.raises(ConfigError, match=text):
        resolve([str(folder / "a.toml")])


def test_a_relative_base_starts_at_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "ps").mkdir()
    (tmp_path / "ps/big.toml").write_text("base = 'small.toml'\n")
    (tmp_path / "ps/small.toml").write_text("seed = 7\n")
    (tmp_path / "small.toml").write_text("seed = 8\n")
    monkeypatch.chdir(tmp_path)
    assert resolve(["ps/big.toml"]).seed == 7


def test_a_preset_may_start_with_a_byte_order_mark(tmp_path: Path):
    preset = tmp_path / "mine.toml"
    preset.write_text("seed = 7\n", encoding="utf-8-sig")
    assert resolve([str(preset)]).seed == 7


@pytest.mark.parametrize("package", ["json.tool", ".x", "absent_package", "broken_package"])
def test_a_preset_of_something_that_is_no_package_is_an_error_of_one_line(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "broken_package.py").write_text("raise RuntimeError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises((ConfigError, DataError), match=rf"cannot read .*{package}.*\Z"):
        resolve([f"{package}:x.toml"])


def test_a_quoted_dotted_key_of_a_file_is_named_as_such(tmp_path: Path):
    preset = tmp_path / "mine.toml"
    preset.write_text('"env.kwargs" = {size = 3}\n')
    with pytest.raises(ConfigError, match="must not be quoted: write env.kwargs"):
        resolve([str(preset)])


def test_games_that_are_given_drop_the_size_of_the_generated_ones():
    assert resolve(flags={"env.data": "/games"}).env == EnvConfig(data="/games")
    chosen = resolve(flags={"env.data": "/games"}, assignments=["env.max_steps=9"]).env
    assert chosen == EnvConfig(data="/games", max_steps=9)
    kwargs = resolve().env.kwargs
    assert resolve(flags={"env.data": "generated"}).env.kwargs == kwargs
    assert resolve(assignments=["env.data=none"]).env.kwargs == kwargs
    either_way = ["env.kwargs.grammar=put", "env.data=/games", "env.id=Other-v0"]
    for assignments in (either_way, either_way[::-1]):
        env = resolve(assignments=assignments).env
        assert env == EnvConfig(id="Other-v0", data="/games", kwargs={"grammar": "put"})


def test_changing_the_method_drops_the_options_of_the_old_one(tmp_path: Path):
    preset = tmp_path / "mine.toml"
    preset.write_text("credit.options.tau = 0.2\n")
    assert resolve([str(preset)]).credit.options == {"tau": 0.2}
    assert resolve([str(preset)], {"credit.method": "proxmo"}).credit.options == {"tau": 0.2}
    assert resolve([str(preset)], {"credit.method": "grpo"}).credit.options == {}
    assignments = ["credit.options.threshold=0.9", "credit.method=gigpo"]
    assert resolve([str(preset)], {}, assignments).credit.options == {"threshold": 0.9}


def test_a_base_lies_under_the_layers_and_takes_the_place_of_the_defaults():
    saved = from_table({"seed": 5, "optim": {"iterations": 9}})
    assert resolve(base=saved) == saved
    assert differing_keys(saved, resolve(flags={"optim.iterations": 12}, base=saved)) == [
        "optim.iterations"
    ]


def test_the_configuration_of_a_run_can_serve_as_a_preset(tmp_path: Path):
    config = resolve(["smoke"], assignments=["env.kwargs={}", "eval.episodes=none"])
    path = tmp_path / "config.toml"
    path.write_text(dump_toml(config))
    assert resolve([str(path)]) == config


def test_configurations_share_no_table():
    first = resolve()
    first.env.kwargs["changed"] = True
    assert "changed" not in resolve().env.kwargs


@pytest.mark.parametrize(
    ("assignment", "parts"),
    [
        ("optim.lrr=1", ("'optim.lrr'", "did you mean optim.lr?")),
        ("optm.lr=1", ("'optm.lr'", "did you mean optim.lr?")),
        ("lr=1", ("'lr'", "did you mean optim.lr?")),
        ("credit.options_tau=1", ("'credit.options_tau'", "credit.options")),
        ("optim.zzzz=1", ("'optim.zzzz'", "known here:", "max_grad_norm")),
        ("zzzz=1", ("'zzzz'", "known sections:", "rollout")),
    ],
)
def test_an_unknown_key_is_named_with_the_near_ones(assignment: str, parts: tuple[str, ...]):
    text = message(assignment)
    assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ("optim.lr=fast", "optim.lr is 'fast' (str), expected a number"),
        ("rollout.group_size=2.5", "rollout.group_size is 2.5 (float), expected an integer"),
        ("seed=true", "seed is True (bool), expected an integer"),
        ("optim.lr=true", "optim.lr is True (bool), expected a number"),
        ("rollout.tasks='8'", "rollout.tasks is '8' (str), expected an integer"),
        ("rollout.tasks=8.0", "rollout.tasks is 8.0 (float), expected an integer"),
        ("model.load_in_4bit=1", "model.load_in_4bit is 1 (int), expected true or false"),
        ("env.kwargs=3", "env.kwargs is 3 (int), expected a table"),
        ("eval.episodes=all", "eval.episodes is 'all' (str), expected an integer or \"none\""),
        ("prompt=3", "prompt is 3, expected a table of keys"),
        ("optim.lr.x=3", "optim.lr"),
        ("seed={}", "seed is {} (dict), expected an integer"),
        ('"optim.lr"=3', "must not be quoted: write optim.lr"),
    ],
)
def test_a_wrong_type_names_key_value_and_what_was_expected(assignment: str, text: str):
    assert text in message(assignment)


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ("rollout.group_size=0", "rollout.group_size is 0, expected a number of 1 or more"),
        ("credit.gamma=1.5", "credit.gamma is 1.5, expected a number of 0 or more and at most 1"),
        ("sampling.temperature=0", "sampling.temperature is 0.0, expected a number above 0"),
        ("optim.lr=nan", "optim.lr is nan"),
        ("optim.lr=inf", "optim.lr is inf"),
        ("env.max_steps=0", "env.max_steps is 0"),
        ("env.id=' '", "env.id is empty"),
        ("env.max_steps=-1", "env.max_steps is -1, expected a number of 1 or more"),
        ("rollout.gpu_memory=2", "is 2.0, expected a number above 0 and at most 1"),
        ("rollout.engine_url=x", "a vllm-server needs an address"),
        ("model.device=gpu", "model.device is 'gpu', expected"),
        ("credit.options.gamma=0.5", "credit.options.gamma has a key of its own: set credit.gamma"),
        *(
            (f"credit.options.{name}=1", f"{name} has a key of its own: set credit.{name}")
            for name in ("method", "omega", "reward_scale")
        ),
        *(
            (f"credit.options.{name}=1", f"credit.options.{name} is no option of a method")
            for name in ("group", "episode", "step", "reward", "success", "state")
        ),
        ("credit.options={truncated=true}", "credit.options.truncated is no option of a method"),
        ("credit.options={action='go'}", "credit.options.action is no option of a method"),
        ("credit.options={penalty=0.5}", "credit.options.penalty is no option of a method"),
        ("env.kwargs.a=nan", "env.kwargs.a is nan, expected a value without nan"),
        ("env.kwargs.a=[1, {b=nan}]", "env.kwargs.a is [1, {'b': nan}], expected"),
        pytest.param(f"env.kwargs.a={'[' * 200}{']' * 200}", "recursion limit", id="lists"),
        pytest.param(f"env.kwargs.a={'[' * 2000}{']' * 2000}", "too deeply", id="many lists"),
        pytest.param(f"env.kwargs{'.a' * 2000}=1", "deeper than 100 levels", id="tables"),
    ],
)
def test_a_value_no_run_can_use_is_named_with_what_is_expected(assignment: str, text: str):
    assert text in message(assignment)


def test_weights_of_4_bits_are_sampled_from_by_the_trainer_alone():
    """What is exported of them is their adapters, which no engine would take for weights."""
    base = resolve(assignments=["model.load_in_4bit=true", "model.lora_rank=8"])
    with pytest.raises(ConfigError, match="4 bits cannot be handed to another engine"):
        resolve(assignments=["rollout.engine=vllm"], base=base)


def test_a_wrong_choice_proposes_the_near_one():
    with pytest.raises(UnknownNameError, match=r"prompt.style 'tink'; did you mean think"):
        resolve(assignments=["prompt.style=tink"])


def test_an_engine_of_ones_own_is_a_module_and_a_name():
    assert resolve(assignments=["rollout.engine=mine:Engine"]).rollout.engine == "mine:Engine"
    with pytest.raises(UnknownNameError, match=r"rollout.engine 'vlm'; did you mean vllm"):
        resolve(assignments=["rollout.engine=vlm"])


def test_every_field_says_what_it_means():
    assert {"seed", "env.id", "optim.lr", "credit.options"} < fields().keys()
    assert [key for key, field in fields().items() if not field.get("description")] == []


@pytest.mark.parametrize("assignment", ["optim.lr", "=3", "optim..lr=3"])
def test_an_assignment_without_key_or_value_shows_the_form(assignment: str):
    assert "key=value" in message(assignment)


def test_an_unknown_preset_proposes_the_near_one():
    with pytest.raises(UnknownNameError, match="unknown preset 'smok'; did you mean smoke"):
        resolve(["smok"])


def test_a_missing_or_broken_file_is_named(tmp_path: Path):
    with pytest.raises(DataError, match="absent.toml"):
        resolve([str(tmp_path / "absent.toml")])
    broken = tmp_path / "broken.toml"
    broken.write_text("seed = = 1")
    with pytest.raises(ConfigError, match="broken.toml is not valid TOML"):
        resolve([str(broken)])


@pytest.mark.parametrize("name", [n for n in preset_names() if "qwen2.5" in n])
def test_the_paper_presets_run_at_the_scale_of_its_authors(name: str):
    """A win counts 10 in the step part, an invalid action costs a hundredth of it."""
    config = resolve([name])
    assert (config.credit.omega, config.credit.reward_scale) == (1.0, 10.0)
    assert config.rollout.invalid_penalty == 0.1
    assert resolve([name], {"credit.method": "proxmo-released"}).credit.reward_scale == 10.0
