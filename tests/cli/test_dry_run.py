"""`proxmo train --dry-run` refuses what no run could be."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--env", "ALFWorl-v0"), 2, "unknown environment 'ALFWorl-v0'"),
        (("--method", "proxmoo"), 2, "did you mean proxmo"),
        (("--data", "/no/such/place"), 1, "no ALFWorld data at '/no/such/place'"),
        (("--set", "eval.split=valid"), 2, "unknown split 'valid'"),
        (("--set", "credit.options.taw=0.1"), 2, "did you mean tau"),
        (("--set", "env.kwargs.difficulty=huge"), 2, "unknown difficulty 'huge'"),
    ],
)
def test_a_dry_run_finds_what_does_not_exist(
    proxmo, arguments: tuple[str, ...], code: int, text: str
):
    done = proxmo("train", *arguments, "--dry-run")
    assert (done.code, done.out) == (code, "")
    assert text in done.error_line


def test_a_dry_run_says_what_the_run_needs_and_stays_valid_toml(proxmo, tmp_path):
    from proxmo.config_loading import load_toml, resolve

    done = proxmo("train", "--preset", "webshop-qwen2.5-1.5b", "--method", "gigpo", "--dry-run")
    assert (done.code, done.err) == (0, "")
    comments = [line for line in done.out.splitlines() if line.startswith("# ")]
    for part in ("1,543,714,304 parameters", "while training", "at most", "about"):
        assert any(part in line for line in comments), part
    (tmp_path / "config.toml").write_text(done.out)
    recipe = resolve(["webshop-qwen2.5-1.5b"], {"credit.method": "gigpo"})
    assert load_toml(tmp_path / "config.toml") == recipe
