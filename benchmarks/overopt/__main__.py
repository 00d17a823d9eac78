"""`python -m benchmarks.overopt`: gold and proxy reward against the distance from the start policy."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cooper_base.cli.console import console, stdout
from cooper_base.cli.main import app, commands

if TYPE_CHECKING:
    from benchmarks.overopt.gap import OveroptimisationFit


def overopt(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs with a KL term and gold labels.")],
    proxy: Annotated[
        str | None, typer.Option("--proxy", help="Metric that was optimised; reward_model/mean if known.")
    ] = None,
    gold: Annotated[
        str, typer.Option("--gold", help="Metric of the true reward, such as gold accuracy.")
    ] = "gold/accuracy",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the picture and JSON; by default the first run.")
    ] = None,
) -> None:
    """Fit the over-optimisation curves of arXiv 2210.10760 for reinforcement learning and for best-of-n."""
    from benchmarks.overopt.runs import (
        JSON,
        SVG,
        read_overoptimisation,
        write_overoptimisation,
    )

    curves = [read_overoptimisation(run, proxy, gold) for run in runs]
    folder = out or runs[0]
    write_overoptimisation(curves, folder)
    table = Table("run", "method", "reward", "start", "alpha", "beta", "peak at", "farthest", "error")
    for run in curves:
        for curve in (run.rl, run.best_of_n):
            if curve is not None:
                for name, fit in (("gold", curve.gold_fit), ("proxy", curve.proxy_fit)):
                    table.add_row(run.run, curve.method, name, *_fitted(fit, max(curve.distance, default=0.0)))
    stdout().print(table)
    rewards = ", ".join(dict.fromkeys(f"{run.proxy} against {run.gold}" for run in curves))
    console.print(f"{rewards}; distances are sqrt(KL from the start), in nats over whole completions", soft_wrap=True)
    console.print(f"picture: {folder / SVG}\ncurves: {folder / JSON}", highlight=False, soft_wrap=True)


def _fitted(fit: "OveroptimisationFit | None", farthest: float) -> list[str]:
    """The cells of a fit: start, alpha, beta, peak, farthest distance, error."""
    if fit is None:
        return ["-"] * 4 + [f"{farthest:.2f}", "-"]
    peak = "none" if fit.peak is None else f"{fit.peak:.2f}"
    return [f"{fit.start:.3f}", f"{fit.alpha:.3f}", f"{fit.beta:.3f}", peak, f"{farthest:.2f}", f"{fit.error:.3f}"]


if __name__ == "__main__":
    commands.command("overopt")(overopt)
    sys.argv.insert(1, "overopt")
    app()
