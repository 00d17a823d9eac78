"""The terminal: one console on standard error, so that standard output stays for results, and a run's progress."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cooper_rl.observe.progress import ProgressLines, shown

console = Console(stderr=True)


def log_handler() -> logging.Handler:
    """Where log lines go: with columns and colour on a terminal, one plain line each elsewhere."""
    if console.is_terminal:
        return RichHandler(console=console, show_path=False, highlighter=NullHighlighter())
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    return handler


class Advance(Protocol):
    """Reports progress: what is done so far and a few numbers worth watching."""

    def __call__(self, completed: int, metrics: dict[str, float] | None = None, total: int | None = None) -> None: ...


@contextmanager
def progress(label: str, total: int, watch: Sequence[tuple[str, str]] = ()) -> Iterator[Advance]:
    """A bar with elapsed and remaining time; `watch` lists (metric, short name) shown beside it.

    Where the output is not a terminal, plain lines are printed instead (see `ProgressLines`).
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
