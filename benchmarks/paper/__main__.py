"""`python -m benchmarks.paper`: the paper's table, from VerifyRM to the page."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cooper_base.cli.console import say
from cooper_base.cli.main import app, commands
from cooper_rl import InputError

if TYPE_CHECKING:
    from benchmarks.paper.stages import Stage


COMMAND = "python -m benchmarks.paper"


def paper(
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings of every run: key=value.")] = None,
    model: Annotated[str, typer.Option("--model", help="qwen2.5-1.5b or llama-3.2-1b.")] = "qwen2.5-1.5b",
    arms: Annotated[
        str, typer.Option("--arms", help="Rows of the table, separated by commas.")
    ] = "base,rule,static,paper,cooper",
    scale: Annotated[
        str, typer.Option("--scale", help="full, or tiny: every stage within minutes on one core.")
    ] = "full",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Folder with the problems in files, where there is no hub (benchmarks/paper/README.md)."
        ),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option("--labelled", help="VerifyRM's training rows; the public ones by default.", dir_okay=False),
    ] = None,
    verifyrm: Annotated[str | None, typer.Option("--verifyrm", help="An existing VerifyRM to use.")] = None,
    verifyrm_setting: Annotated[
        list[str] | None, typer.Option("--verifyrm-setting", help="Settings of its training: key=value.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="For the measurements: local or vllm. By default vllm at full scale.")
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", help="By default runs/paper/MODEL, and -tiny at the tiny scale.")
    ] = None,
) -> None:
    """Fill the paper's table: train VerifyRM, train with each reward, measure avg@8 on five sets, write a page.

    Every stage leaves its result on disk. Run the same command again to go on after an interruption.
    """
    if scale not in ("full", "tiny"):
        raise InputError(f"--scale {scale}: use full or tiny")
    from benchmarks.paper.page import write_page
    from benchmarks.paper.stages import run_stages, stages_of
    from benchmarks.paper.study import Study

    from cooper_base.files.folder_lock import BUSY_RUNS
    from cooper_base.files.owned_folder import OwnedFolder

    folder = output_dir or Path("runs/paper") / (model if scale == "full" else f"{model}-tiny")
    chosen = tuple(dict.fromkeys(arm.strip() for arm in arms.split(",") if arm.strip()))
    study = Study(model, chosen, folder, scale, data, labelled, verifyrm, tuple(overrides or ()))
    stages = stages_of(study, engine or ("vllm" if scale == "full" else "local"), tuple(verifyrm_setting or ()))
    waiting = [stage for stage in stages if stage.result() is None]
    _check(study, waiting)
    command = _command(sys.argv[2:])
    with OwnedFolder(folder, COMMAND, BUSY_RUNS):
        page = write_page(study, stages, command)
        say(f"{len(stages)} stages, {len(stages) - len(waiting)} finished; page: {page}")

        def on_done(stage: "Stage", seconds: float) -> None:
            write_page(study, stages, command)
            number = stages.index(stage) + 1
            say(f"[{number} of {len(stages)}] {stage.name}: {_time(seconds)}; {_left(stages)}")

        finished = run_stages(stages, on_done)
    if not finished:
        say("stopped; the same command continues")
        raise typer.Exit(130)
    say(f"page: {page}")


def _check(study: Any, waiting: "list[Stage]") -> None:
    """Raises InputError or MissingExtraError, before hours of work, for a fault that only a later stage would meet."""
    from cooper_verify.clients.chat import ChatClient, ChatConfig

    if study.labelled is not None and not study.labelled.is_file():
        raise InputError(f"--labelled {study.labelled}: no such file")
    for stage in waiting:
        if stage.kind != "train":
            continue
        config = study.config(stage.arm)
        config.engine.check(config.policy, config.rollout)
        assistant = config.cooptimization.assistant
        if config.learns and isinstance(assistant, ChatConfig):
            client = ChatClient(assistant)
            try:
                client.check()
            finally:
                client.close()


def _left(stages: "list[Stage]") -> str:
    """Time left, from the mean of the finished stages of each kind."""
    results = [(stage.kind, stage.result()) for stage in stages]
    seconds_of = {
        kind: [result["seconds"] for other, result in results if other == kind and result] for kind, _ in results
    }
    open_kinds = [kind for kind, result in results if result is None]
    if not open_kinds:
        return "all done"
    seconds = sum(sum(seconds_of[kind]) / len(seconds_of[kind]) for kind in open_kinds if seconds_of[kind])
    new = [kind for kind in dict.fromkeys(open_kinds) if not seconds_of[kind]]
    said = f"about {_time(seconds)} left" if seconds else f"{len(open_kinds)} left"
    return said + (f", and what {' and '.join(new)} takes, which is not known yet" if new else "")


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else (f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h")
    )


def _command(words: list[str]) -> str:
    """The command as it was given, without its arms."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != "--arms" and not word.startswith("--arms="):
            kept.append(word)
        skip = word == "--arms"
    return shlex.join([*COMMAND.split(), *kept])


if __name__ == "__main__":
    commands.command("paper")(paper)
    sys.argv.insert(1, "paper")
    app()
