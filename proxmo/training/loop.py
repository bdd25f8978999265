"""The training loop: sample tasks, play groups of episodes, assign credit, update, measure, save.

Every random draw of iteration i comes from a generator made of (run seed, purpose, i). A resumed
run therefore needs nothing but weights, optimiser state and the number of the iteration to go on as
if it had never stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proxmo import credit
from proxmo.agents.language import LanguageAgent
from proxmo.agents.prompts import PromptBuilder
from proxmo.config import Config
from proxmo.errors import RolloutError
from proxmo.evaluation import Evaluation, evaluate_agent
from proxmo.policies.transformers import check_context
from proxmo.reporting.listener import Listener
from proxmo.rollout.environments import EnvPool
from proxmo.training.checkpoint import latest_checkpoint, prune_checkpoints, save_checkpoint
from proxmo.training.critic import Critic
from proxmo.training.distributed import ALONE, World
from proxmo.training.learner import Learner
from proxmo.training.metrics import rollout_metrics
from proxmo.training.models import EMBEDDED, initial_model, load_trained
from proxmo.training.prompt_embeddings import prompt_embeddings
from proxmo.training.request import check_request, tasks_of
from proxmo.training.rollouts import Rollouts
from proxmo.training.run_directory import FollowedRun, RunDirectory
from proxmo.training.sampler import PROBES, Sampler
from proxmo.types import Batch

logger = logging.getLogger(__name__)

# Parts the draws of the updates from those of `rollouts` (0 and 1) and of the evaluation (3).
UPDATE = 2


@dataclass(frozen=True, slots=True)
class Run:
    """What training left behind; `finished` is False when it stopped before its last iteration."""

    path: Path
    iterations_done: int
    finished: bool
    checkpoint: Path
    metrics: Mapping[str, float] = field(default_factory=dict)
    before: Evaluation | None = None
    after: Evaluation | None = None


class Trainer:
    """Trains one policy in one run directory.

    Args:
        config: everything the run depends on.
        out: run directory; new or empty unless `resume`.
        resume: continue from the latest checkpoint in `out`.
        listener: told about phases, iterations and evaluations.
        minutes: stop (and save) before an iteration that would begin later than this; None for no
            limit.
        world: the processes that train together, each with a trainer of equal arguments; the first
            one reports and writes the run.

    Raises:
        UsageError: unknown environment or method, or a run directory that is in use; see
            `check_request` for what else is checked.
        DataError: model or data cannot be loaded.
    """

    def __init__(
        self,
        config: Config,
        *,
        out: Path,
        resume: bool = False,
        listener: Listener | None = None,
        minutes: float | None = None,
        world: World = ALONE,
    ) -> None:
        self.config = config
        self.world = world
        self.listener = (listener if world.leads else None) or Listener()
        self.deadline = None if minutes is None else time.monotonic() + 60.0 * minutes
        self._stop = False
        # Whatever can be wrong with the request is found before anything is written or computed.
        check_request(config)
        self._credit_options = credit.credit_options(config.credit)
        self.pool = EnvPool(config.env)
        self.tasks = tasks_of(config.env, config.env.split)
        self.directory = (
            RunDirectory(out, config, resume=resume) if world.leads else FollowedRun(out, config)
        )
        self.resume = resume
        self.iteration = 0

    def request_stop(self) -> None:
        """Asks the loop to finish its iteration, save and return; signal handlers may call this."""
        self._stop = True

    def run(self) -> Run:
        """Trains to the last iteration, or to a stop, and returns what was reached."""
        total = self.config.optim.iterations
        with closing(self.pool), self.directory, ExitStack() as engine:
            self._prepare()
            engine.callback(self.sampler.close)
            engine.callback(self.rollouts.close)
            self.sampler.begin(self.iteration)
            if not self.directory.evaluations():
                self._evaluate()
            metrics = self._train(total)
            # Also where a run was stopped in its last iteration and is resumed only for this.
            measured = self.directory.evaluations()[-1][0] == self.iteration
            if not measured and not self.world.any(self._stop):
                self._evaluate()
            if self._saved != self.iteration:
                self._save()
        evaluations = self.directory.evaluations()
        return Run(
            path=self.directory.path,
            iterations_done=self.iteration,
            finished=self.iteration >= total and evaluations[-1][0] == self.iteration,
            checkpoint=self.directory.checkpoint_path(self.iteration),
            metrics=metrics,
            before=evaluations[0][1],
            after=evaluations[-1][1] if len(evaluations) > 1 else None,
        )

    def _warm_start_phase(self, name: str, **details: Any) -> None:
        """Reports the warm start; a stop ends it at once, as there is nothing to save yet."""
        if self._stop:
            raise KeyboardInterrupt
        self.listener.phase(name, **details)

    def _train(self, total: int) -> dict[str, float]:
        """Iterates, measures and saves as often as asked; returns the last iteration's metrics."""
        metrics: dict[str, float] = {}
        every = self.config.eval.every
        while self.iteration < total and not self._must_stop():
            metrics = self._iterate()
            self.iteration += 1
            if self.iteration == total:
                break  # what ends a run is measured and saved after it
            measured = every > 0 and self.iteration % every == 0
            if measured:
                self._evaluate()
            if measured or self.iteration % self.config.checkpoint.every == 0:
                self._save()
        return metrics

    def _must_stop(self) -> bool:
        late = self.deadline is not None and time.monotonic() > self.deadline
        return self.world.any(self._stop or late)

    def _prepare(self) -> None:
        """Loads model, reference and optimiser: the first ones, or those of the last checkpoint."""
        config = self.config
        saved = latest_checkpoint(self.directory.path) if self.resume else None
        with self.world.one_first():
            source = initial_model(config, self.directory, self._warm_start_phase)
        self.listener.phase("loading model", text=source if saved is None else str(saved.path))
        self.model, self.tokenizer, reference = load_trained(
            config, source, None if saved is None else str(saved.path)
        )
        check_context(
            self.model,
            prompt_tokens=config.prompt.max_prompt_tokens,
            new_tokens=config.sampling.max_new_tokens,
        )
        self.learner = Learner(
            self.model,
            reference,
            config.optim,
            temperature=config.sampling.temperature,
            pad_id=self.tokenizer.pad_token_id,
            longest_reply=config.sampling.max_new_tokens,
            world=self.world,
            sharded=self.world.size > 1 and config.model.parallel == "fsdp",
        )
        self.critic = (
            Critic(self.model, config.optim, pad_id=self.tokenizer.pad_token_id, seed=config.seed)
            if credit.needs_values(config.credit.method)
            else None
        )
        self.directory.create()
        if config.model.name == EMBEDDED:
            self.directory.keep_initial(Path(source))
        if saved is not None:
            shared = self.world.size > 1
            state = self.directory.load_state(saved.path, shared=shared)
            self.learner.load_state(state)
            if self.critic is not None:
                self.critic.load_state(state["critic"])
            self.iteration = saved.iteration
        self._saved = None if saved is None else saved.iteration
        self.directory.truncate_after(-1 if saved is None else self.iteration)
        self.sampler = Sampler(
            config,
            self.model,
            self.tokenizer,
            source if saved is None else str(saved.path),
            self.world,
        )
        self.builder = PromptBuilder(config.prompt, self.tokenizer)
        self.rollouts = Rollouts(
            config,
            self.tasks,
            self.pool,
            self._agent(config.sampling.temperature),
            lambda done, total: self.listener.phase("rollout", done=done, total=total),
            self.world,
        )

    def _agent(self, temperature: float) -> LanguageAgent:
        return LanguageAgent(
            self.sampler.policy,
            self.builder,
            style=self.config.prompt.style,
            temperature=temperature,
            max_new_tokens=self.config.sampling.max_new_tokens,
        )

    def _iterate(self) -> dict[str, float]:
        """One iteration: rollout, credit, update; returns and records its metrics."""
        config = self.config
        started = time.monotonic()
        rollout = self.rollouts.get(self.iteration)
        episodes = rollout.episodes
        if config.rollout.lag and self.iteration + 1 < config.optim.iterations:
            self.rollouts.begin(self.iteration + 1)
        self.sampler.rest()
        played = time.monotonic()
        batch = Batch.from_episodes(episodes)
        if not len(batch):
            causes = sorted({e.cause or e.outcome.value for e in episodes})
            raise RolloutError(
                f"no episode of iteration {self.iteration + 1} can be learned from: "
                f"{'; '.join(causes)}"
            )
        values = None
        options = self._credit_options
        if self.critic is not None:
            values = self.critic.values([step.prompt_ids for step in batch.steps])
            options = {**options, "value": values}
        assigned = credit.assign(
            config.credit.method,
            group=batch.group,
            episode=batch.episode,
            step=batch.index,
            reward=batch.reward,
            success=batch.success,
            state=self._states(batch),
            truncated=batch.truncated,
            action=batch.actions,
            **options,
        )
        credited = time.monotonic()
        metrics = rollout_metrics(episodes) | rollout.metrics | dict(assigned.diagnostics)
        metrics |= self.learner.update(
            batch.steps,
            # They must go along with the same steps, and on a GPU a zero may be none elsewhere.
            self.world.told(np.asarray(assigned.advantage)),
            rng=np.random.default_rng((config.seed, UPDATE, self.iteration)),
        )
        if self.critic is not None and values is not None:
            metrics |= self.critic.update(batch, values, self._credit_options)
        trained = time.monotonic()
        self.rollouts.wait()
        waited = time.monotonic()
        metrics |= self.sampler.update(
            self.iteration + 1, [step.prompt_ids for step in batch.steps[:PROBES]]
        )
        ended = time.monotonic()
        tokens = sum(len(s.prompt_ids) + len(s.response_ids) for s in batch.steps)
        metrics |= {
            "time/rollout_s": played - started,
            "time/credit_s": credited - played,
            "time/credit_share": (credited - played) / (ended - started),
            "time/training_s": trained - played,
            "time/weight_sync_s": ended - waited,
            "time/iteration_s": ended - started,
            "speed/tokens_per_s": tokens / (ended - started),
        }
        self.directory.record_iteration(self.iteration + 1, metrics, episodes, assigned, values)
        self.listener.iteration(metrics, self.iteration + 1, config.optim.iterations)
        return metrics

    def _states(self, batch: Batch) -> Any:
        """What the credit compares: observations, or the policy's own view of the prompts."""
        if not credit.needs_policy(self._credit_options):
            return batch.states
        return prompt_embeddings(
            self.model,
            [step.prompt_ids for step in batch.steps],
            pad_id=self.tokenizer.pad_token_id,
            token_budget=self.config.optim.micro_batch_tokens,
        )

    def _evaluate(self) -> None:
        """Plays the validation tasks with the current weights and records the result."""
        evaluation = evaluate_agent(
            self._agent(self.config.eval.temperature),
            self.config.env,
            split=self.config.eval.split,
            episodes=self.config.eval.episodes,
            seed=self.config.seed,
            timeout_s=self.config.rollout.episode_timeout_s,
            listener=self.listener,
            world=self.world,
        )
        self.directory.record_evaluation(self.iteration, evaluation)
        self.listener.evaluation(evaluation.to_json())

    def _save(self) -> None:
        self.listener.phase("saving", text=f"step_{self.iteration}")
        state = self.learner.state()
        if self.critic is not None:
            state["critic"] = self.critic.state()
        self._saved = self.iteration
        if not self.world.leads:
            return
        save_checkpoint(
            self.directory.path / "checkpoints",
            self.iteration,
            model=self.model,
            tokenizer=self.tokenizer,
            settings=self.directory.settings(),
            state=state,
        )
        prune_checkpoints(
            self.directory.path,
            keep=self.config.checkpoint.keep,
            protect=self.directory.best_iteration(),
        )
