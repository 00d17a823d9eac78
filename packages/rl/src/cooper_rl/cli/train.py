"""Commands about training: `cooper train`, `serve`, `export` and `push`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cooper_audit.cli.runs import say_how_to_open
from cooper_base.cli.console import Overrides, progress, say
from cooper_rl.run.first_screen import TRAINING_METRICS


def train(
    config: Annotated[Path, typer.Argument(help="A YAML file; see configs/.")],
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option(help="Continue after the run's newest checkpoint.")] = False,
) -> None:
    """Train a policy, and its reward model beside it.

    The run's folder gets metrics, every completion, checkpoints and a report.
    """
    from cooper_rl.run.inputs import read_inputs
    from cooper_rl.run.recorder import check_folder
    from cooper_rl.run_config import load_config

    settings = load_config(config, overrides or [])
    check_folder(Path(settings.output_dir) / settings.name, resume, "--resume")
    inputs = read_inputs(settings)

    from cooper_audit.report.report import REPORT_FILE
    from cooper_rl.run.trainer import CooperTrainer  # torch loads only after the input is checked

    trainer = CooperTrainer.from_config(settings, resume, inputs)
    with trainer, progress(settings.name, settings.steps, TRAINING_METRICS) as advance:
        trainer.fit(on_step=advance)
    say(f"run: {trainer.directory}")
    say_how_to_open(trainer.directory / REPORT_FILE)
    if trainer.stopped_by is not None:
        say(f"stopped after step {trainer.completed_steps} by a watch rule: {trainer.stopped_by.message}")
        sys.exit(3)
    if trainer.ended_by is not None and not trainer.interrupted:
        say(f"ended after step {trainer.completed_steps} by the callback {trainer.ended_by}; --resume would continue")
    if trainer.interrupted:
        say(f"stopped after step {trainer.completed_steps}; continue with --resume")
        sys.exit(130)


def serve(
    config: Annotated[Path, typer.Argument(help="A YAML file: of a run's settings those of its reward, and `serve`.")],
    overrides: Overrides = None,
) -> None:
    """Serve a reward that learns to trainers in other processes; see docs/serve.md."""
    from cooper_base.config.checking import check_settings, read_settings
    from cooper_rl.reward.reward_config import read_reward_inputs
    from cooper_rl.service.config import ServeConfig, check_extra, listen, read_token

    settings = check_settings(ServeConfig, read_settings(config, overrides or []))
    check_extra()
    token = read_token(settings.serve)
    inputs = read_reward_inputs(settings)
    inputs.check_servers(settings)
    listener = listen(settings.serve)

    from cooper_rl.service.server import serve as run  # torch loads only now that the input is good

    run(settings, inputs, token, listener)


def export(
    source: Annotated[Path, typer.Argument(help="A folder with an adapter, such as a checkpoint's policy/.")],
    target: Annotated[Path, typer.Argument(help="The folder to write.")],
) -> None:
    """Merge an adapter into its base and write a plain Hugging Face folder."""
    from cooper_rl.engines.model_folder import check_merge

    check_merge(str(source), target)

    from cooper_rl.engines.local.models import merge_folder  # torch loads only now that the folders are good

    merge_folder(str(source), target)


def push(
    source: Annotated[Path, typer.Argument(help="A run, or a folder with policy/ and reward_model/.")],
    policy: Annotated[str | None, typer.Option(help="The policy's repository, such as me/my-policy.")] = None,
    reward_model: Annotated[str | None, typer.Option(help="The reward model's repository.")] = None,
    best: Annotated[bool, typer.Option("--best", help="The run's best models instead of its last.")] = False,
    private: Annotated[bool, typer.Option(help="Make new repositories private.")] = False,
) -> None:
    """Upload the models of a finished run, with their cards, to the Hugging Face hub (or to HF_ENDPOINT)."""
    from cooper_rl.record.hub import push_models

    folder = source / ("best" if best else "final") if (source / "metrics.jsonl").is_file() else source
    for address in push_models(folder, {"policy": policy, "reward_model": reward_model}, private):
        say(f"pushed: {address}")
