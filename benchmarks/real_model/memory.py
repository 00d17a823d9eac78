"""Draws the main memory of runs, step by step, and prints it.

    python -m benchmarks.real_model.memory runs/real-0.5b --draw memory.png

A step's value is the most that the process held at the end of one of its parts (`memory/<part>`, Linux only).
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from cooper_audit.run.run_record import read_metrics

PRINTED = 10
"""About how many steps of a run are printed."""


def held(run: Path) -> dict[int, float]:
    """MiB by step."""
    rows = read_metrics(run)
    parts = [[row[name] for name in row if name.startswith("memory/") and name != "memory/peak"] for row in rows]
    return {row["step"]: max(values) for row, values in zip(rows, parts, strict=True) if values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--draw", type=Path, help="PNG file to write")
    given = parser.parse_args()
    curves = {run.name: held(run) for run in given.runs}
    for name, curve in curves.items():
        every = max(1, len(curve) // PRINTED)
        shown = [f"{step}: {mib:.0f}" for step, mib in curve.items() if step % every == 0]
        print(f"{name}, MiB by step: {', '.join(shown)}; most {max(curve.values()):.0f}")
    if given.draw:
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        axes = figure.subplots()
        for name, curve in curves.items():
            axes.plot(list(curve), [mib / 1024 for mib in curve.values()], label=name)
        axes.set(xlabel="step", ylabel="main memory, GiB", ylim=(0, None))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(given.draw, dpi=130)


if __name__ == "__main__":
    main()
