"""The configuration of a run: one tree of dataclasses, each field with its range and its meaning.

This module only declares. `proxmo.config_loading` reads presets and checks them against these
types; docs/configuration.md is generated from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Predicate

Name = Annotated[str, Predicate(lambda text: bool(text.strip()))]
Count = Annotated[int, Ge(1)]
CountOrZero = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
PositiveOrZero = Annotated[float, Ge(0)]


class Section:
    """Base of every part of the configuration: how pydantic checks it."""

    __slots__ = ()
    __pydantic_config__ = {
        "strict": True,
        "extra": "forbid",
        "allow_inf_nan": False,
        "use_attribute_docstrings": True,
    }


@dataclass(frozen=True, slots=True)
class EnvConfig(Section):
    """The environment."""

    id: Name = "ALFWorld-v0"
    """Gymnasium id of a registered text environment, or `module:id` to import the module first."""
    data: Name | None = None
    """Directory or file of the tasks; none takes those that come with the environment."""
    split: Name = "train"
    """Split of the tasks to train on."""
    max_steps: Count | None = None
    """Step limit of an episode; none takes the environment's own (ALFWorld 50, WebShop 15)."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Further keyword arguments of `gymnasium.make`, for example {difficulty = "tiny"}."""


@dataclass(frozen=True, slots=True)
class ModelConfig(Section):
    """The language model to train."""

    name: Name = "tiny"
    """A directory, a Hugging Face id, or "tiny": the embedded model, which proxmo builds itself."""
    device: str = "auto"
    """Device: "auto" (cuda where there is one), "cpu", "cuda" or one GPU such as "cuda:1"."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of the parameters; "auto" is bfloat16 on cuda, float32 on a CPU."""
    lora_rank: CountOrZero = 0
    """Rank of LoRA adapters (peft); 0 trains every weight."""
    lora_alpha: Count = 32
    """Scale of the adapters: the model adds alpha / rank times their product."""
    load_in_4bit: bool = False
    """Load the base in 4 bits (QLoRA, bitsandbytes on cuda); needs lora_rank."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    parallel: Literal["data", "fsdp"] = "data"
    """With several processes (--nproc): "data" gives each the whole model, "fsdp" (FSDP2) a shard
    of the weights, gradients and optimiser state."""


@dataclass(frozen=True, slots=True)
class PromptConfig(Section):
    """How an observation becomes a prompt and a response becomes an action."""

    style: str = "think"
    """Form of a response. "think": <think>...</think><action>...</action>; "terse": the action
    alone; "bare": as terse, and the prompt does not list the admissible actions."""
    history: CountOrZero = 2
    """Number of past (observation, action) pairs in the prompt."""
    max_prompt_tokens: Count = 2048
    """Token budget of the prompt; a longer one is cut visibly, oldest history first."""


@dataclass(frozen=True, slots=True)
class SamplingConfig(Section):
    """How the policy samples responses during training."""

    temperature: Positive = 1.0
    """Softmax temperature; the loss uses the same."""
    max_new_tokens: Count = 512
    """Longest response in tokens."""


@dataclass(frozen=True, slots=True)
class RolloutConfig(Section):
    """The episodes of an iteration, and the engine that samples them."""

    tasks: Count = 16
    """Tasks (groups) per iteration."""
    group_size: Count = 8
    """Episodes per task (N in the papers)."""
    invalid_penalty: PositiveOrZero = 0.1
    """Subtracted from the advantage of a step whose action is invalid; no other step is touched."""
    engine: str = "transformers"
    """Engine that samples: "transformers" (the trained model itself), "vllm" (in this process),
    "vllm-server" (a running `vllm serve`), or `module:name` of your own."""
    engine_url: str | None = None
    """Address of the vLLM server, such as http://127.0.0.1:8000."""
    gpu_memory: Annotated[float, Gt(0), Le(1)] = 0.5
    """Share of the GPU's memory that vLLM in this process may take."""
    engine_options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine, for example {tensor_parallel_size = 2}."""
    max_live: Count | None = None
    """Most episodes in flight; none plays all of an iteration together."""
    episode_timeout_s: Positive | None = None
    """Seconds an episode's environment may take in all, in evaluations too; none: no limit."""
    retries: CountOrZero = 1
    """How often a failed episode is played again before its group goes on without it."""
    lag: Annotated[int, Ge(0), Le(1)] = 0
    """Off-policy lag in updates: 1 plays the episodes of the next iteration while the trainer
    learns from this one (vLLM only)."""
    resample: CountOrZero = 0
    """How often fresh tasks replace groups without variance (DAPO's dynamic sampling)."""
    sync_tolerance: Positive | None = None
    """Largest mean gap between the log-probabilities of sampler and trainer right after an update;
    none: 0.001 in float32, 0.05 in bfloat16."""


