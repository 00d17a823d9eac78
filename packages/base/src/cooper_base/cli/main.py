"""The `cooper` command."""

import errno
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cooper_base import __version__
from cooper_base.cli.console import log_handler, print_result, say
from cooper_base.cli.ending import own_ending
from cooper_base.config.user_functions import added
from cooper_base.data.text import printable
from cooper_base.errors import (
    EngineLost,
    InputError,
    MissingExtraError,
    bounded,
    exit_fault,
    show_users_frames,
    with_causes,
)
from cooper_base.packages import set_log_level

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Numbers of the errors of a disk that is full or that cannot be written."""


COMMANDS_OF = {
    "cooper-verify": ("verify",),
    "cooper-audit": ("audit", "attack", "report", "runs", "watch"),
    "cooper-rl": ("train", "serve", "eval", "config", "export", "push", "verifyrm"),
    "cooper-lab": ("demo", "arena", "plan"),
}
"""The commands of each of our packages, for the message about one that is not installed."""


class _Commands(TyperGroup):
    """Sub-commands of whichever packages are installed."""

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:
        name = args[0]
        missing = [package for package, names in COMMANDS_OF.items() if name in names and name not in self.commands]
        if missing:
            raise MissingExtraError(f"`cooper {name}` needs the package {missing[0]}; install it beside this one")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _safe_usage_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: typer.Context) -> Any:
        with _safe_usage_errors(), _plain_interrupts():
            return super().invoke(ctx)


_UsageError: Any = typer.BadParameter.__base__
"""Typer has its own copy of click, and prints these errors itself."""


@contextmanager
def _safe_usage_errors() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        error.message = printable(bounded(error.message))
        raise


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """An interrupt inside a library may come out of it as an error of the library's own, and is an interrupt still."""
    try:
        yield
    except Exception as error:
        if any(isinstance(link, KeyboardInterrupt) for link in with_causes(error)):
            raise KeyboardInterrupt from error
        raise


ABOUT = "Is an answer right, is a run being hacked, what does a reward pay for? And training with a reward that learns."
commands = typer.Typer(
    cls=_Commands, help=ABOUT, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False
)
NAMED = [name for name in added("commands") if name in sys.argv[1:2]]
"""The command that is run, if the first argument is one. The others need not be loaded."""
for name, entry in added("commands").items():
    if name not in (NAMED or added("commands")):
        continue
    command = entry.load()
    if isinstance(command, typer.Typer):
        commands.add_typer(command, name=name)
    else:
        commands.command(name)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_result(f"cooper {__version__}")
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

    An exception of the user's own code is shown with the frames of that code; its `os._exit` and its threads do not
    decide how the command ends.
    """
    with own_ending():
        _command()


def _command() -> None:
    threading.excepthook = _end_of_thread
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[log_handler()])
    set_log_level(logging.INFO)
    logging.getLogger("huggingface_hub").propagate = False  # it has its own handler and would log everything twice
    try:
        _run()
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
        sys.excepthook = _print_traceback  # in place of typer's
        raise


def _run() -> None:
    """Run a command. Raises RuntimeError for a `sys.exit` of anything but a package with commands: its code, such as
    0, would say that the command is done."""
    try:
        commands()
    except SystemExit as error:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        module = "" if traceback is None else traceback.tb_frame.f_globals.get("__name__", "")
        of_commands = {entry.module.partition(".")[0] for entry in added("commands").values()}
        if module.partition(".")[0] in {*of_commands, "typer", "click", "rich"}:  # rich: the reader closed the pipe
            raise
        raise exit_fault(module or "a module", error) from error


def _say_full(error: OSError) -> None:
    place, remedy = error.filename or "the disk", "make room there and repeat the command; a run needs --resume"
    say(f"{place}: cannot be written ({error.strerror}); {remedy}", "error: ", "bold red")


def _print_traceback(*error: Any) -> None:
    say("".join(traceback.format_exception(*error)).rstrip())


def _end_of_thread(thread: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread. If the disk is full, Python would print that thread's traceback."""
    if isinstance(thread.exc_value, OSError) and thread.exc_value.errno in DISK:
        _say_full(thread.exc_value)
    else:
        name = "a thread" if thread.thread is None else thread.thread.name
        say(f"Exception in thread {name}:")
        _print_traceback(thread.exc_type, thread.exc_value, thread.exc_traceback)
