"""Two forked processes that do the scenarios of test_distributed.py; run as a program.

    python -m tests.proxmo.together OUT SCENARIO...

Each leaves its results in OUT. Forked from a process that has imported everything and computed
nothing, they start at once.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers  # noqa: F401  before the fork
from torch.multiprocessing.spawn import _prctl_pr_set_pdeathsig

from proxmo.config import CheckpointConfig, Config, ModelConfig, OptimConfig
from proxmo.distributed import ProcessGroup, process_group
from proxmo.policies.transformers import TransformersPolicy
from proxmo.training.learner import Learner
from proxmo.training.loop import Trainer
from proxmo.types import Step
from tests.fakes import counter_config, tiny_model, tiny_tokenizer

PROCESSES = 2
# Small batches, so that both processes have several, and one of them one more.
OPTIM = OptimConfig(lr=1e-3, kl_coef=0.0, max_grad_norm=0.5, micro_batch_tokens=40)
OBJECTIVES = {
    "one step": OPTIM,
    "everything": replace(
        OPTIM,
        kl_coef=0.1,
        entropy_coef=0.01,
        epochs=2,
        minibatches=3,
        aggregation="sequence",
        old_logprobs="recomputed",
    ),
    # No more steps with an advantage than one process needs.
    "little": replace(OPTIM, micro_batch_tokens=1000, minibatches=12),
}
TEXTS = ["now 1", "to 12 now 3 up", "0", "now 0 to 1"] * 3 + ["up"]


def sampled() -> list[Step]:
    """Steps whose responses an untrained model gave."""
    tokenizer = tiny_tokenizer()
    prompts = [tokenizer(text)["input_ids"] for text in TEXTS]
    policy = TransformersPolicy(tiny_model(), tokenizer)
    responses = policy.generate(prompts, temperature=1.0, max_new_tokens=6, seed=(1,))
    return [
        Step(0, "", tuple(p), r.ids, r.logprobs, r.text, r.text, True, "ok", 0.0, 0)
        for p, r in zip(prompts, responses, strict=True)
    ]


def learner(objective: str, *, model: Any = None, **options: Any) -> Learner:
    config = OBJECTIVES[objective]
    reference = tiny_model(seed=1).requires_grad_(False) if config.kl_coef else None
    return Learner(model or tiny_model(), reference, config, temperature=1.0, pad_id=0, **options)


def update(trained: Learner, number: int) -> dict[str, float]:
    advantages = np.linspace(-1.0, 1.0, len(TEXTS))
    if trained.config.minibatches == 12:
        advantages[3:] = 0.0
    return trained.update(sampled(), advantages, rng=np.random.default_rng(number))


def weights(model: Any) -> dict[str, Any]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def outcome(trained: Learner, metrics: dict[str, float]) -> dict[str, Any]:
    return {"metrics": metrics, "weights": weights(trained.whole), "state": trained.state()}


def learn(processes: ProcessGroup, out: Path) -> None:
    """Two updates of each objective, in both forms, and what is saved after each."""
    for objective in OBJECTIVES:
        for sharded in (False, True):
            trained = learner(objective, processes=processes, sharded=sharded)
            for number in range(2):
                found = outcome(trained, update(trained, number))
                name = f"{objective}-{'fsdp' if sharded else 'data'}-{number}-{processes.rank}.pt"
                torch.save(found, out / name)


def go_on(processes: ProcessGroup, out: Path) -> None:
    """The second update, after the first of a single process."""
    for sharded in (False, True):
        saved = torch.load(out / "single.pt", weights_only=True)
        model = tiny_model()
        model.load_state_dict(saved["weights"], strict=False)
        trained = learner("everything", model=model, processes=processes, sharded=sharded)
        trained.load_state(saved["state"])
        found = outcome(trained, update(trained, 1))
        torch.save(found, out / f"resumed-{'fsdp' if sharded else 'data'}-{processes.rank}.pt")


def half(processes: ProcessGroup, out: Path) -> None:
    """Updates of a bfloat16 model, and what is saved after each."""
    trained = learner(
        "one step", model=tiny_model().to(torch.bfloat16), processes=processes, sharded=True
    )
    for number in range(2):
        found = outcome(trained, update(trained, number))
        torch.save(found, out / f"half-{number}-{processes.rank}.pt")


def adapt(processes: ProcessGroup, out: Path, forms: tuple[str, ...] = ("data", "fsdp")) -> None:
    """Updates of adapters, with the base as the reference."""
    from proxmo.training.adapters import add_adapters

    for form in forms:
        model = add_adapters(tiny_model(), ModelConfig(lora_rank=4), 0)
        config = replace(OPTIM, kl_coef=0.1, lr=1e-2)
        sharded = form == "fsdp"
        trained = Learner(
            model, None, config, temperature=1.0, pad_id=0, processes=processes, sharded=sharded
        )
        for number in range(2):
            metrics = update(trained, number)
        torch.save(outcome(trained, metrics), out / f"adapters-{form}-{processes.rank}.pt")


def run_config(model: Path, iterations: int = 3, parallel: str = "data") -> Config:
    config = counter_config(
        model,
        optim=OptimConfig(
            iterations=iterations, lr=1e-3, kl_coef=0.05, minibatches=2, micro_batch_tokens=2000
        ),
        checkpoint=CheckpointConfig(every=1, keep=5),
    )
    return replace(
        config,
        model=replace(config.model, parallel=parallel),
        rollout=replace(config.rollout, tasks=3, resample=1),
    )


def train(processes: ProcessGroup, out: Path) -> None:
    """Whole runs in both forms."""
    for parallel in ("data", "fsdp"):
        config = run_config(out / "model", parallel=parallel)
        Trainer(config, out=out / parallel, processes=processes).run()


def engine(processes: ProcessGroup, out: Path) -> None:
    """A run with an engine in each process that holds weights of its own, as vLLM does."""
    config = run_config(out / "model", parallel="fsdp")
    own = "tests.proxmo.training.test_sampler:start"
    config = replace(config, rollout=replace(config.rollout, engine=own))
    Trainer(config, out=out / "engine", processes=processes).run()


def stop(processes: ProcessGroup, out: Path) -> None:
    """A run that only the second process is asked to stop."""
    trainer = Trainer(run_config(out / "model"), out=out / "stopped", processes=processes)
    if processes.rank == 1:
        trainer.request_stop()
    assert not trainer.run().finished


SCENARIOS: dict[str, Callable[[ProcessGroup, Path], None]] = {
    one.__name__: one for one in (learn, go_on, half, adapt, train, stop, engine)
}


def main(out: Path, names: list[str]) -> None:
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(store.port),
        TORCHELASTIC_USE_AGENT_STORE="True",
        WORLD_SIZE=str(PROCESSES),
    )
    children = []
    for rank in range(PROCESSES):
        child = os.fork()
        if not child:
            _prctl_pr_set_pdeathsig(signal.SIGKILL)
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            try:
                with process_group("cpu") as processes:
                    for name in names:
                        SCENARIOS[name](processes, out)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    while children:
        ended, status = os.wait()
        children.remove(ended)
        if status:
            for child in children:
                os.kill(child, 9)
            sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
