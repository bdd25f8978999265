"""The whole algorithm in one loop: play groups of episodes, assign credit, update the policy.

`python examples/rl_loop.py` first builds the embedded model (minutes, once), then trains it.
`proxmo train` does the same with evaluation, checkpoints, a KL penalty, vLLM and many GPUs.
"""

import numpy as np
import torch

from proxmo import Config, credit
from proxmo.agents.language import LanguageAgent
from proxmo.agents.prompts import PromptBuilder
from proxmo.config_loading import resolve
from proxmo.policies.transformers import TransformersPolicy, load_model
from proxmo.rollout.collector import Collector
from proxmo.rollout.environments import EnvPool
from proxmo.training.loss import clipped_policy_loss
from proxmo.training.tiny import TinyConfig, tiny_model_path
from proxmo.types import Batch, Step
from proxmo_envs import task_set


def train(config: Config, path: str) -> None:
    """Train the language model in a directory and print the success rate of each iteration."""
    model, tokenizer = load_model(path)
    policy, prompts = TransformersPolicy(model, tokenizer), PromptBuilder(config.prompt, tokenizer)
    sampling = {"temperature": 1.0, "max_new_tokens": config.sampling.max_new_tokens}
    agent = LanguageAgent(policy, prompts, style=config.prompt.style, **sampling)
    tasks = task_set(config.env.id, config.env.split, **config.env.kwargs)
    collector = Collector(EnvPool(config.env), agent)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.optim.lr)
    for iteration in range(config.optim.iterations):
        rng = np.random.default_rng([config.seed, iteration])
        # 1. Rollout. A group is several episodes of one task: what could have happened instead.
        chosen = [task.task_id for task in tasks.sample(rng, config.rollout.tasks)]
        group_size = config.rollout.group_size
        episodes = collector.play(chosen, group_size=group_size, seed=[config.seed, iteration])
        # 2. Credit. Each step gets an advantage: its episode against the group, plus its own
        # discounted return against that of the group's steps in similar states.
        steps = Batch.from_episodes(episodes)  # columns, one row per step
        keys = {"group": steps.group, "episode": steps.episode, "step": steps.index}
        facts = {"reward": steps.reward, "success": steps.success, "state": steps.states}
        advantage = credit.assign("proxmo", **keys, **facts, gamma=0.95, tau=0.1).advantage
        # 3. Update. Tokens of steps with a positive advantage become likelier, others less likely.
        for rows in np.array_split(rng.permutation(len(steps)), config.optim.minibatches):
            tokens = sum(len(steps.steps[row].response_ids) for row in rows)
            for row in rows:
                (loss(model, steps.steps[row], float(advantage[row])) / tokens).backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"iteration {iteration + 1}: {np.mean([one.won for one in episodes]):.0%} won")


def loss(model: torch.nn.Module, step: Step, advantage: float) -> torch.Tensor:
    """Sum the clipped objective over the response tokens of a step."""
    prompt, response = torch.tensor([step.prompt_ids]), torch.tensor([step.response_ids])
    logits = model(torch.cat([prompt, response], 1)).logits[:, prompt.shape[1] - 1 : -1]
    new = logits.log_softmax(-1).gather(-1, response.unsqueeze(-1)).squeeze(-1)
    old, gain = torch.tensor([step.logprobs]), torch.tensor([[advantage]])
    return clipped_policy_loss(new, old, gain, clip_low=0.2, clip_high=0.2)[0].sum()


if __name__ == "__main__":
    settings = resolve(["smoke"])
    start = tiny_model_path(settings.env, settings.prompt, TinyConfig(), lambda *_, **__: None)
    train(settings, str(start))
