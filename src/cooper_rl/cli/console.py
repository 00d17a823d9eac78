"""The terminal: a console on standard error, which leaves standard output to results, and progress displays."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cooper_rl.observe.terminal import ProgressLines, shown

console = Console(stderr=True)


def log_handler() -> logging.Handler:
    """A handler that shows log records in columns and colour on a terminal, and as plain lines elsewhere."""
    if console.is_terminal:
        return RichHandler(console=console, show_path=False, highlighter=NullHighlighter())
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    return handler


class Advance(Protocol):
    """Reports progress: the number of completed units and, optionally, current metrics and a new total."""

    def __call__(self, completed: int, metrics: dict[str, float] | None = None, total: int | None = None) -> None: ...


@contextmanager
def progress(label: str, total: int, watch: Sequence[tuple[str, str]] = ()) -> Iterator[Advance]:
    """A bar with elapsed and remaining time. `watch` lists the metrics shown beside it, as (metric, short name).

    If the output is not a terminal, plain lines are printed instead (see `ProgressLines`).
    """
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    lines = ProgressLines(label, watch)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total, note="")

        def advance(completed: int, metrics: dict[str, float] | None = None, total: int | None = total) -> None:
            bar.update(task, completed=completed, total=total, note="  ".join(shown(watch, metrics or {})))
            if not console.is_terminal and (line := lines.line(completed, total or 0, metrics)):
                console.print(line, highlight=False, soft_wrap=True, markup=False)

        yield advance
