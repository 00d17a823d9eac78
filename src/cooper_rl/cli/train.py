"""`cooper train`: run a configuration."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cooper_rl.cli.console import console, progress
from cooper_rl.cli.report import say_how_to_open
from cooper_rl.observe.progress import TRAINING_METRICS


def train(
    config: Annotated[Path, typer.Argument(help="A YAML file; see configs/.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings that override the file: key=value.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue after the run's newest checkpoint.")] = False,
) -> None:
    """Train a policy together with its reward model."""
    from cooper_rl.inputs import read_inputs  # noqa: PLC0415 - `cooper --help` stays quick
    from cooper_rl.observe.folder import check_folder  # noqa: PLC0415
    from cooper_rl.run_config import load_config  # noqa: PLC0415

    settings = load_config(config, overrides or [])
    check_folder(Path(settings.output_dir) / settings.name, resume)
    inputs = read_inputs(settings)

    from cooper_rl.observe.report.report import write_report  # noqa: PLC0415
    from cooper_rl.trainer import CooperTrainer  # noqa: PLC0415 - torch loads only after the input is checked

    trainer = CooperTrainer.from_config(settings, resume, inputs)
    with trainer, progress(settings.name, settings.steps, TRAINING_METRICS) as advance:
        trainer.fit(on_step=advance)
    console.print(f"run: {trainer.directory}", highlight=False, soft_wrap=True)
    say_how_to_open(write_report(trainer.directory))
    if trainer.stopped_by is not None:
        console.print(f"stopped after step {trainer.completed_steps} by a watch rule: {trainer.stopped_by.message}")
        sys.exit(3)
    if trainer.interrupted:
        console.print(f"stopped after step {trainer.completed_steps}; continue with --resume")
        sys.exit(130)
