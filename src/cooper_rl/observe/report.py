"""The report of one run or several: one page that holds everything it shows, and draws itself from anywhere."""

import base64
import hashlib
import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cooper_rl import __version__
from cooper_rl.observe import report_completions as completions
from cooper_rl.observe import report_facts as tables
from cooper_rl.observe.plots import COLOURS, STORY, story_metric
from cooper_rl.observe.run_record import RunRecord, read_runs
from cooper_rl.observe.verdict import HACKED_STATES, NAMES, verdict_of

REPORT_FILE = "report.html"
MOST_CONFIG = 40_000
"""Longest `config.yaml` that the page holds whole, in characters."""
SCRIPTS = ("elements", "chart", "story", "gallery", "rollouts", "sections", "main")
"""The scripts in the order in which they run."""
MOST_POINTS = 1000
"""Longest curve. Of a longer run every point is the mean of several neighbouring steps."""
PAIRS_OF = "pairs_of/"
"""Columns that the report counts itself: the pairs of a step by the origin of their negative."""


@dataclass(frozen=True)
class Panel:
    title: str
    metrics: Mapping[str, str]
    """Metric and what its line is called."""
    by_run: bool = True
    """Whether each run gets a line of the first of `metrics` that any records, or the open run one of each."""
    share: bool = False
    """Whether the values are shares, so that the axis goes from 0 to 1."""
    note: str = ""
    prefix: str = ""
    """Metrics whose names begin so are drawn too, each called by the rest of its name."""
    leave_out: tuple[str, ...] = ()
    """Metrics with that prefix which are not drawn."""


def _share(title: str, metric: str, note: str = "share of completions") -> Panel:
    return Panel(title, {metric: ""}, share=True, note=note)


def _one(title: str, metric: str, note: str = "") -> Panel:
    return Panel(title, {metric: ""}, note=note)


BEFORE, AFTER = "reward_model/pair_accuracy_before", "reward_model/pair_accuracy_after"
ATTACKS = {"monitor/attack_rate": "all attacks", "monitor/bare_right_rate": "bare right answers"}
SECTIONS: dict[str, tuple[Panel, ...]] = {
    "Reward model": (
        _share("Agrees with the rule", "reward_model/rule_agreement", "share of parsed completions"),
        _share("Accepts what the rule calls wrong", "reward_model/false_accept_rate", "share of wrong completions"),
        _share("Accepts what the rule calls right", "reward_model/true_accept_rate", "share of right completions"),
        _share("Right by gold", "gold/reward_model_accuracy"),
        Panel("Ranks its pairs right", {BEFORE: "before the update", AFTER: "after it"}, by_run=False, share=True),
        Panel("Ranks new pairs right, by origin", {}, by_run=False, share=True, prefix=f"{BEFORE}_"),
        _one("Score drift", "reward_model/probe_drift", "mean change of fixed completions' scores"),
        Panel("Held-out accuracy", {"monitor/accuracy": "accuracy", "monitor/roc_auc": "ROC-AUC"}, by_run=False),
        _one("Calibration error", "monitor/ece", "expected calibration error, held out"),
        Panel("Accepts attacks", ATTACKS, by_run=False, share=True, prefix="monitor/attack_"),
        Panel("Valid pairs, by origin", {}, prefix=PAIRS_OF, by_run=False, note="pairs a step"),
    ),
    "Policy": (
        _one("KL from the start", "policy/reference_kl", "nats a token"),
        _one("Entropy", "rollout/entropy_estimate", "nats a token"),
        _one("Length", "rollout/mean_length", "tokens a completion"),
        _share("Cut off at the limit", "rollout/cut_off_rate"),
        _share("No answer found by the rule", "rule/unparsed"),
        _one("Spread inside a group", "reward/group_spread", "largest minus smallest reward"),
        _share("Groups that teach", "policy/usable_groups", "share; the others are skipped"),
        _share(
            "Learnt where the rule accepts nothing",
            "policy/unverified_advantage",
            "share of |advantage| in such groups",
        ),
        _one("Clipped tokens", "policy/clip_fraction", "share of tokens"),
        _one("Gradient norm", "policy/grad_norm"),
    ),
    "Time and memory": (
        _one("Seconds a step", "time/step"),
        Panel("Seconds by stage", {}, prefix="time/", leave_out=("time/step",), by_run=False),
        Panel("Main memory after a stage", {}, prefix="memory/", by_run=False, note="MiB, of this process"),
        Panel("GPU memory in a stage", {}, prefix="gpu_memory/", by_run=False, note="MiB, peak of one GPU"),
        _one("Tokens a step", "rollout/tokens"),
    ),
}
"""The charts below the story, by section."""


