"""The `cooper` command."""

import errno
import logging
import sys
import threading
from pathlib import Path
from typing import Annotated, get_args

import typer

from cooper_rl import __version__
from cooper_rl.cli.attack import attack_reward
from cooper_rl.cli.audit import audit_rollouts
from cooper_rl.cli.config import show_config
from cooper_rl.cli.console import Overrides, RuleOption, counter, log_handler, progress, rule_from, say, show_table
from cooper_rl.cli.evaluate import evaluate_model
from cooper_rl.cli.runs import report, runs, say_how_to_open, watch
from cooper_rl.cli.verifyrm import verifyrm
from cooper_rl.config.user_functions import added
from cooper_rl.errors import EngineLost, InputError, MissingExtraError, show_users_frames
from cooper_rl.observe.terminal import TRAINING_METRICS

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Numbers of the errors of a disk that is full or that cannot be written."""


def train(
    config: Annotated[Path, typer.Argument(help="A YAML file; see configs/.")],
    overrides: Overrides = None,
    resume: Annotated[bool, typer.Option(help="Continue after the run's newest checkpoint.")] = False,
) -> None:
    """Train a policy together with its reward model."""
    from cooper_rl.inputs import read_inputs
    from cooper_rl.observe.recorder import check_folder
    from cooper_rl.run_config import load_config

    settings = load_config(config, overrides or [])
    check_folder(Path(settings.output_dir) / settings.name, resume, "--resume")
    inputs = read_inputs(settings)

    from cooper_rl.observe.report import REPORT_FILE
    from cooper_rl.trainer import CooperTrainer  # torch loads only after the input is checked

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
    config: Annotated[Path, typer.Argument(help="A YAML file: the reward of `cooper train`, and `serve`.")],
    overrides: Overrides = None,
) -> None:
    """Serve a reward that learns to trainers in other processes; see docs/serve.md."""
    from cooper_rl.rewards.kinds.plain import check_servers
    from cooper_rl.service.config import check_extra, listen, load_serve_config, read_token
    from cooper_rl.stage2.reward_config import read_reward_inputs

    settings = load_serve_config(config, overrides or [])
    check_extra()
    token = read_token(settings.serve)
    inputs = read_reward_inputs(settings)
    if inputs.assistant is not None:
        inputs.assistant.check()
    pairs = settings.cooptimization.pairs if settings.learns else ()
    check_servers((*settings.rewards, *settings.shaping, *pairs))
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
    from cooper_rl.persist.hub import push_models

    folder = source / ("best" if best else "final") if (source / "metrics.jsonl").is_file() else source
    for address in push_models(folder, {"policy": policy, "reward_model": reward_model}, private):
        say(f"pushed: {address}")


def verify(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet, CSV or TSV with answer and completion.")],
    out: Annotated[Path, typer.Option(help="JSONL file for the rows with their verdicts; continued if it exists.")],
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
    timeout: Annotated[float, typer.Option(help="Most seconds for one answer.", min=0.01)] = 5.0,
    rule: RuleOption = "maths",
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of the rule: rule=numeric rule.relative=0.01.")
    ] = None,
) -> None:
    """Check final answers against reference answers with a rule. --workers and --timeout apply to the rule `maths`."""
    from cooper_rl.rules.rule import Verdict
    from cooper_rl.rules.verdict_file import verify_file

    by = rule_from(rule, workers, timeout, overrides or [])
    with counter("verify") as advance:
        counts = verify_file(data, out, workers, advance, by)
    show_table(["verdict", "rows"], [(verdict, str(counts.verdicts[verdict])) for verdict in get_args(Verdict)])
    if counts.with_gold:
        shares = {"precision": counts.precision, "recall": counts.recall}
        shown = ", ".join(f"{name} {'–' if share is None else f'{share:.4f}'}" for name, share in shares.items())
        judged = " that the rule judges" if counts.verdicts["silent"] else ""
        say(f"against gold, on {counts.with_gold} rows{judged}: {shown}")
    say(f"verdicts: {out}")


commands = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
OURS = {"train": train, "watch": watch, "runs": runs, "config": show_config, "serve": serve, "eval": evaluate_model}
OURS |= {"attack": attack_reward, "audit": audit_rollouts, "export": export, "push": push, "report": report}
OURS |= {"verify": verify}
for name, command in OURS.items():
    commands.command(name)(command)
commands.add_typer(verifyrm, name="verifyrm")
for name, entry in added("commands").items():
    commands.command(name)(entry.load())


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cooper {__version__}")
        raise typer.Exit


@commands.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of `cooper` itself. Its help text is the docstring of this module."""


def app() -> None:
    """Run a command. For bad input, a missing extra or a full disk, print the message and exit with code 2.

    An exception of the user's own code is shown with the frames of that code.
    """
    threading.excepthook = _end_of_thread
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[log_handler()])
    logging.getLogger("cooper_rl").setLevel(logging.INFO)
    logging.getLogger("huggingface_hub").propagate = False  # it has its own handler and would log everything twice
    try:
        commands()
    except (InputError, MissingExtraError) as error:
        say(str(error), "error: ", "bold red")
        sys.exit(2)
    except EngineLost as error:
        say(
            f"{error}; the logs of its processes are in the run's folder logs/; continue with --resume",
            "error: ",
            "bold red",
        )
        sys.exit(1)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK:
            _say_full(error)
            sys.exit(2)
        show_users_frames(error)
        sys.excepthook = sys.__excepthook__  # in place of typer's
        raise


def _say_full(error: OSError) -> None:
    place, remedy = error.filename or "the disk", "make room there and repeat the command; a run needs --resume"
    say(f"{place}: cannot be written ({error.strerror}); {remedy}", "error: ", "bold red")


def _end_of_thread(thread: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread. If the disk is full, Python would print that thread's traceback."""
    if isinstance(thread.exc_value, OSError) and thread.exc_value.errno in DISK:
        _say_full(thread.exc_value)
    else:
        threading.__excepthook__(thread)
