"""Which metrics a report draws, in which charts; and the curves behind every chart and picture."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from cooper_rl.observe.report.run_folder import RunFolder

MOST_POINTS = 1000
"""Longest curve. Of a longer run every point is the mean of several neighbouring steps."""

PAIRS_OF = "pairs_of/"
"""Columns that the report counts itself: the pairs of a step by the origin of their negative."""

COLOURS = ("#1f77b4", "#d9480f", "#2b8a3e", "#9c36b5", "#b08900", "#0b7285", "#c2255c", "#5c6370")
"""Colours of runs, each readable on white and on a dark page."""


@dataclass(frozen=True)
class Panel:
    """A chart over the steps.

    With `by_run` it draws the first of `metrics` that any run records, with a line for each run. Otherwise it draws all
    of them for the run that is open.
    """

    title: str
    metrics: Mapping[str, str]
    """Metric and what its line is called."""
    by_run: bool = True
    share: bool = False
    """Whether the values are shares, so that the axis goes from 0 to 1."""
    note: str = ""
    prefix: str = ""
    """Metrics whose names begin so are drawn too, each called by the rest of its name."""
    leave_out: tuple[str, ...] = ()
    """Metrics with that prefix which are not drawn."""


STORY = (
    Panel(
        "Accuracy",
        {
            "test/gold_avg": "Gold accuracy on held-out problems",
            "gold/accuracy": "Gold accuracy on training problems",
            "test/rule_avg": "Rule accuracy on held-out problems",
            "rule/accuracy": "Rule accuracy on training problems",
        },
        share=True,
    ),
    Panel("Training reward", {"reward/mean": "Training reward"}, share=True),
)
"""The two curves of a hack."""

SECTIONS: dict[str, tuple[Panel, ...]] = {
    "Reward model": (
        Panel(
            "Agrees with the rule", {"reward_model/rule_agreement": ""}, share=True, note="share of parsed completions"
        ),
        Panel(
            "Accepts what the rule calls wrong",
            {"reward_model/false_accept_rate": ""},
            share=True,
            note="share of wrong completions",
        ),
        Panel(
            "Accepts what the rule calls right",
            {"reward_model/true_accept_rate": ""},
            share=True,
            note="share of right completions",
        ),
        Panel("Right by gold", {"gold/reward_model_accuracy": ""}, share=True, note="share of completions"),
        Panel(
            "Ranks its pairs right",
            {"reward_model/pair_accuracy_before": "before the update", "reward_model/pair_accuracy_after": "after it"},
            by_run=False,
            share=True,
        ),
        Panel(
            "Ranks new pairs right, by origin",
            {},
            prefix="reward_model/pair_accuracy_before_",
            by_run=False,
            share=True,
        ),
        Panel("Score drift", {"reward_model/probe_drift": ""}, note="mean change of fixed completions' scores"),
        Panel("Held-out accuracy", {"monitor/accuracy": "accuracy", "monitor/roc_auc": "ROC-AUC"}, by_run=False),
        Panel("Calibration error", {"monitor/ece": ""}, note="expected calibration error, held out"),
        Panel(
            "Accepts attacks",
            {"monitor/attack_rate": "all attacks", "monitor/bare_right_rate": "bare right answers"},
            by_run=False,
            share=True,
            prefix="monitor/attack_",
        ),
        Panel("Valid pairs, by origin", {}, prefix=PAIRS_OF, by_run=False, note="pairs a step"),
    ),
    "Policy": (
        Panel("KL from the start", {"policy/reference_kl": ""}, note="nats a token"),
        Panel("Entropy", {"rollout/entropy_estimate": ""}, note="nats a token"),
        Panel("Length", {"rollout/mean_length": ""}, note="tokens a completion"),
        Panel("Cut off at the limit", {"rollout/cut_off_rate": ""}, share=True, note="share of completions"),
        Panel("No answer found by the rule", {"rule/unparsed": ""}, share=True, note="share of completions"),
        Panel("Spread inside a group", {"reward/group_spread": ""}, note="largest minus smallest reward"),
        Panel("Groups that teach", {"policy/usable_groups": ""}, share=True, note="share; the others are skipped"),
        Panel(
            "Learnt where the rule accepts nothing",
            {"policy/unverified_advantage": ""},
            share=True,
            note="share of |advantage| in such groups",
        ),
        Panel("Clipped tokens", {"policy/clip_fraction": ""}, note="share of tokens"),
        Panel("Gradient norm", {"policy/grad_norm": ""}),
    ),
    "Time and memory": (
        Panel("Seconds a step", {"time/step": ""}),
        Panel("Seconds by stage", {}, prefix="time/", leave_out=("time/step",), by_run=False),
        Panel("Main memory after a stage", {}, prefix="memory/", by_run=False, note="MiB, of this process"),
        Panel("GPU memory in a stage", {}, prefix="gpu_memory/", by_run=False, note="MiB, peak of one GPU"),
        Panel("Tokens a step", {"rollout/tokens": ""}),
    ),
}
"""The charts below the story, by section."""


def story_metric(runs: Sequence[RunFolder]) -> str | None:
    """The accuracy that the story draws: the best one that most of the runs record at least twice."""
    counts = {metric: sum(len(run.series(metric)) > 1 for run in runs) for metric in STORY[0].metrics}
    best = max(counts.values())
    return next((metric for metric, count in counts.items() if count == best), None) if best else None


def curves(run: RunFolder, most: int = MOST_POINTS) -> dict[str, Any]:
    """The steps of a run and every metric as a column: null where a step does not record it or it is not finite.

    Of more than `most` steps, neighbours are averaged.
    """
    width = -(-len(run.metrics) // most) if run.metrics else 1
    bins = [run.metrics[i : i + width] for i in range(0, len(run.metrics), width)]
    names = dict.fromkeys(name for row in run.metrics for name, value in row.items() if isinstance(value, int | float))
    names.pop("step", None)
    columns = {name: [_mean(rows, name) for rows in bins] for name in names}
    return {"steps": [int(rows[-1]["step"]) for rows in bins], "averaged": width, "columns": columns}


def panels_as_data() -> list[dict[str, Any]]:
    """The sections with their panels, for the page."""
    return [{"title": title, "panels": [asdict(panel) for panel in panels]} for title, panels in SECTIONS.items()]


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [row[name] for row in rows if isinstance(row.get(name), int | float) and isfinite(row[name])]
    return float(f"{sum(values) / len(values):.5g}") if values else None
