"""`proxmo sft`: fine-tune a model on an expert's or on recorded episodes, checkpoint out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxmo.config import Config
from proxmo.config_loading import load_toml, resolve

from . import options
from .display import progress, show, show_json

if TYPE_CHECKING:
    from proxmo.training.imitation import Imitated


@click.command("sft")
@options.env("Environment  [ALFWorld-v0, or that of --from]")
@options.text(
    "--model", "Directory or hub id of a model; tiny: the embedded one  [tiny]", metavar="M"
)
@options.data()
@options.path(
    "--from",
    "Recorded episodes: a run, the --out of an evaluation, a file  [the expert plays]",
    name="source",
    metavar="RUN|FILE",
    exists=True,
)
@options.count("--episodes", "Episodes to imitate  [1000, or all that are recorded]")
@click.option("--lost", is_flag=True, help="Imitate recorded episodes that were not won, too.")
@options.number(
    "--noise",
    "Share of steps at which chance acts for the expert",
    0.1,
    minimum=0,
    maximum=1,
    metavar="P",
)
@options.number("--epochs", "Passes over the steps", 1.0, above=0)
@options.count("--batch-size", "Steps in an optimiser step", 32)
@options.number("--lr", "Learning rate  [1e-5; adapters 1e-4; tiny 1e-3]", above=0, metavar="LR")
@click.option("--evaluate", is_flag=True, help="Measure success before and after.")
@options.presets()
@options.assignments("Set any key of the configuration, for example prompt.style=terse.")
@options.seed("Seed of every random draw  [0]", minimum=None)
@options.device()
@options.path("--out", "Directory of the checkpoint, new or empty  [runs/<env>-sft-<seed>-<time>]")
@options.as_json()
@options.debug
def command(
    presets: tuple[str, ...],
    assignments: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **choice: Any,
) -> None:
    """Fine-tune a model to act as an expert, or as recorded episodes that were won.

    What comes out is a plain Hugging Face directory for `proxmo eval --checkpoint` and `proxmo
    train --model`. Precision, adapters and memory are configured as in training: model.lora_rank,
    model.dtype, model.gradient_checkpointing, optim.micro_batch_tokens.
    """
    config = _config(choice["source"], presets, options.take_keys(choice), assignments)
    out = out or options.default_directory(config, "sft")
    with progress(f"proxmo sft · {config.env.id} · {config.model.name}") as listener:
        listener.phase("loading libraries")
        from proxmo.training.imitation import ImitationConfig, fine_tune

        result = fine_tune(config, ImitationConfig(**choice), out, listener)
    _print(result, as_json=as_json)


def _config(
    source: Path | None,
    presets: tuple[str, ...],
    flags: dict[str, Any],
    assignments: tuple[str, ...],
) -> Config:
    """Resolve the configuration, over the environment, prompt and model of a recorded run."""
    if source is not None and (source / "config.toml").is_file():
        return resolve(presets, flags, assignments, base=load_toml(source / "config.toml"))
    if source is not None and source.is_dir():
        from proxmo.training.recorded import recorded_settings

        flags = recorded_settings(source) | {k: v for k, v in flags.items() if v is not None}
    return resolve(presets, flags, assignments)


def _print(result: Imitated, *, as_json: bool) -> None:
    if as_json:
        show_json(result)
        return
    from proxmo.reporting.tables import imitation_table

    show(imitation_table(result))
    click.echo(f"evaluate with: proxmo eval --checkpoint {shlex.quote(str(result.path))}")
    click.echo(f"train on with: proxmo train --preset {shlex.quote(f'{result.path}/sft.toml')}")
