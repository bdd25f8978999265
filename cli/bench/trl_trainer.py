"""TRL's GRPOTrainer on the prompts of `proxmo bench train`; run by an interpreter that has TRL.

    PYTHON trl_trainer.py < job.json

Imports nothing of this package: TRL and proxmo need not share an environment. Tested with 1.16.0.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any


def main() -> None:
    """Train as the job on stdin says; print tokens and times as JSON."""
    job = json.load(sys.stdin)
    import datasets
    import torch
    import transformers
    import trl

    rows: list[int] = []
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"])

    def reward(prompts: list[str], completions: list[str], **columns: Any) -> list[float]:
        read = [len(ids) for ids in tokenizer(prompts, add_special_tokens=False)["input_ids"]]
        rows.append(sum(read) + sum(map(len, columns["completion_ids"])))
        answers = columns["answer"]
        return [float(text.strip() == a) for text, a in zip(completions, answers, strict=True)]

    ends: list[tuple[float, float]] = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append((time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as folder:
        trainer = trl.GRPOTrainer(
            model=transformers.AutoModelForCausalLM.from_pretrained(
                job["model"], dtype=torch.float32
            ),
            processing_class=tokenizer,
            reward_funcs=reward,
            train_dataset=datasets.Dataset.from_list(job["prompts"]),
            args=trl.GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=job["tasks"] * job["group_size"],
                gradient_accumulation_steps=1,
                num_generations=job["group_size"],
                max_completion_length=job["max_new_tokens"],
                max_steps=job["iterations"],
                learning_rate=job["lr"],
                lr_scheduler_type="constant",
                temperature=job["temperature"],
                beta=0.0,
                shuffle_dataset=False,
                gradient_checkpointing=False,
                bf16=False,
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=0,
            ),
            callbacks=[Clock()],
        )
        trainer.train()
    # The first step is a warm-up.
    wall, cpu = (last - first for first, last in zip(ends[0], ends[-1], strict=True))
    found = {"version": trl.__version__, "tokens": sum(rows[1:]), "seconds": wall, "cpu": cpu}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
