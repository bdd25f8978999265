"""What no command can do is refused in one line, with nothing on stdout and nothing written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

TINY = "--set env.kwargs.difficulty=tiny"
PACK = "data alfworld --out x.packed --cache cache"
API = "eval --api m --base-url http://localhost:1/v1"

USAGE = {
    "trian": "unknown command 'trian'; did you mean train?",
    "bench credt": "unknown benchmark 'credt'; did you mean credit",
    "train --modl x": "--model",
    "train --seed x": "'x' is not a valid integer",
    "train stray": "stray",
    "train --minutes 0": "--minutes",
    "train --minutes nan --out a": "'--minutes': 'nan' is not a finite number",
    "train --minutes inf --out a": "'--minutes': 'inf' is not a finite number",
    "train --model '' --out a": "model.name is empty",
    "train --data '' --out a": "env.data is empty",
    "train --nproc 0": "--nproc",
    "train --nproc 2 --device cuda:1 --out run": "2 processes take one GPU each",
    "train --env ALFWorl-v0 --dry-run": "unknown environment 'ALFWorl-v0'",
    "train --method proxmoo --dry-run": "did you mean proxmo",
    "train --set eval.split=valid --dry-run": "unknown eval.split of ALFWorld-v0 'valid'",
    "train --set credit.options.taw=0.1 --dry-run": "did you mean tau",
    "train --set env.kwargs.difficulty=huge --dry-run": "unknown difficulty 'huge'",
    "train --resume absent": "absent is not a run directory",
    "sft --model '' --out a": "model.name is empty",
    "sft --data '' --out a": "env.data is empty",
    "sft --noise nan --out out": "'--noise': 'nan' is not a finite number",
    "sft --epochs nan --out out": "'--epochs': 'nan' is not a finite number",
    "sft --lr nan --out out": "'--lr': 'nan' is not a finite number",
    "eval": "give one of --checkpoint DIR, --model M, --api NAME",
    "eval --checkpoint run --policy expert": "give one of --checkpoint DIR",
    "eval --api m --policy expert": "give one of",
    "eval --policy random --episodes 0": "--episodes",
    "eval --policy random --temperature 1": "--temperature",
    "eval --policy expert --max-tokens 3": "--max-tokens has no meaning for --policy",
    "eval --policy random --panel alfworld-both --env E": "leave --env out",
    "eval --policy random --panel alfworld-both --split S": "leave --split out",
    "eval --policy random --panel alfworld-both --episodes 3": "leave --episodes out",
    **{
        f"eval --policy random --seeds '{seeds}'": "not of the form 0 or 0,1,2"
        for seeds in ("", "a", "1,", "1.5", "0 1")
    },
    "eval --api m": "OPENAI_API_KEY",
    "eval --api m --base-url here": "base URL 'here'",
    "eval --api m --device cpu": "--device has no meaning for --api",
    "eval --model m --rate 3": "--rate has no meaning for --model",
    "eval --checkpoint run --style terse": "--style needs --agent",
    "eval --model m --tries 2": "--tries has no meaning for --agent direct",
    "eval --model m --agent react --style terse": "--style has no meaning for",
    f"{API} --agent re": "react",
    f"{API} --style x": "prompt style",
    "explain nowhere": "holds no run",
    "play --env Nope-v0": "unknown environment 'Nope-v0'; known: ALFWorld-v0",
    "play --task nope": "unknown task 'nope'",
    "play --set difficulty": "--set takes NAME=VALUE",
    "play --set colour=red": "cannot be made with",
    "panels alfworld-bth": "did you mean alfworld-both",
    "panels --episodes 4": "--episodes describes a new panel: give --new FILE",
    "panels --new p.toml alfworld-both": "leave alfworld-both out",
    "panels --new p.toml --set optim.lr=1": "a panel has keys of env only",
    f"panels --new p.toml {TINY} --set env.kwargs.hints=1": "argument",
    f"panels --new p.toml {TINY} --episodes 2000": "valid_unseen holds 1000 tasks",
    "table": "give at least one RUN, or --published",
    PACK: "either --from PATH or --download",
    f"{PACK} --from . --download": "either --from PATH or --download",
    f"{PACK} --from . --url http://x/y": "belong to --download",
    f"{PACK} --from nowhere": "nowhere",
    f"{PACK} --download --url a.zip": "no http address",
    **{
        f"webshop serve {option}={value}": option
        for option, value in (
            *(("--port", 70000), ("--workers", 0), ("--sessions", 0), ("--idle", 0)),
            *(("--idle", "nan"), ("--profile", "fair"), ("--goals", "mine")),
        )
    },
    **{
        f"bench {name} --sizes {sizes}": "expected numbers like 1000,100000"
        for name in ("credit", "search")
        for sizes in ("many", "0", "10,-1", "inf")
    },
    "bench env --env CartPole-v1": "known: ALFWorld-v0",
    "bench env --original python": "--original needs --data DIR",
}
FAILURES = {
    "train --data /no/such/place --dry-run": "no ALFWorld data at '/no/such/place'",
    "play --data /no/such": "no ALFWorld data at",
    "panels --data nowhere": "nowhere",
    f"{PACK} --from .": "not an ALFWorld data directory",
    f"{PACK} --download --url http://127.0.0.1:9/a.zip": "cannot download",
    "webshop serve --port 0 --data /nowhere": "/nowhere",
    "webshop serve --port 0 --difficulty odd": "odd",
    "webshop serve --difficulty tiny --host nowhere.invalid": "no address nowhere.invalid:3000",
}
CASES = [(line, 2, part) for line, part in USAGE.items()]
CASES += [(line, 1, part) for line, part in FAILURES.items()]


@pytest.mark.parametrize(("line", "code", "part"), CASES)
def test_what_cannot_be_done_is_one_line(
    proxmo, monkeypatch: pytest.MonkeyPatch, line: str, code: int, part: str
):
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    if "--api" in line:
        pytest.importorskip("openai", reason="needs the extra api")
    done = proxmo(*shlex.split(line))
    assert (done.code, done.out) == (code, "")
    *before, last = done.err.splitlines()
    assert last.startswith("error: ") and part in last and "error: unexpected" not in last
    # Nothing but progress comes before the error.
    assert not any("rror" in one for one in before)
    assert [path for path in Path().iterdir() if path.name != "cache"] == []
