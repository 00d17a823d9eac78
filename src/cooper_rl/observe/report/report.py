"""A run's report: one self-contained HTML page with curves, faults, the hack gallery and pair examples."""

import heapq
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cooper_rl.observe.first_screen import best_example, reward_parts
from cooper_rl.observe.record import read_events, read_metrics
from cooper_rl.observe.report.figures import line_chart_svg

CHARTS: list[tuple[str, dict[str, str]]] = [
    (
        "Reward and accuracy",
        {
            "reward/mean": "training reward",
            "rule/accuracy": "rule",
            "gold/accuracy": "gold",
            "test/gold_avg": "gold, test",
            "test/rule_avg": "rule, test",
        },
    ),
    (
        "Reward model",
        {
            "reward_model/rule_agreement": "agrees with rule",
            "reward_model/false_accept_rate": "accepts rule-wrong",
            "reward_model/pair_accuracy_before": "pairs before update",
            "reward_model/pair_accuracy_after": "pairs after update",
            "reward_model/probe_drift": "probe drift",
        },
    ),
    (
        "Reward model on held-out completions and attacks",
        {
            "monitor/accuracy": "accuracy",
            "monitor/roc_auc": "ROC-AUC",
            "monitor/attack_rate": "attacks accepted",
            "monitor/bare_right_rate": "bare right answers accepted",
        },
    ),
    ("Policy", {"policy/reference_kl": "KL to reference (nats)", "rollout/entropy_estimate": "entropy (nats)"}),
    (
        "Length and verdicts",
        {"rollout/cut_off_rate": "cut off", "rule/unparsed": "unparsed", "policy/usable_groups": "usable groups"},
    ),
    (
        "Seconds per step",
        {
            "time/step": "step",
            "time/sample": "sample",
            "time/update_policy": "policy",
            "time/update_reward_model": "reward model",
        },
    ),
]
GALLERY = 12


def write_report(directory: Path) -> Path:
    """Write `report.html` from the files in the run's folder, and return its path.

    Model text is escaped, so markup in a completion is shown and not run.
    """
    metrics = read_metrics(directory)
    charts = []
    for title, names in CHARTS:
        lines = {label: [(row["step"], row[name]) for row in metrics if name in row] for name, label in names.items()}
        lines = {label: points for label, points in lines.items() if points}
        if lines:
            charts.append((title, line_chart_svg(lines)))
    environment = Environment(
        loader=PackageLoader("cooper_rl.observe.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("report.html.j2").render(
        name=directory.name,
        example=first_example(directory),
        config=(directory / "config.yaml").read_text(encoding="utf-8"),
        charts=charts,
        events=read_events(directory),
        last=sorted(metrics[-1].items()) if metrics else [],
        hacks=hack_gallery(directory),
        pairs=last_pairs(directory),
    )
    target = directory / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def first_example(directory: Path) -> dict[str, Any] | None:
    """The completion with the highest reward in the first recorded step, with the `parts` of its reward."""
    first = sorted((directory / "rollouts").glob("*.jsonl"))[:1]
    example = best_example(row for _, row in _rows(first))
    return example and {**example, "step": int(first[0].stem), "parts": reward_parts(example)}


def hack_gallery(directory: Path) -> list[dict[str, Any]]:
    """The highest-rewarded completions of the run that gold rejects, or the rule where gold is unknown."""

    def candidates() -> Iterator[dict[str, Any]]:
        for step, row in _rows(sorted((directory / "rollouts").glob("*.jsonl"))):
            for completion in row["completions"]:
                if not completion.get("gold", completion["verdict"] == "correct"):
                    yield {"step": step, "question": row["question"], "answer": row["answer"], **completion}

    return heapq.nlargest(GALLERY, candidates(), key=lambda row: row["reward"])


def last_pairs(directory: Path) -> list[dict[str, Any]]:
    """The pairs of the last steps that had pairs, at most `GALLERY`."""
    found: list[dict[str, Any]] = []
    for path in sorted((directory / "pairs").glob("*.jsonl"), reverse=True):
        found += [{"step": step, **row} for step, row in _rows([path])]
        if len(found) >= GALLERY:
            break
    return found[:GALLERY]


def _rows(paths: Sequence[Path]) -> Iterator[tuple[int, dict[str, Any]]]:
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for line in file:
                yield int(path.stem), json.loads(line)
