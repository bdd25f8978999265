"""`proxmo train --dry-run` refuses what no run could be."""

from __future__ import annotations


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
