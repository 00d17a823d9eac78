"""Measures how a GRPO step grows with the completions, their length and the model: CPU seconds and peak memory.

    python benchmarks/speed/growth.py

Each point is a run of `step.py` in a process of its own. The fitted exponent is the slope of log seconds over log size.
"""

import argparse
import json
import math
import tempfile
from pathlib import Path

from run import RESULTS, Candidate
from workload import random_model

BASE = {"--problems": 8, "--n": 8, "--new-tokens": 32}
SERIES = {
    "completions": [("--problems", count) for count in (1, 4, 16, 64)],
    "length": [("--new-tokens", tokens) for tokens in (3, 12, 48, 192)],
}
WIDTHS = (96, 192, 384, 768)


def measure(changes: dict[str, str | int]) -> dict[str, float]:
    options = [str(part) for pair in (BASE | changes).items() for part in pair]
    result = Candidate("step.py", ("cooper", *options, "--steps", "2")).run(1, None)
    return {"cpu": result["cpu"] / result["units"], "peak_mib": result["peak_mib"]}


def exponent(points: list[dict[str, float]], value: str) -> float:
    """The least-squares slope of the logarithms."""
    x = [math.log(point["size"]) for point in points]
    y = [math.log(point[value]) for point in points]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found = {name: [{"size": size, **measure({key: size})} for key, size in series] for name, series in SERIES.items()}
    with tempfile.TemporaryDirectory() as folder:
        models = [random_model(Path(folder), width) for width in WIDTHS]
        found["parameters"] = [{"size": size, **measure({"--model": str(path)})} for path, size in models]
    growth = {name: {"points": points, "cpu_exponent": exponent(points, "cpu")} for name, points in found.items()}
    for name, series in growth.items():
        steps = ", ".join(f"{p['size']}: {p['cpu']:.3f} s, {p['peak_mib']:.0f} MiB" for p in series["points"])
        print(f"{name}: {steps}; CPU seconds grow with exponent {series['cpu_exponent']:.2f}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results | {"growth": growth}, indent=2) + "\n")


if __name__ == "__main__":
    main()
