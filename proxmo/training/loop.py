"""The training loop: sample tasks, play groups of episodes, assign credit, update, measure, save.

Every random draw of iteration i comes from a generator seeded by (run seed, purpose, i). So a
resumed run needs nothing but weights, optimiser state and the number of the iteration to continue
as if it had never stopped.
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
from proxmo.checkpoints import latest_checkpoint
from proxmo.config import Config
from proxmo.distributed import SINGLE, ProcessGroup
from proxmo.errors import RolloutError
from proxmo.evaluation import Evaluation, evaluate_agent
from proxmo.listener import Listener
from proxmo.rollout.environments import EnvPool
from proxmo.training.checkpoint import prune_checkpoints, save_checkpoint
from proxmo.training.critic import Critic
from proxmo.training.learner import Learner
from proxmo.training.metrics import rollout_metrics, time_metrics
from proxmo.training.models import EMBEDDED, initial_model, load_trained
from proxmo.training.prompt_embeddings import prompt_embeddings
from proxmo.training.request import check_request, tasks_of
from proxmo.training.rollouts import Rollouts
from proxmo.training.run_directory import RunDirectory
from proxmo.training.sampler import PROBES, Sampler
from proxmo.training.timer import PhaseTimer
from proxmo.types import Batch

logger = logging.getLogger(__name__)

# Separates the draws of the updates from those of `rollouts` (0 and 1) and the evaluation (3).
UPDATE = 2


@dataclass(frozen=True, slots=True)
class Run:
    """The result of training; `finished` is False if it stopped before its last iteration."""

    path: Path
    iterations_done: int
    finished: bool
    checkpoint: Path
    metrics: Mapping[str, float] = field(default_factory=dict)
    before: Evaluation | None = None
    after: Evaluation | None = None


class Trainer:
    """Trains one policy in one run directory.

    The constructor checks the request; `run` loads the model and trains.

    Args:
        config: everything the run depends on.
        out: run directory; new or empty unless `resume`.
        resume: continue from the latest checkpoint in `out`.
        listener: hears about phases, iterations and evaluations.
        minutes: save and stop instead of starting an iteration after so many minutes; None sets no
            limit.
        processes: the processes that train together, each with a trainer of equal arguments; the
            main one reports and writes the run.

    Raises:
        UsageError: unknown environment or method, or a run directory that is in use; see
            `check_request` for the other checks.
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
        processes: ProcessGroup = SINGLE,
    ) -> None:
        self.config = config
        self.processes = processes
        self.listener = (listener if processes.is_main else None) or Listener()
        self.deadline = None if minutes is None else time.monotonic() + 60.0 * minutes
        self.stopping = False
        # Finds every mistake in the request before anything is written or computed.
        self.credit_options = check_request(config)
        self.pool = EnvPool(config.env)
        self.tasks = tasks_of(config.env, config.env.split)
        self.directory = RunDirectory(out, config, resume=resume, writes=processes.is_main)
        self.resume = resume

    def request_stop(self) -> None:
        """Asks the loop to finish its iteration, save and return; signal handlers may call this."""
        self.stopping = True

    def must_stop(self) -> bool:
        """Whether any process was asked to stop, or the time is up."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        return self.processes.any(self.stopping or late)

    def run(self) -> Run:
        """Trains to the last iteration or to a stop."""
        with closing(self.pool), self.directory, ExitStack() as resources:
            loop = _Loop(self, resources)
            metrics = loop.run()
        evaluations = self.directory.evaluations()
        finished = loop.iteration >= self.config.optim.iterations
        return Run(
            path=self.directory.path,
            iterations_done=loop.iteration,
            finished=finished and evaluations[-1][0] == loop.iteration,
            checkpoint=self.directory.checkpoint_path(loop.iteration),
            metrics=metrics,
            before=evaluations[0][1],
            after=evaluations[-1][1] if len(evaluations) > 1 else None,
        )


class _Loop:
    """The loaded parts of a run, and what one iteration does with them.

    Args:
        trainer: the checked request.
        resources: closes the sampler and the rollouts, also after an error in here.
    """

    def __init__(self, trainer: Trainer, resources: ExitStack) -> None:
        config = self.config = trainer.config
        self.trainer = trainer
        self.processes = trainer.processes
        self.listener = trainer.listener
        self.directory = trainer.directory
        saved = latest_checkpoint(self.directory.path) if trainer.resume else None
        with self.processes.main_first():
            initial = initial_model(config, self.directory, self._warm_start_phase)
        source = initial if saved is None else str(saved.path)
        self.listener.phase("loading model", text=source)
        self.model, self.tokenizer, reference = load_trained(
            config, initial, None if saved is None else source
        )
        pad_id = self.tokenizer.pad_token_id
        self.learner = Learner(
            self.model,
            reference,
            config.optim,
            temperature=config.sampling.temperature,
            pad_id=pad_id,
            max_response=config.sampling.max_new_tokens,
            processes=self.processes,
            sharded=self.processes.size > 1 and config.model.parallel == "fsdp",
        )
        self.critic = (
            Critic(self.model, config.optim, pad_id=pad_id, seed=config.seed)
            if credit.needs_values(config.credit.method)
            else None
        )
        self.directory.create()
        if config.model.name == EMBEDDED:
            self.directory.keep_initial(Path(initial))
        if saved is not None:
            self._restore(saved.path)
        self.iteration = 0 if saved is None else saved.iteration
        self._saved = None if saved is None else saved.iteration
        self.directory.truncate_after(-1 if saved is None else saved.iteration)
        self.sampler = resources.enter_context(
            closing(Sampler(config, self.model, self.tokenizer, source, self.processes))
        )
        self.builder = PromptBuilder(config.prompt, self.tokenizer)
        self.rollouts = resources.enter_context(
            closing(
                Rollouts(
                    config,
                    trainer.tasks,
                    trainer.pool,
                    self._agent(config.sampling.temperature),
                    lambda done, total: self.listener.phase("rollout", done=done, total=total),
                    self.processes,
                )
            )
        )

    def _warm_start_phase(self, name: str, **details: Any) -> None:
        """Reports the warm start; a stop ends it at once, as there is nothing to save yet."""
        if self.trainer.stopping:
            raise KeyboardInterrupt
        self.listener.phase(name, **details)

    def _restore(self, checkpoint: Path) -> None:
        state = self.directory.load_state(checkpoint, shared=self.processes.size > 1)
        self.learner.load_state(state)
        if self.critic is not None:
            self.critic.load_state(state["critic"])

    def run(self) -> dict[str, float]:
        """Trains to the end or to a stop; returns the metrics of the last iteration."""
        self.sampler.begin(self.iteration)
        if not self.directory.evaluations():
            self._evaluate()
        metrics = self._train(self.config.optim.iterations)
        # Also measures a run that was stopped in its last iteration and is resumed only for this.
        measured = self.directory.evaluations()[-1][0] == self.iteration
        if not measured and not self.processes.any(self.trainer.stopping):
            self._evaluate()
        if self._saved != self.iteration:
            self._save()
        return metrics

    def _train(self, total: int) -> dict[str, float]:
        """Iterates, measures and saves as often as configured."""
        metrics: dict[str, float] = {}
        every = self.config.eval.every
        while self.iteration < total and not self.trainer.must_stop():
            metrics = self._iterate()
            self.iteration += 1
            if self.iteration == total:
                break  # `run` measures and saves the end of a run
            measured = every > 0 and self.iteration % every == 0
            if measured:
                self._evaluate()
            if measured or self.iteration % self.config.checkpoint.every == 0:
                self._save()
        return metrics

    def _iterate(self) -> dict[str, float]:
        """One iteration: rollout, credit, update; returns and records its metrics."""
        config, timer = self.config, PhaseTimer()
        timer.start("rollout")
        rollout = self.rollouts.get(self.iteration)
        if config.rollout.lag and self.iteration + 1 < config.optim.iterations:
            self.rollouts.begin(self.iteration + 1)
        self.sampler.rest()
        timer.start("credit")
        batch = Batch.from_episodes(rollout.episodes)
        if not len(batch):
            causes = sorted({e.cause or e.outcome.value for e in rollout.episodes})
            raise RolloutError(
                f"no episode of iteration {self.iteration + 1} can be learned from: "
                f"{'; '.join(causes)}"
            )
        assigned, values = self._assign_credit(batch)
        timer.start("update")
        metrics = rollout_metrics(rollout.episodes) | rollout.metrics | dict(assigned.diagnostics)
        metrics |= self.learner.update(
            batch.steps,
            # Equal in all processes, because they skip steps of zero advantage, and on a GPU a zero
            # may come out as something else in another process.
            self.processes.broadcast(np.asarray(assigned.advantage)),
            rng=np.random.default_rng((config.seed, UPDATE, self.iteration)),
        )
        if self.critic is not None and values is not None:
            metrics |= self.critic.update(batch, values, self.trainer.credit_options)
        timer.start("wait")
        self.rollouts.wait()
        timer.start("weight_sync")
        metrics |= self.sampler.update(
            self.iteration + 1, [step.prompt_ids for step in batch.steps[:PROBES]]
        )
        timer.stop()
        tokens = sum(len(s.prompt_ids) + len(s.response_ids) for s in batch.steps)
        metrics |= time_metrics(timer.seconds, tokens)
        self.directory.record_iteration(
            self.iteration + 1, metrics, rollout.episodes, assigned, values
        )
        self.listener.iteration(metrics, self.iteration + 1, config.optim.iterations)
        return metrics

    def _assign_credit(self, batch: Batch) -> tuple[credit.Credit, Any]:
        """The advantages of a batch, and the critic's values if there is a critic."""
        options = self.trainer.credit_options
        prompts = [step.prompt_ids for step in batch.steps]
        values = None
        if self.critic is not None:
            values = self.critic.values(prompts)
            options = {**options, "value": values}
        states: Any = batch.states
        if credit.needs_policy(options):
            states = prompt_embeddings(
                self.model,
                prompts,
                pad_id=self.tokenizer.pad_token_id,
                token_budget=self.config.optim.micro_batch_tokens,
            )
        assigned = credit.assign(
            self.config.credit.method,
            group=batch.group,
            episode=batch.episode,
            step=batch.index,
            reward=batch.reward,
            success=batch.success,
            state=states,
            truncated=batch.truncated,
            action=batch.actions,
            penalty=self.config.rollout.invalid_penalty * ~batch.valid,
            **options,
        )
        return assigned, values

    def _agent(self, temperature: float) -> LanguageAgent:
        return LanguageAgent(
            self.sampler.policy,
            self.builder,
            style=self.config.prompt.style,
            temperature=temperature,
            max_new_tokens=self.config.sampling.max_new_tokens,
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
            processes=self.processes,
        )
        self.directory.record_evaluation(self.iteration, evaluation)
        self.listener.evaluation(evaluation.to_json())

    def _save(self) -> None:
        self.listener.phase("saving", text=f"step_{self.iteration}")
        state = self.learner.state()
        if self.critic is not None:
            state["critic"] = self.critic.state()
        self._saved = self.iteration
        if not self.processes.is_main:
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
