"""The `cooper` command."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from cooper_rl import __version__
from cooper_rl.cli.config import show_config
from cooper_rl.cli.console import console, log_handler
from cooper_rl.cli.evaluate import evaluate_model
from cooper_rl.cli.runs import report, runs, watch
from cooper_rl.cli.train import train
from cooper_rl.cli.verify import verify
from cooper_rl.cli.verifyrm import verifyrm
from cooper_rl.config.user_functions import added
from cooper_rl.errors import InputError, MissingExtraError


def serve(
    config: Annotated[Path, typer.Argument(help="A YAML file: the reward of `cooper train`, and `serve`.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings over the file: key=value.")] = None,
) -> None:
    """Serve a reward that learns to trainers in other processes; see docs/serve.md."""
    from cooper_rl.rewards.kinds.plain import check_servers  # noqa: PLC0415
    from cooper_rl.service.config import check_extra, listen, load_serve_config, read_token  # noqa: PLC0415
    from cooper_rl.stage2.reward_config import read_reward_inputs  # noqa: PLC0415 - `cooper --help` stays quick

    settings = load_serve_config(config, overrides or [])
    check_extra()
    token = read_token(settings.serve)
    inputs = read_reward_inputs(settings)
    if inputs.assistant is not None:
        inputs.assistant.check()
    check_servers((*settings.rewards, *settings.shaping))
    listener = listen(settings.serve)

    from cooper_rl.service.server import serve as run  # noqa: PLC0415 - torch loads only now that the input is good

    run(settings, inputs, token, listener)


def export(
    source: Annotated[Path, typer.Argument(help="A folder with an adapter, such as a checkpoint's policy/.")],
    target: Annotated[Path, typer.Argument(help="The folder to write.")],
) -> None:
    """Merge an adapter into its base and write a plain Hugging Face folder."""
    from cooper_rl.engines.local.models import merge_folder  # noqa: PLC0415 - `cooper --help` stays quick

    merge_folder(str(source), target)


commands = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
commands.command("train")(train)
commands.command("watch")(watch)
commands.command("runs")(runs)
commands.command("config")(show_config)
commands.command("serve")(serve)
commands.command("eval")(evaluate_model)
commands.command("export")(export)
commands.command("report")(report)
commands.command("verify")(verify)
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
    """Run a command. For bad input or a missing extra, print the message and exit with code 2."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[log_handler()])
    logging.getLogger("cooper_rl").setLevel(logging.INFO)
    try:
        commands()
    except (InputError, MissingExtraError) as error:
        console.print("[bold red]error:[/] ", end="")
        console.print(str(error), highlight=False, markup=False, soft_wrap=True)  # text in brackets is not markup
        sys.exit(2)
