"""What commands share: the terminal on standard error, which leaves standard output to results, and options."""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cooper_base.config.checking import Settings, SomeConfig, check_settings, with_overrides
from cooper_base.data.text import printable
from cooper_base.errors import InputError, bounded
from cooper_base.pace import Pace, ProgressLines, shown
from cooper_base.progress import Listener, listening
from cooper_base.progress import Progress as UnderWay

Overrides = Annotated[list[str] | None, typer.Argument(help="Settings that override the file: key=value.")]


class SafeConsole(Console):
    """The terminal, which nothing that is printed can command: a name of a file or of a run, a text of a user or of a
    model. Markup (`[a]`, `my_rewards:ok:`) is text, and every control character is written out (`printable`).

    Where its reader has gone (`| head`), the command does its work without it and ends with its own exit code.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Text of a cell or a line, whose width is then known."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is written. Rich's own commands to the terminal pass: colours are styles, the rest are controls."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


console = SafeConsole(stderr=True)


def say(text: str, label: str = "", style: str = "") -> None:
    """Print text, without markup and without line breaks of our own, after a coloured label. A long one loses its
    middle."""
    console.print(Text.assemble((printable(label), style), printable(bounded(text))), soft_wrap=True)


def stdout(**options: Any) -> Console:
    """The terminal for results."""
    return SafeConsole(**options)


def print_result(text: str) -> None:
    """Print a result that may be read by a program, such as JSON, as it is but for control characters."""
    stdout(highlight=False).print(text, soft_wrap=True)


def warn(text: str) -> None:
    say(text, "warning: ", "bold yellow")


def show_table(
    header: Sequence[str], rows: Iterable[Sequence[str | Text]], to: Console = console, title: str | None = None
) -> None:
    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    to.print(table)


def log_handler() -> logging.Handler:
    """A handler that shows log records in columns and colour on a terminal, and as plain lines elsewhere."""
    columns = console.is_terminal
    rich = RichHandler(console=console, show_path=False, highlighter=NullHighlighter())
    handler = rich if columns else logging.StreamHandler()
    handler.setFormatter(_SafeFormatter("%(message)s" if columns else "%(levelname)s %(message)s"))
    return handler


class _SafeFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(bounded(super().format(record)))


@contextmanager
def progress(label: str, total: int, watch: Sequence[tuple[str, str]] = ()) -> Iterator[Callable[..., None]]:
    """A progress bar. Call it with the completed units and, optionally, the current metrics and a new total.

    `watch` lists the metrics shown beside it, as (metric, short name). Without a terminal, it prints `ProgressLines`
    instead.
    """
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    label = printable(label)
    columns = _plain_column("description"), BarColumn(bar_width=30), MofNCompleteColumn(), *times
    lines, pace = ProgressLines(label, watch), Pace()
    bar = _Bar(*columns, _plain_column("fields[note]"), console=console, disable=not console.is_terminal)

    def show(at: UnderWay) -> None:
        if console.is_terminal:
            bar.below = Text(pace.describe(at), style="dim")
        elif line := lines.line_within(at):
            say(line)

    with bar, listening(Listener(show)):
        task = bar.add_task(label, total=total, note="")

        def advance(completed: int, metrics: dict[str, float] | None = None, total: int | None = total) -> None:
            bar.update(task, completed=completed, total=total, note="  ".join(shown(watch, metrics or {})))
            if not console.is_terminal and (line := lines.line(completed, total or 0, metrics)):
                say(line)

        yield advance


def _plain_column(field: str) -> TextColumn:
    return TextColumn(f"{{task.{field}}}", markup=False)


class _Bar(Progress):
    """A progress bar with a line below it about the current work."""

    below = Text()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield self.below


@contextmanager
def counter(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar like that of `progress`, for work that reports how much is done and how much there is."""
    with progress(label, 0) as advance:
        yield lambda done, total: advance(done, total=total)


def names_and_settings(given: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The arguments divided into names and settings (key=value). A file that exists is a name."""
    settings = [
        argument for argument in given or () if re.match(r"[a-z_][\w.-]*=", argument) and not Path(argument).exists()
    ]
    return [argument for argument in given or () if argument not in settings], settings


def record_from(record: type[SomeConfig], values: Mapping[str, Any], settings: Sequence[str] = ()) -> SomeConfig:
    """A record made from `values` (None means unset) and `settings` ("key=value"). Raises InputError if they misfit."""
    given = {key: value for key, value in values.items() if value is not None}
    return check_settings(record, Settings(with_overrides(given, settings), "command line", overrides=settings))


SHORT = {"problems": "source", "rule": "kind", "engine": "kind"}
"""The setting that one word for a section sets: `problems=FILE` means `problems.source=FILE`."""


def in_full(setting: str) -> str:
    """A setting key=value with the whole key."""
    key, _, value = setting.partition("=")
    return f"{key}.{SHORT[key]}={value}" if key in SHORT and not value.lstrip().startswith("{") else setting


def named_models(given: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Folders of reward models by name, from FOLDER or NAME=FOLDER; the first without a name is called rm."""
    folders: dict[str, str] = {}
    for number, text in enumerate(given):
        name, separator, folder = text.partition("=")
        name, folder = (name, folder) if separator else ("rm" if number == 0 else f"rm{number + 1}", text)
        if not name.isidentifier() or name in folders or name in taken:
            raise InputError(
                f"--reward-model {text!r}: {name!r} is not a valid name, or is used already; write NAME=FOLDER"
            )
        folders[name] = folder
    return folders
