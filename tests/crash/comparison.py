"""Compares everything that two runs of the same configuration left on disk, except timings."""

import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cooper_rl.engines.clock import MEASURED

OF_ITS_OWN = {"config.yaml", "report.html", "sessions.jsonl"}
"""Files that contain the run's folder, timings or starts."""


def differences(one: Path, other: Path, folders: Container[str] = (), metrics: Container[str] = ()) -> list[str]:
    """The differences, in words. Compares models and states bit for bit, metrics line for line, and every log.

    These `folders` and `metrics` may differ.
    """
    names = {path: {name for name in _files(path) if name.split("/")[0] not in folders} for path in (one, other)}
    found = [f"{name} is in one run only" for name in sorted(names[one] ^ names[other])]
    for name in sorted(names[one] & names[other] - OF_ITS_OWN - {"metrics.jsonl"}):
        if (one / name).read_bytes() != (other / name).read_bytes():
            found.append(f"{name} differs")
    if _metrics(one, metrics) != _metrics(other, metrics):
        found.append("metrics.jsonl differs")
    if "tensorboard" not in folders and _tensorboard(one) != _tensorboard(other):
        found.append("tensorboard differs")
    return found


def _files(run: Path) -> Iterator[str]:
    for path in run.rglob("*"):
        name = path.relative_to(run)
        if path.is_file() and name.parts[0] != "tensorboard":
            yield name.as_posix()


def _metrics(run: Path, left_out: Container[str]) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED) and k not in left_out} for row in rows]


def _tensorboard(run: Path) -> dict[str, list[tuple[int, float]]]:
    shown = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    names = [name for name in shown.Tags()["scalars"] if not name.startswith(MEASURED)]
    return {name: [(event.step, event.value) for event in shown.Scalars(name)] for name in names}
