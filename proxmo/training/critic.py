"""The value head of PPO: predicts the return of a step from the policy's hidden state.

The head reads the last hidden state of the prompt's last token and passes no gradient on: only the
policy's own objective trains the policy, and a method without values costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmo import credit
from proxmo.config import OptimConfig
from proxmo.training.prompt_embeddings import prompt_embeddings
from proxmo.types import Batch

# Width of the head's only hidden layer.
HIDDEN = 128


class Critic:
    """Estimates V_t of every step and learns from the returns.

    Args:
        model: the policy.
        config: rate (`value_lr`), passes (`value_epochs`) and clip range (`value_clip`).
        pad_id: padding token.
        seed: of the head's first weights.
    """

    def __init__(self, model: Any, config: OptimConfig, *, pad_id: int, seed: int) -> None:
        import torch

        self.model = model
        self.config = config
        self.pad_id = pad_id
        width = model.config.get_text_config().hidden_size
        # Initialisation has no generator argument in torch.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = torch.nn.Sequential(
                torch.nn.LayerNorm(width),
                torch.nn.Linear(width, HIDDEN),
                torch.nn.Tanh(),
                torch.nn.Linear(HIDDEN, 1),
            )
        for parameter in self.head[-1].parameters():
            torch.nn.init.zeros_(parameter)  # the first estimates are 0
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=config.value_lr)
        self._features: Any = None

    def values(self, prompts: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """V_t of S prompts, (S,); the next `update` learns on the same prompts."""
        import torch

        found = prompt_embeddings(
            self.model,
            prompts,
            pad_id=self.pad_id,
            token_budget=self.config.micro_batch_tokens,
            pool="last",
        )
        self._features = torch.from_numpy(found)
        with torch.no_grad():
            return self.head(self._features).squeeze(-1).double().numpy()

    def update(
        self, batch: Batch, values: NDArray[np.float64], options: Mapping[str, Any]
    ) -> dict[str, float]:
        """Moves V_t towards V_t + A_t by the clipped squared error; returns `value/*` metrics.

        Per step max((V - G)^2, (clip(V, V_old +- value_clip) - G)^2), as in the PPO
        implementation of Schulman et al. 2017 (arXiv 1707.06347).

        Args:
            batch: the steps that `values` estimated.
            values: the estimates, (S,).
            options: of the credit method; gamma and lam set the target G.
        """
        import torch

        discounts = {name: options[name] for name in ("gamma", "lam") if name in options}
        estimated = credit.assign(
            "gae",
            group=batch.group,
            episode=batch.episode,
            step=batch.index,
            reward=batch.reward,
            success=batch.success,
            truncated=batch.truncated,
            state=None,
            value=values,
            whiten=False,
            **discounts,
        )
        old = torch.from_numpy(values).float()
        target = torch.from_numpy(values + np.asarray(estimated.advantage)).float()
        clip = self.config.value_clip
        loss = torch.zeros(())
        for _ in range(self.config.value_epochs):
            now = self.head(self._features).squeeze(-1)
            near = old + (now - old).clamp(-clip, clip)
            loss = torch.maximum((now - target).square(), (near - target).square()).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        spread = float(target.var(unbiased=False))
        error = float((target - old).var(unbiased=False))
        return {
            "value/loss": loss.item(),
            "value/mean": float(values.mean()),
            "value/explained_variance": 1.0 - error / spread if spread > 0 else float("nan"),
        }

    def state(self) -> dict[str, Any]:
        """The state that a resumed run needs."""
        return {"head": self.head.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from what `state` returned."""
        self.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
