"""`cooper watch`: a run in the terminal while it trains."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live


def watch(
    run: Annotated[Path, typer.Argument(help="The folder of a run; `cooper runs` lists them.")],
    once: Annotated[bool, typer.Option(help="Print one screen and end, as where the output is no terminal.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks at the folder.", min=0.1)] = 1.0,
) -> None:
    """Show a run that another process trains: progress, curves, fired watch rules, latest completions.

    Reads the run's folder only. Ends when the run is finished, or on Ctrl-C; an interrupted run may be resumed
    meanwhile.
    """
    from cooper_rl.observe.run_record import read_record, status_of  # noqa: PLC0415
    from cooper_rl.observe.terminal import screen  # noqa: PLC0415 - `cooper --help` stays quick

    terminal = Console()
    record = read_record(run)
    if not once and terminal.is_terminal:
        try:
            with Live(console=terminal, screen=True, auto_refresh=False) as live:
                while status_of(record).state != "finished":
                    live.update(screen(record, *terminal.size), refresh=True)
                    time.sleep(every)
                    record = read_record(run)
        except KeyboardInterrupt:
            pass
    terminal.print(screen(record, terminal.width))
