"""The report of one run or several: one page that holds everything it shows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cooper_rl.observe.outcome import HACKED
from cooper_rl.observe.report.comparison import config_differences, figures, held_out_problems, over_seeds
from cooper_rl.observe.report.completions import (
    PAGE_BYTES,
    PER_STEP,
    STEPS,
    Row,
    sample_completions,
    score_of,
)
from cooper_rl.observe.report.corrections import last_pairs, read_pairs
from cooper_rl.observe.report.header import facts, learns, provenance, stages
from cooper_rl.observe.report.page import render
from cooper_rl.observe.report.panels import MOST_POINTS, PAIRS_OF, STORY, curves, panels_as_data, story_metric
from cooper_rl.observe.report.run_folder import RunFolder, read_runs
from cooper_rl.observe.report.verdict import NAMES, Verdict, verdict_of

FILE = "report.html"
MOST_CONFIG = 40_000
"""Longest `config.yaml` that the page holds whole, in characters."""


def write_report(
    directories: Path | Sequence[Path],
    target: Path | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
    labels: Mapping[Path, str] | None = None,
    colours: Sequence[str] = (),
) -> Path:
    """Write the report of the runs in these folders and return its path, by default `report.html` in the first one.

    A run may be under way or interrupted: the report shows what is on disk. `title` and the paragraphs `notes` stand
    at the top of the page. `labels` and `colours` are those of the runs. Raises InputError for a folder without a run.

    All text of a run reaches the page as JSON and is shown as text, so markup in a completion is shown and not run.
    """
    directories = [directories] if isinstance(directories, Path) else list(directories)
    runs = read_runs(directories, labels)
    described = [_described(run, 1 / len(runs)) for run in runs]
    rows = [one["figures"] for one in described]
    data = {
        "runs": described,
        "colours": list(colours),
        "story_metric": story_metric(runs),
        "story_names": dict(STORY[0].metrics),
        "sections": [{"id": section["title"].lower().replace(" ", "-"), **section} for section in panels_as_data()],
        "seeds": over_seeds(runs, rows),
        "differences": config_differences(runs) if len(runs) > 1 else [],
        "opens_at": _most_telling(described),
    }
    target = target or directories[0] / FILE
    heading = title or _heading(runs)
    page = render(heading, _headline(described) if len(runs) > 1 else "", notes, data, _sample_note())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8", errors="replace")
    return target


def _heading(runs: Sequence[RunFolder]) -> str:
    """What the runs are called: a run by its label, several by the folder that holds them all, if there is one."""
    if len(runs) == 1:
        return runs[0].label
    folders = {run.directory.resolve().parent for run in runs}
    return f"{len(runs)} runs" + (f" of {folders.pop().name}" if len(folders) == 1 else "")


def _described(run: RunFolder, share: float) -> dict[str, Any]:
    """Everything that the page shows of one run. `share` is its part of the page."""
    verdict = verdict_of(run, held_out_problems(run))
    told = {step for step in (verdict.hacked_at, verdict.alarm_at) if step is not None}
    sample = sample_completions(run, told, share)
    pair_counts = read_pairs(run, sample.gallery)
    gallery = [_scored(item) for item in sample.gallery]
    return {
        "label": run.label,
        "verdict": _told(verdict),
        "figures": figures(run, verdict, sample),
        "facts": facts(run),
        "provenance": provenance(run),
        "curves": _curves(run, pair_counts, share),
        "stages": stages(run),
        "last": {name: value for name, value in run.metrics[-1].items() if name != "step"} if run.metrics else {},
        "events": list(run.events)[-200:],
        "config": run.config_text[:MOST_CONFIG],
        "learns": learns(run),
        "score_name": _score_name(gallery),
        "gallery": gallery,
        "fooled": sample.fooled,
        "steps": sample.steps,
        "recorded_steps": sample.recorded_steps,
        "problems_of_step": sample.problems_of_step,
        "pairs": last_pairs(run),
    }


def _told(verdict: Verdict) -> dict[str, Any]:
    signals = [asdict(signal) for signal in verdict.signals]
    told = {"state": verdict.state, "name": verdict.name, "sentence": verdict.sentence, "signals": signals}
    return told | {"hacked_at": verdict.hacked_at, "alarm_at": verdict.alarm_at}


def _curves(run: RunFolder, pair_counts: Mapping[int, Mapping[str, int]], share: float) -> dict[str, Any]:
    found = curves(run, max(100, min(MOST_POINTS, round(4 * MOST_POINTS * share))))
    for origin in sorted({origin for counts in pair_counts.values() for origin in counts}):
        column = [pair_counts[step].get(origin, 0) if step in pair_counts else None for step in found["steps"]]
        found["columns"][PAIRS_OF + origin] = column
    return found


def _scored(item: Row) -> Row:
    score = score_of(item)
    return {"score": score if score > float("-inf") else None, **{k: v for k, v in item.items() if k != "digest"}}


def _score_name(gallery: Sequence[Row]) -> str:
    if any("reward_model" in item for item in gallery):
        return "the reward model's"
    return "the reward's" + (" before shaping" if any("unshaped" in item for item in gallery) else "")


def _most_telling(described: Sequence[Mapping[str, Any]]) -> int:
    """The run that the page opens at: the first that was hacked, else the first."""
    states = [one["verdict"]["state"] for one in described]
    return next((i for i, state in enumerate(states) if state in HACKED), 0)


def _sample_note() -> str:
    return (
        f"This page holds a sample of the completions, at most about {PAGE_BYTES // 1_000_000} MB: the best-scored "
        f"wrong ones of every step (up to {PER_STEP} of a step), and whole groups of up to {STEPS} evenly spread "
        "steps, half of them those with the best-scored wrong completion. The run's folder has all of them."
    )


def _headline(described: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts on several runs in a line."""
    parts = []
    for state, name in NAMES.items():
        labels = [one["label"] for one in described if one["verdict"]["state"] == state]
        more = [f"{len(labels) - 5} more"] if len(labels) > 6 else []
        if labels:
            parts.append(f"{name}: {' · '.join([*labels[:5], *more] if more else labels)}")
    return ". ".join(parts) + "."