def write_report(
    directories: Path | Sequence[Path],
    target: Path | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
    labels: Mapping[Path, str] | None = None,
    colours: Sequence[str] = (),
) -> Path:
    """Write the report of the runs in these folders and return its path, by default `report.html` in the first one.

    A run may be under way. `title` and the paragraphs `notes` stand at the top of the page; `labels` and `colours` are
    those of the runs. All text of a run reaches the page as JSON and is shown as text, so markup in it is shown and not
    run. Raises InputError for a folder without a run.
    """
    directories = [directories] if isinstance(directories, Path) else list(directories)
    runs = read_runs(directories, labels)
    described = [_described(run, 1 / len(runs)) for run in runs]
    states = [one["verdict"]["state"] for one in described]
    data = {
        "runs": described,
        "colours": [*colours, *(COLOURS[i % len(COLOURS)] for i in range(len(colours), len(runs)))],
        "palette": COLOURS,
        "story_metric": story_metric(runs),
        "story_names": STORY,
        "sections": [
            {"id": name.lower().replace(" ", "-"), "title": name, "panels": [asdict(panel) for panel in panels]}
            for name, panels in SECTIONS.items()
        ],
        "seeds": tables.over_seeds(runs, [one["figures"] for one in described]),
        "differences": tables.config_differences(runs) if len(runs) > 1 else [],
        "opens_at": next((i for i, state in enumerate(states) if state in HACKED_STATES), 0),
    }
    folders = {run.directory.resolve().parent for run in runs}
    several = f"{len(runs)} runs" + (f" of {folders.pop().name}" if len(folders) == 1 else "")
    page = _render(data, title or (several if len(runs) > 1 else runs[0].label), notes)
    target = target or directories[0] / REPORT_FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8", errors="replace")
    return target


def _render(data: dict[str, Any], title: str, notes: Sequence[str]) -> str:
    """The page as text. The scripts read `data`; what of it the page says without them is put in here."""
    static = files("cooper_rl.observe") / "page" / "static"
    scripts = [(static / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    loader = PackageLoader("cooper_rl.observe", "page/templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("report.html.j2").render(
        title=title,
        headline=_headline(data["runs"]),
        notes=notes,
        version=__version__,
        written=time.strftime("%Y-%m-%d %H:%M"),
        single=len(data["runs"]) == 1,
        verdicts=[f"{run['label']}: {run['verdict']['name']}. {run['verdict']['sentence']}" for run in data["runs"]],
        sections=data["sections"],
        style=Markup((static / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        script_hashes=Markup(" ".join(f"'sha256-{digest}'" for digest in digests)),
        data=Markup(embedded_json(data)),
        sample_note=completions.SAMPLE_NOTE,
    )


def _headline(described: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for state, name in NAMES.items():
        labels = [one["label"] for one in described if one["verdict"]["state"] == state]
        if len(labels) > 6:
            labels[5:] = [f"{len(labels) - 5} more"]
        if labels:
            parts.append(f"{name}: {' · '.join(labels)}")
    return ". ".join(parts) + "."


def _described(run: RunRecord, share: float) -> dict[str, Any]:
    """Everything that the page shows of one run. `share` is its part of the page."""
    verdict = verdict_of(run, tables.held_out_problems(run))
    told = {step for step in (verdict.hacked_at, verdict.alarm_at) if step is not None}
    sample = completions.sample_completions(run, told, share)
    pair_counts = completions.read_pairs(run, sample.gallery)
    scores = [completions.score_of(item) for item in sample.gallery]
    score_name = "the reward's" + (" before shaping" if any("unshaped" in item for item in sample.gallery) else "")
    if any("reward_model" in item for item in sample.gallery):
        score_name = "the reward model's"
    return {
        "label": run.label,
        "verdict": {
            **{name: getattr(verdict, name) for name in ("state", "name", "sentence")},
            **{name: asdict(verdict)[name] for name in ("signals", "hacked_at", "alarm_at")},
        },
        "figures": tables.figures(run, verdict, sample),
        "facts": tables.facts(run),
        "provenance": tables.provenance(run),
        "curves": _curves(run, pair_counts, max(100, min(MOST_POINTS, round(4 * MOST_POINTS * share)))),
        "stages": tables.stages(run),
        "last": {name: value for name, value in run.metrics[-1].items() if name != "step"} if run.metrics else {},
        "events": list(run.events)[-200:],
        "config": run.config_text[:MOST_CONFIG],
        "learns": tables.learns(run),
        "score_name": score_name,
        "gallery": [
            {"score": score if score > -math.inf else None, **item}
            for score, item in zip(scores, sample.gallery, strict=True)
        ],
        **{name: getattr(sample, name) for name in ("fooled", "steps", "recorded_steps", "problems_of_step")},
        "pairs": completions.last_pairs(run),
    }


def _curves(run: RunRecord, pair_counts: Mapping[int, Mapping[str, int]], most: int) -> dict[str, Any]:
    """The metrics by step, null where not finite, and the pairs by origin. Of many steps neighbours are averaged."""
    width = -(-len(run.metrics) // most) if run.metrics else 1
    bins = [run.metrics[i : i + width] for i in range(0, len(run.metrics), width)]
    steps = [int(rows[-1]["step"]) for rows in bins]
    names = dict.fromkeys(name for row in run.metrics for name, value in row.items() if isinstance(value, int | float))
    columns = {name: [_mean(rows, name) for rows in bins] for name in names if name != "step"}
    for origin in sorted({origin for counts in pair_counts.values() for origin in counts}):
        columns[PAIRS_OF + origin] = [
            pair_counts[step].get(origin, 0) if step in pair_counts else None for step in steps
        ]
    return {"steps": steps, "averaged": width, "columns": columns}


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [row[name] for row in rows if isinstance(row.get(name), int | float) and math.isfinite(row[name])]
    return float(f"{sum(values) / len(values):.5g}") if values else None


def embedded_json(value: Any) -> str:
    """JSON that no HTML parser takes for anything else, and that every JavaScript parser reads.

    `<`, `>`, `&` and surrogates without a partner are escaped. Numbers are rounded to five digits; what is not finite
    becomes text.
    """
    text = json.dumps(completions.plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
