"""The terminal: one console on standard error, so that standard output stays for results, and a run's progress."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(stderr=True)


class Advance(Protocol):
    """Reports progress: what is done so far and a few numbers worth watching."""

    def __call__(self, completed: int, metrics: dict[str, float] | None = None, total: int | None = None) -> None: ...


@contextmanager
def progress(label: str, total: int, watch: Sequence[tuple[str, str]] = ()) -> Iterator[Advance]:
    """A bar with elapsed and remaining time; `watch` lists (metric, short name) shown beside it.

    Where the output is not a terminal, one line a step is printed instead.
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
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total, note="")

        def advance(completed: int, metrics: dict[str, float] | None = None, total: int | None = total) -> None:
            shown = [f"{name} {metrics[key]:.3g}" for key, name in watch if metrics and key in metrics]
            bar.update(task, completed=completed, total=total, note="  ".join(shown))
            if not console.is_terminal:
                console.print(f"{label} {completed}/{total}  {'  '.join(shown)}", highlight=False, soft_wrap=True)

        yield advance
