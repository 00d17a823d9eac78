"""`cooper overopt`: gold and proxy reward against the distance from the start policy."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cooper_rl.cli.console import console


def overopt(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs with a KL term and gold labels.")],
    proxy: Annotated[str | None, typer.Option(help="Metric that was optimised; reward_model/mean if known.")] = None,
    gold: Annotated[str, typer.Option(help="Metric that tells the truth.")] = "gold/accuracy",
    out: Annotated[Path | None, typer.Option(help="Folder for the picture and JSON; by default the first run.")] = None,
) -> None:
    """Fit the over-optimisation curves of arXiv 2210.10760 for reinforcement learning and for best-of-n."""
    from cooper_rl.observe.overopt import (  # noqa: PLC0415 - `cooper --help` stays quick
        JSON,
        SVG,
        read_overoptimisation,
        write_overoptimisation,
    )

    found = [read_overoptimisation(run, proxy, gold) for run in runs]
    folder = out or runs[0]
    write_overoptimisation(found, folder)
    table = Table("run", "method", "reward", "start", "alpha", "beta", "peak at", "farthest", "residual")
    for run in found:
        for curve in (run.rl, run.best_of_n):
            if curve is None:
                continue
            for name, fit in ((run.gold, curve.gold_fit), (run.proxy, curve.proxy_fit)):
                fitted = ["-"] * 4 if fit is None else [f"{v:.3f}" for v in (fit.start, fit.alpha, fit.beta)] + [_peak(fit)]
                error = "-" if fit is None else f"{fit.error:.3f}"
                table.add_row(run.run, curve.method, name, *fitted, f"{max(curve.distance, default=0):.2f}", error)
    Console().print(table)
    console.print("distances are sqrt(KL from the start) in nats, KL of whole completions")
    console.print(f"picture: {folder / SVG}\ncurves: {folder / JSON}", highlight=False, soft_wrap=True)


def _peak(fit) -> str:  # noqa: ANN001 - its record would import numpy with `cooper --help`
    return "none" if fit.peak is None else f"{fit.peak:.2f}"
