"""Compares everything that two runs of the same configuration left on disk, except timings."""

import json
from collections.abc import Container, Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cooper_base.clock import MEASURED, VERIFY_S

OF_ITS_OWN = {"config.yaml", "report.html", ".report.html.written-by.jsonl", "sessions.jsonl"}
"""Files that contain the run's folder, timings or starts, and the mark with the hashes of such a file."""


def differences(one: Path, other: Path, folders: Container[str] = (), metrics: Container[str] = ()) -> list[str]:
    """The differences, in words. Compares models and states bit for bit, every log, and for metrics and rollouts the
    values.

    These `folders` and `metrics` may differ.
    """
    names = {path: {name for name in _files(path) if name.split("/")[0] not in folders} for path in (one, other)}
    found = [f"{name} is in one run only" for name in sorted(names[one] ^ names[other])]
    for name in sorted(names[one] & names[other] - OF_ITS_OWN - {"metrics.jsonl"}):
        if name.startswith("rollouts/"):
            found += _first_difference(name, _rollouts(one / name), _rollouts(other / name))
        elif (one / name).read_bytes() != (other / name).read_bytes():
            found.append(f"{name} differs")
    found += _first_difference("metrics.jsonl", _metrics(one, metrics), _metrics(other, metrics))
    if "tensorboard" not in folders and _tensorboard(one) != _tensorboard(other):
        found.append("tensorboard differs")
    return found


def _first_difference(name: str, one: Any, other: Any) -> Iterator[str]:
    """At most one sentence: where two JSON values begin to differ, and how."""
    if json.dumps(one) == json.dumps(other):  # as text, because NaN equals itself there
        return
    if isinstance(one, dict) and isinstance(other, dict):
        parts = ((key, one.get(key), other.get(key)) for key in {**one, **other})
    elif isinstance(one, list) and isinstance(other, list):
        parts = ((str(index), *pair) for index, pair in enumerate(zip_longest(one, other)))
    else:
        yield f"{name}: {one!r} and {other!r}"
        return
    yield from islice(chain.from_iterable(_first_difference(f"{name}/{key}", *pair) for key, *pair in parts), 1)


def _files(run: Path) -> Iterator[str]:
    for path in run.rglob("*"):
        name = path.relative_to(run)
        if path.is_file() and name.parts[0] != "tensorboard":
            yield name.as_posix()


def _rollouts(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["completions"] = [{k: v for k, v in one.items() if k != VERIFY_S} for one in row["completions"]]
    return rows


def _metrics(run: Path, left_out: Container[str]) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED) and k not in left_out} for row in rows]


def _tensorboard(run: Path) -> dict[str, list[tuple[int, float]]]:
    shown = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    names = [name for name in shown.Tags()["scalars"] if not name.startswith(MEASURED)]
    return {name: [(event.step, event.value) for event in shown.Scalars(name)] for name in names}
