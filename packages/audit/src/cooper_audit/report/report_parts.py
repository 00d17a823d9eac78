"""The parts of a run as its report draws them: small multiples, lost ones first."""

import math
from typing import Any

import numpy as np

from cooper_audit.report.report_completions import cut, plain
from cooper_audit.run.change_points import Series
from cooper_audit.run.hacking_alarm import WINDOW
from cooper_audit.run.part_verdict import RunParts
from cooper_audit.run.parts import MEASURES, Part

MEASURES_DRAWN = {name: title for name, title in MEASURES.items() if name != "length"}
"""Those between 0 and 1, which share an axis, each with its title. The length stands above the chart."""
POINTS = 40
"""Most points of a curve; neighbouring steps are averaged."""


def shown_parts(parts: RunParts) -> list[dict[str, Any]]:
    """Every part with its curves; of lost ones what was seen, and examples."""
    said: dict[str, list[str]] = {}
    for one in parts.accused:
        said.setdefault(one.part.name, []).append(one.course)
    for at, one in parts.seen:
        said.setdefault(one.part.name, []).append(f"alarm at step {at}: {one.course}")
    onsets = {one.part.name: one.since for one in (*(one for _, one in parts.seen), *parts.lost)}
    shown = [
        {
            "name": part.name,
            "also": [f"{attribute}: {value}" for attribute, value in part.kinds[1:]],
            "share": part.share,
            "problems": part.problems,
            "said": said.get(part.name, []),
            "since": onsets.get(part.name),
            "curves": {
                name: curve for name in MEASURES_DRAWN if (curve := _curve(parts.table.series(part.rows, name)))
            },
            "length": _ends(parts, part),
            "examples": [plain({**row, "text": cut(str(row["text"]))}) for row in parts.examples.get(part.name, ())],
        }
        for part in parts.table.parts
    ]
    return sorted(shown, key=lambda part: (not part["said"], -part["share"]))


def _curve(series: Series) -> list[list[float]]:
    """Points of a series, each the mean of the same number of neighbouring steps."""
    width = max(1, math.ceil(len(series) / POINTS))
    pieces = [series.where(slice(start, start + width)) for start in range(0, len(series), width)]
    return [[int(piece.ends[-1]), float(f"{np.average(piece.values, weights=piece.weights):.4g}")] for piece in pieces]


def _ends(parts: RunParts, part: Part) -> list[float]:
    """The length over the first and over the last `WINDOW` steps."""
    series = parts.table.series(part.rows, "length")
    pieces = [series.where(slice(None, WINDOW)), series.where(slice(-WINDOW, None))] if len(series) else []
    return [float(f"{np.average(piece.values, weights=piece.weights):.3g}") for piece in pieces]
