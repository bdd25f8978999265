"""The configuration of a run: one tree of dataclasses, one comment line under each field's name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class EnvConfig:
    """Which world is played."""

    # Gymnasium id of a registered text environment.
    id: str = "ALFWorld-v0"
    # Where the tasks come from: None (generated games), a directory or a file.
    data: str | None = None
    # Tasks to train on.
    split: str = "train"
    # Step limit of an episode; None takes the environment's own (50 in ALFWorld, 15 in WebShop).
    max_steps: int | None = None
    # Further keyword arguments of `gymnasium.make`, for example {difficulty = "tiny"}.
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which language model is trained."""

    # A directory, a Hugging Face hub id, or "tiny": the embedded model, built and warmed up here.
    name: str = "tiny"
    # "auto" (cuda when there is one), "cpu", "cuda", "cuda:1".
    device: str = "auto"
    # Parameter type: "auto" (bfloat16 on cuda, float32 on cpu), "float32", "bfloat16".
    dtype: str = "auto"
    # Rank of LoRA adapters (peft); 0 trains every weight.
    lora_rank: int = 0
    # Scale of the adapters: alpha / rank times their product is added.
    lora_alpha: int = 32
    # Load the base in 4 bits (QLoRA, bitsandbytes on cuda); needs lora_rank.
    load_in_4bit: bool = False
    # Recompute activations in the backward pass: less memory, about a third more time.
    gradient_checkpointing: bool = False
    # What several processes (--nproc) hold of what is trained: "data" (all of it each), "fsdp"
    # (FSDP2: a piece of weights, gradients and optimiser state each).
    parallel: str = "data"


@dataclass(frozen=True, slots=True)
class PromptConfig:
    """How an observation becomes a prompt and a reply becomes an action."""

    # "think": <think>...</think><action>...</action>; "terse": the reply is the action;
    # "bare": as terse, and the possible actions are not listed.
    style: str = "think"
    # How many past (observation, action) pairs the prompt shows; 0 shows none.
    history: int = 2
    # Token budget of the prompt; what does not fit is cut visibly (oldest history first).
    max_prompt_tokens: int = 2048


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How replies are sampled during training."""

    # Softmax temperature; the same in the loss.
    temperature: float = 1.0
    # Longest reply in tokens.
    max_new_tokens: int = 512


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """How many episodes an iteration plays."""

    # Tasks (groups) per iteration.
    tasks: int = 16
    # Episodes per task (N in the papers).
    group_size: int = 8
    # Subtracted from a step's reward when its action is invalid.
    invalid_penalty: float = 0.1
    # Who samples: "transformers" (the trained model itself), "vllm" (in this process),
    # "vllm-server" (a running `vllm serve`).
    engine: str = "transformers"
    # Address of the vLLM server, such as http://127.0.0.1:8000.
    engine_url: str | None = None
    # Share of the GPU's memory that vLLM in this process may take.
    gpu_memory: float = 0.5
    # Further arguments of vLLM's engine, for example {tensor_parallel_size = 2}.
    engine_options: dict[str, Any] = field(default_factory=dict)
    # Most episodes in flight; None plays all of an iteration together.
    max_live: int | None = None
    # Seconds an episode's environment may take in all, in evaluations too; None sets no limit.
    episode_timeout_s: float | None = None
    # How often an episode that failed is played again; its group then goes on without it.
    retries: int = 1
    # How many updates the weights an episode is sampled with may be behind: 1 plays the episodes of
    # the next iteration while this one is trained on (vLLM only).
    lag: int = 0
    # How often groups without variance are replaced by fresh tasks (DAPO's dynamic sampling).
    resample: int = 0
    # Largest mean gap between the log-probabilities of sampler and trainer right after an update;
    # None: 0.001 in float32, 0.05 in bfloat16.
    sync_tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class CreditConfig:
    """How returns become advantages (arXiv 2602.19225)."""

    # A registered method: proxmo, gigpo, grpo, ...
    method: str = "proxmo"
    # Discount of the step return.
    gamma: float = 0.95
    # Weight of the step-level advantage against the episode-level one.
    omega: float = 1.0
    # Further options of the method, for example {tau = 0.1, beta = 0.1, embedding = "tfidf"}.
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OptimConfig:
    """How advantages become an update."""

    # Training iterations.
    iterations: int = 150
    # AdamW learning rate.
    lr: float = 1e-6
    # AdamW weight decay.
    weight_decay: float = 0.01
    # Linear warm-up of the learning rate, in optimiser steps.
    warmup_steps: int = 0
    # What follows: "constant", "linear" (to 0) or "cosine" (to 0) over the iterations.
    lr_schedule: str = "constant"
    # Largest gradient norm.
    max_grad_norm: float = 1.0
    # Clip ratio below and above 1.
    clip_low: float = 0.2
    clip_high: float = 0.2
    # Weight of the KL divergence to the frozen reference; 0 keeps no reference.
    kl_coef: float = 0.01
    # Its estimator: "k1", "k2" or "k3".
    kl_estimator: str = "k3"
    # What a token weighs: "token" (all alike), "sequence" (the mean of each reply counts once) or
    # "constant" (as "token", divided by replies times the length limit: Dr. GRPO).
    aggregation: str = "token"
    # Log-probabilities the ratio is taken to: "sampler" (as sampled) or "recomputed" before the
    # update, with truncated importance sampling between both.
    old_logprobs: str = "sampler"
    # Largest importance weight between sampler and trainer; only with "recomputed".
    importance_cap: float = 2.0
    # Weight of the entropy bonus.
    entropy_coef: float = 0.0
    # Optimiser steps per pass over the batch.
    minibatches: int = 1
    # Passes over the batch.
    epochs: int = 1
    # Value head of `ppo` and `gae`: AdamW rate, passes over the batch, and how far an estimate may
    # move in one iteration.
    value_lr: float = 1e-3
    value_epochs: int = 10
    value_clip: float = 0.2
    # Updates in a row without a finite gradient, after which a run stops.
    max_skipped: int = 5
    # Tokens (padding included) in one forward-backward pass.
    micro_batch_tokens: int = 16384


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """What is measured on tasks that are never trained on."""

    # Split the evaluation plays.
    split: str = "valid_unseen"
    # Episodes; None plays every task of the split once.
    episodes: int | None = None
    # Evaluate before the first and after every so many iterations; 0 only at both ends.
    every: int = 0
    # Sampling temperature; 0 is greedy.
    temperature: float = 0.4


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """What is kept of a run."""

    # Save after every so many iterations (and always at the end and on Ctrl-C).
    every: int = 10
    # How many checkpoints are kept, the newest; the best by validation success is kept besides.
    keep: int = 3


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a run depends on."""

    # Seed of every random draw of the run.
    seed: int = 0
    env: EnvConfig = field(default_factory=EnvConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    credit: CreditConfig = field(default_factory=CreditConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