@dataclass(frozen=True, slots=True)
class CreditConfig(Section):
    """How returns become advantages (arXiv 2602.19225)."""

    method: Name = "proxmo"
    """A registered method (proxmo, gigpo, grpo, ...) or `module:name` of your own."""
    gamma: Annotated[float, Ge(0), Le(1)] = 0.95
    """Discount of the step return."""
    omega: PositiveOrZero = 1.0
    """Weight of the step-level advantage against the episode-level one."""
    reward_scale: Positive = 1.0
    """What a reward of 1 counts as in the step part. The paper's environments pay 10 for a win and
    these pay 1: a scale of 10 gives the paper's balance of step and episode part."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of the method, for example {tau = 0.1, beta = 0.1, embedding = "tfidf"}."""


@dataclass(frozen=True, slots=True)
class OptimConfig(Section):
    """How advantages become an update."""

    iterations: CountOrZero = 150
    """Training iterations."""
    lr: PositiveOrZero = 1e-6
    """AdamW learning rate."""
    weight_decay: PositiveOrZero = 0.01
    """AdamW weight decay."""
    warmup_steps: CountOrZero = 0
    """Linear warm-up of the learning rate, in optimiser steps."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after the warm-up; "linear" and "cosine" fall to 0 over the iterations."""
    max_grad_norm: Positive = 1.0
    """Largest gradient norm."""
    clip_low: Annotated[float, Gt(0), Le(1)] = 0.2
    """How far below 1 the ratio is clipped."""
    clip_high: Positive = 0.2
    """How far above 1 the ratio is clipped."""
    kl_coef: PositiveOrZero = 0.01
    """Weight of the KL divergence to the frozen reference; 0 keeps no reference."""
    kl_estimator: Literal["k2", "k3"] = "k3"
    """Estimator of the KL divergence. "k3", the papers', has the right value in expectation; "k2"
    the right gradient, on samples of the policy itself. ("k1" would have no gradient at all.)"""
    aggregation: Literal["token", "sequence", "constant"] = "token"
    """Weight of a token in the loss: "token" (all alike), "sequence" (the mean of each response
    counts once) or "constant" (as "token", divided by responses times the length limit: Dr. GRPO).
    """
    old_logprobs: Literal["sampler", "recomputed"] = "sampler"
    """Denominator of the ratio: log-probabilities as sampled, or "recomputed" before the update,
    with truncated importance sampling between both."""
    importance_cap: Positive = 2.0
    """Largest importance weight between sampler and trainer; only with "recomputed"."""
    entropy_coef: PositiveOrZero = 0.0
    """Weight of the entropy bonus."""
    minibatches: Count = 1
    """Optimiser steps per pass over the batch."""
    epochs: Count = 1
    """Passes over the batch."""
    value_lr: PositiveOrZero = 1e-3
    """Value head of `ppo` and `gae`: AdamW learning rate."""
    value_epochs: Count = 10
    """Value head: passes over the batch."""
    value_clip: Positive = 0.2
    """Value head: how far an estimate may move in one iteration."""
    max_skipped: Count = 5
    """Updates in a row without a finite gradient, after which a run stops."""
    micro_batch_tokens: Count = 16384
    """Tokens (padding included) in one forward-backward pass."""


@dataclass(frozen=True, slots=True)
class EvalConfig(Section):
    """Evaluation on tasks the run never trains on."""

    split: Name = "valid_unseen"
    """Split of the evaluation."""
    episodes: Count | None = None
    """Number of episodes; none plays every task of the split once."""
    every: CountOrZero = 0
    """Evaluate before the first and after every so many iterations; 0 only at both ends."""
    temperature: PositiveOrZero = 0.4
    """Sampling temperature; 0 is greedy."""


@dataclass(frozen=True, slots=True)
class CheckpointConfig(Section):
    """Which checkpoints a run keeps."""

    every: Count = 10
    """Save after every so many iterations, always at the end and on Ctrl-C."""
    keep: Count = 3
    """Number of newest checkpoints to keep, besides the best by validation success."""


@dataclass(frozen=True, slots=True)
class Config(Section):
    """Everything a run depends on."""

    seed: CountOrZero = 0
    """Seed of every random draw of the run."""
    env: EnvConfig = field(default_factory=EnvConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    credit: CreditConfig = field(default_factory=CreditConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
