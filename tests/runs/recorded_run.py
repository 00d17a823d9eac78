"""Writes the folder of a run that never ran, as the recorder would have left it."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from cooper_audit.report.report_completions import Sample, Sampler
from cooper_audit.run.run_record import RunRecord, read_rollouts

Row = dict[str, Any]
DATA = re.compile(r'<script type="application/json" id="report-data">(.*?)</script>', re.DOTALL)

SETTINGS: Row = {
    "kind": "cooper",
    "seed": 0,
    "steps": 20,
    "name": "run",
    "policy": {"model": "models/policy"},
    "reward_model": {"model": "models/reward_model", "learns": True},
    "problems": {"source": "problems.jsonl", "limit": 100},
}


def write_run(
    folder: Path,
    metrics: Iterable[Row],
    groups: Callable[[int], list[Row]] = lambda step: [],
    pairs: Callable[[int], list[Row]] = lambda step: [],
    settings: Row | None = None,
) -> Path:
    """A run with these metrics; `groups` and `pairs` give the lines of each step from the first one on."""
    for name in ("rollouts", "pairs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({**SETTINGS, **(settings or {})}), encoding="utf-8")
    rows = list(metrics)
    for row in rows:
        if row["step"] > 0:
            write_lines(folder / "rollouts" / f"{row['step']:06d}.jsonl", groups(row["step"]))
            write_lines(folder / "pairs" / f"{row['step']:06d}.jsonl", pairs(row["step"]))
    # last, as the recorder does: whoever follows the run takes a step that has metrics for a whole one
    write_lines(folder / "metrics.jsonl", rows)
    return folder


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    """A reader of the folder finds the file as it was or whole."""
    half = path.with_suffix(".partial")
    half.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    half.replace(path)


def group(problem: str, *completions: Row) -> Row:
    """A line of rollouts."""
    return {
        "problem": problem,
        "question": f"What is {problem}?",
        "answer": "4",
        "prompt": f"<user>What is {problem}?<assistant>",
        "completions": list(completions),
    }


def completion(text: str, reward: float, gold: bool | None = None, verdict: str = "wrong", **more: Any) -> Row:
    """A completion of a group."""
    known = {} if gold is None else {"gold": gold}
    return {"text": text, "reward": reward, "reward_model": reward, "verdict": verdict, "tokens": 3, **known, **more}


def sample_of(run: RunRecord, *wanted_steps: int) -> Sample:
    """The completions that a report shows of a run."""
    sampler = Sampler(run)
    for step, groups in read_rollouts(run.directory):
        if groups:
            sampler.add(step, groups)
    return sampler.sample(wanted_steps)


def data_of(page: Path) -> Row:
    """What the scripts of a report read."""
    found = DATA.search(page.read_text(encoding="utf-8"))
    assert found
    return json.loads(found[1])
