"""`proxmo sft`: fine-tune a model on an expert's or on recorded episodes, checkpoint out."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxmo.config import Config
from proxmo.config_loading import load_toml, resolve

from .display import progress, show
from .failures import debug_option
from .paths import absolute
from .ranges import Number

if TYPE_CHECKING:
    from proxmo.training.imitation import Imitated


@click.command("sft")
@click.option("--env", metavar="ID", help="Environment  [ALFWorld-v0, or that of --from]")
@click.option(
    "--model", metavar="M", help="Directory or hub id of a model; tiny: the embedded one  [tiny]"
)
@click.option("--data", metavar="PATH", help="Where the tasks come from  [generated]")
@click.option(
    "--from",
    "source",
    metavar="RUN|FILE",
    type=click.Path(exists=True, path_type=Path),
    help="Recorded episodes: a run, the --out of an evaluation, a file  [the expert plays]",
)
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Episodes to imitate  [1000, or all that are recorded]",
)
@click.option("--lost", is_flag=True, help="Imitate recorded episodes that were not won, too.")
@click.option(
    "--noise",
    type=Number(0, 1),
    default=0.1,
    metavar="P",
    help="Share of steps at which chance acts for the expert  [0.1]",
)
@click.option(
    "--epochs",
    type=Number(min=0, min_open=True),
    default=1.0,
    metavar="N",
    help="Passes over the steps  [1]",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=32,
    metavar="N",
    help="Steps in an optimiser step  [32]",
)
@click.option(
    "--lr",
    type=Number(min=0, min_open=True),
    metavar="LR",
    help="Learning rate  [1e-5; adapters 1e-4; tiny 1e-3]",
)
@click.option("--evaluate", is_flag=True, help="Measure success before and after.")
@click.option(
    "--preset", "presets", multiple=True, metavar="P", help="Preset by name or TOML file."
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=C",
    help="Set any key of the configuration, for example prompt.style=terse.",
)
@click.option("--seed", type=int, metavar="N", help="Seed of every random draw  [0]")
@click.option("--device", metavar="D", help="auto, cpu, cuda or cuda:1  [auto]")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Directory of the checkpoint, new or empty  [runs/<env>-sft-<seed>-<time>]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@debug_option
def command(
    env: str | None,
    model: str | None,
    data: str | None,
    seed: int | None,
    device: str | None,
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
    flags = {
        "env.id": env,
        "env.data": absolute(data),
        "model.name": absolute(model),
        "model.device": device,
        "seed": seed,
    }
    config = _config(choice["source"], presets, flags, assignments)
    out = out or _default_directory(config)
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
    """The configuration; world, prompt and model of a recorded run lie under what is asked for."""
    if source is not None and (source / "config.toml").is_file():
        return resolve(presets, flags, assignments, base=load_toml(source / "config.toml"))
    if source is not None and source.is_dir():
        from proxmo.training.recorded import recorded_settings

        flags = recorded_settings(source) | {k: v for k, v in flags.items() if v is not None}
    return resolve(presets, flags, assignments)


def _default_directory(config: Config) -> Path:
    world = config.env.id.rpartition(":")[2].replace("/", "-")
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{world}-sft-{config.seed}-{stamp}"


def _print(result: Imitated, *, as_json: bool) -> None:
    path = shlex.quote(str(result.path))
    if as_json:
        evaluations = {
            name: one and one.to_json()
            for name, one in (("before", result.before), ("after", result.after))
        }
        facts = {k: v for k, v in asdict(result).items() if k not in evaluations}
        click.echo(json.dumps({**facts, "path": str(result.path), **evaluations}, indent=2))
        return
    from proxmo.reporting.tables import imitation_table

    show(imitation_table(result))
    click.echo(f"evaluate with: proxmo eval --checkpoint {path}")
    click.echo(f"train on with: proxmo train --preset {shlex.quote(f'{result.path}/sft.toml')}")
