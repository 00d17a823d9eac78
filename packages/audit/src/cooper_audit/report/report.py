"""The report of one run or several: a single page that contains everything it shows and needs no other file."""

import base64
import hashlib
import json
import math
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from cooper_audit.report import report_completions as completions
from cooper_audit.report.first_screen import learns, next_steps, onset_of, shown_payments, terminal_lines
from cooper_audit.report.palette import COLOURS
from cooper_audit.report.report_parts import MEASURES_DRAWN, shown_parts
from cooper_audit.run.finding import ACCUSED
from cooper_audit.run.hacking_alarm import WINDOW
from cooper_audit.run.lost_parts import PartsAlarm
from cooper_audit.run.part_verdict import parts_of, with_parts
from cooper_audit.run.run_record import RunRecord, flat, read_rollouts, read_runs, status_of
from cooper_audit.run.table import Groups, Table, sums_of_recorded
from cooper_audit.run.verdict import NAMES, TRUTHS, RunVerdict, problems_behind, since, truth_by_rows, verdict_of
from cooper_audit.statistics import mean_interval, wilson_interval
from cooper_base import __version__
from cooper_base.files.owned_file import write_owned
from cooper_base.pace import duration

REPORT_FILE, REPORT_COMMAND = "report.html", "cooper report"
MOST_CONFIG = 40_000
"""Longest `config.yaml` that the page contains in full, in characters."""
SCRIPTS = ("elements", "chart", "story", "gallery", "parts", "rollouts", "find", "sections", "main")
"""The scripts in the order in which they run."""
MOST_POINTS = 1000
"""Most points of a curve. A longer run has the mean of several neighbouring steps at each point."""
STORY = {truth.metric: truth.title for truth in TRUTHS}
"""The accuracies that a report may begin with, best first, each with its title."""
OWN = ("name", "output_dir", "seed")
"""Settings in which two runs of one design may differ."""
PAIRS_OF = "pairs_of/"
"""Columns that the report itself counts: a step's pairs by the origin of their negative."""


@dataclass(frozen=True)
class Panel:
    title: str
    metrics: Mapping[str, str]
    """Metrics, each with the label of its line."""
    by_run: bool = True
    """If true, each run has one line, of the first of `metrics` that any run records; if false, the run that is open
    has one line for each of them."""
    share: bool = False
    """Whether the values are shares, so that the axis goes from 0 to 1."""
    note: str = ""
    prefix: str = ""
    """Metrics whose names begin with this prefix are drawn too, each labelled with the rest of its name."""
    leave_out: tuple[str, ...] = ()
    """Metrics with that prefix that are not drawn."""


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
        _share("Judged by the rule", "rule/heard", "share of completions; it is silent on the others"),
        _share("No answer found by the rule", "rule/unparsed"),
        _one("Spread inside a group", "reward/group_spread", "largest minus smallest reward"),
        _share("No reward", "reward/no_opinion", "share of completions; a grading that failed is no 0"),
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
    graders: Mapping[str, Any] | None = None,
    over: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write the report of the runs in these folders and return its path, by default `report.html` in the first folder.

    The runs may still be training; `over` says that they have ended, though their processes still hold their folders.
    `title` and the first of the paragraphs `notes` stand at the top of the page, the other ones and the `graders` of an
    audit below its charts; `labels` and `colours` are for the runs. All text of a run reaches the page as
    JSON and is shown as text, so markup in it is never executed. `tell` is called with each line of what the first
    screen says, for a terminal. Raises InputError for a folder without a run, for a
    file of this name that is not such a page as it was written, and for a page that cannot be written.
    """
    directories = [directories] if isinstance(directories, Path) else list(directories)
    runs = [replace(run, over=over) for run in read_runs(directories, labels)]
    data = report_data(runs, colours)
    page = report_page(data, title, notes, graders=graders)
    target = target or directories[0] / REPORT_FILE
    write_owned(target, page.encode("utf-8", "replace"), REPORT_COMMAND)
    for run_data in data["runs"]:
        for line in terminal_lines(run_data, several=len(runs) > 1):
            tell(line)
    return target


def report_data(runs: Sequence[RunRecord], colours: Sequence[str] = ()) -> dict[str, Any]:
    """Everything that the page shows of the runs, as its scripts read it."""
    described = [_described(run, 1 / len(runs)) for run in runs]
    states = [run_data["verdict"]["state"] for run_data in described]
    folders = {run.directory.resolve().parent for run in runs}
    several = f"{len(runs)} runs" + (f" of {folders.pop().name}" if len(folders) == 1 else "")
    return {
        "title": several if len(runs) > 1 else runs[0].label,
        "headline": _headline(described),
        "runs": described,
        "colours": [*colours, *(COLOURS[i % len(COLOURS)] for i in range(len(colours), len(runs)))],
        "palette": COLOURS,
        "story_metric": story_metric(runs),
        "story_names": STORY,
        "sections": [
            {"id": name.lower().replace(" ", "-"), "title": name, "panels": [asdict(panel) for panel in panels]}
            for name, panels in SECTIONS.items()
        ],
        "part_measures": MEASURES_DRAWN,
        "seeds": over_seeds(runs, [run_data["figures"] for run_data in described]),
        "differences": config_differences(runs) if len(runs) > 1 else [],
        "opens_at": next((i for i, state in enumerate(states) if state in ACCUSED), 0),
    }


def report_page(
    data: Mapping[str, Any],
    title: str | None = None,
    notes: Sequence[str] = (),
    live: bool = False,
    graders: Mapping[str, Any] | None = None,
) -> str:
    """The page as text. The scripts read `data`; what the page shows without scripts is filled in here.

    A `live` page asks its server for what is new (`live_page.py`).
    """
    static = files("cooper_audit.report") / "page" / "static"
    scripts = [(static / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    return _template().render(
        title=title or data["title"],
        headline=data["headline"],
        live=live,
        notes=notes,
        graders=graders,
        version=__version__,
        written=time.strftime("%Y-%m-%d %H:%M"),
        single=len(data["runs"]) == 1,
        verdicts=[f"{run['label']}: {terminal_lines(run, several=False)[0]}" for run in data["runs"]],
        sections=data["sections"],
        style=Markup((static / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        script_hashes=Markup(" ".join(f"'sha256-{digest}'" for digest in digests)),
        data=Markup(embedded_json(data)),
        sample_note=completions.SAMPLE_NOTE,
    )


@cache  # it takes longer to compile than a page of a short run to write
def _template() -> Template:
    loader = PackageLoader("cooper_audit.report", "page/templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("report.html.j2")


def _headline(described: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for state, name in NAMES.items():
        labels = [run_data["label"] for run_data in described if run_data["verdict"]["state"] == state]
        if len(labels) > 6:
            labels[5:] = [f"{len(labels) - 5} more"]
        if labels:
            parts.append(f"{name}: {' · '.join(labels)}")
    return ". ".join(parts) + "."


def _described(run: RunRecord, share: float) -> dict[str, Any]:
    """Everything that the page shows of one run. `share` is the part of the page that the run may fill."""
    table, sampler, alarm = _read(run, share)
    verdict = verdict_of(run, held_out_problems(run), table)
    sample = sampler.sample({step for step in (verdict.hacked_at, verdict.alarm_at) if step is not None})
    verdict = with_parts(verdict, parts := parts_of(run, alarm))
    onset = onset_of(run, verdict)
    begin = onset[0] if onset else None
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
            "onset": onset,
            "since": since(onset),
            "basis": [text for text in verdict.basis if text],
            "next": next_steps(run, verdict, onset),
        },
        "parts": shown_parts(parts),
        "payments": shown_payments(sample.payments, begin),
        "unpaid": shown_payments(sampler.unpaid(), begin, "unpaid", "paid") if verdict.state == "right unpaid" else [],
        "figures": figures(run, verdict, sample),
        "facts": facts(run),
        "provenance": provenance(run),
        "curves": _curves(run, pair_counts, max(100, min(MOST_POINTS, round(4 * MOST_POINTS * share)))),
        "stages": stages(run),
        "last": {name: value for name, value in run.metrics[-1].items() if name != "step"} if run.metrics else {},
        "events": list(run.events)[-200:],
        "config": run.config_text[:MOST_CONFIG],
        "learns": learns(run),
        "score_name": score_name,
        "judged": sample.judged / sample.completions if sample.completions else 1.0,
        "gallery": [
            {"score": score if score > -math.inf else None, **item}
            for score, item in zip(scores, sample.gallery, strict=True)
        ],
        **{name: getattr(sample, name) for name in ("fooled", "steps", "recorded_steps", "problems_of_step")},
        "pairs": completions.last_pairs(run),
    }


def _read(run: RunRecord, share: float) -> tuple[Table, completions.Sampler, PartsAlarm]:
    """All rollouts of a run, read once: what the verdict, the page and the parts need of them."""
    truth, groups, sampler, alarm = truth_by_rows(run), Groups(), completions.Sampler(run, share), PartsAlarm()
    for step, recorded in read_rollouts(run.directory):
        if recorded:  # else the file is being written just now
            sampler.add(step, recorded)
            alarm.observe(step, recorded)
            if truth is not None:
                groups.add(step, [sums_of_recorded(group, truth.is_gold) for group in recorded])
    return groups.table(), sampler, alarm


def _curves(run: RunRecord, pair_counts: Mapping[int, Mapping[str, int]], most: int) -> dict[str, Any]:
    """The metrics by step, null if not finite, and the pairs by origin. In a long run neighbouring steps are
    averaged."""
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
    return float(f"{_average(values):.5g}") if values else None


def embedded_json(value: Any) -> str:
    """JSON that an HTML parser reads as plain text. Numbers have five digits, and those that are not finite become
    text."""
    text = json.dumps(completions.plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda character: f"\\u{ord(character[0]):04x}", text)


def story_metric(runs: Sequence[RunRecord]) -> str | None:
    """The accuracy that the story draws: the best one that most of the runs record at least twice."""
    counts = {metric: sum(len(run.series(metric)) > 1 for run in runs) for metric in STORY}
    best = max(counts.values())
    return next((metric for metric, count in counts.items() if count == best), None) if best else None


def facts(run: RunRecord) -> dict[str, str]:
    """The run in a few lines, each with its name."""
    model = _mapping(run.config.get("reward_model"))
    peaks = {"at most": _most(run, "memory/peak"), "on a GPU": _most(run, *_names(run, "gpu_memory/"))}
    status = status_of(run)
    lines = {
        "run": str(run.directory),
        "kind": str(run.config.get("kind", "")),
        "policy": _model(run.config.get("policy")),
        "reward model": f"{_model(model)}, {'learns' if model.get('learns') else 'frozen'}" if model else "",
        "trained on": _problems(_mapping(run.config.get("problems"))),
        "tested on": _problems(_mapping(run.config.get("test_problems"))),
        "steps": f"{run.step} of {run.steps or 'an unknown number'}, {status.state}",
        "time": _time(run, status.seconds_left),
        "memory": ", ".join(f"{most:,} MiB {where}" for where, most in peaks.items() if most is not None),
        "seed": str(run.config.get("seed", "")),
    }
    return {name: value for name, value in lines.items() if value}


def provenance(run: RunRecord) -> dict[str, str]:
    revisions = "cooper_version|cooper_revision|working_folder_revision"
    noted = re.findall(f"^# ({revisions}): (.*)$", run.config_text, re.MULTILINE)
    origins = {name.replace("_", " "): value for name, value in noted}
    for session in run.sessions:
        after = session.get("after_step")
        when = f"started {session.get('started', '')}" + (f", after step {after}" if after else "")
        program, *arguments = [str(part) for part in session.get("command") or [""]]
        origins[when] = shlex.join([Path(program).name, *arguments])
    for last in run.sessions[-1:]:
        shown = [name for name in ("python", "torch", "transformers", "numpy", "system") if name in last]
        origins["with"] = ", ".join(last[name] if name == "system" else f"{name} {last[name]}" for name in shown)
    if run.config_text:
        origins["again"] = f"cooper train {shlex.quote(str(run.directory / 'config.yaml'))} name=again"
    return origins


def stages(run: RunRecord) -> list[dict[str, Any]]:
    """Every part of a step, the longest first, with its seconds over all steps and its highest memory in MiB, or
    None."""
    seconds = {name.removeprefix("time/"): sum(run.values(name)) for name in _names(run, "time/")}
    return [
        {"name": "whole steps" if part == "step" else part.replace("_", " "), "seconds": seconds[part]}
        | {kind: _most(run, f"{kind}/{'peak' if part == 'step' else part}") for kind in ("memory", "gpu_memory")}
        for part in sorted(seconds, key=lambda part: -seconds[part])
    ]


def _names(run: RunRecord, prefix: str) -> list[str]:
    return [*dict.fromkeys(name for row in run.metrics for name in row if name.startswith(prefix))]


def _most(run: RunRecord, *names: str) -> int | None:
    return max((round(value) for name in names for value in run.values(name)), default=None)


def _time(run: RunRecord, left: float | None) -> str:
    if not (steps := run.values("time/step")):
        return ""
    total = f"{duration(sum(run.seconds))} in steps and evaluations"
    to_go = "" if left is None else f", about {duration(left)} to go"
    return f"{total}, {_average(steps):.3g} s a step{to_go}"


def _mapping(settings: Any) -> Mapping[str, Any]:
    """The settings of a part; empty if the file holds something else."""
    return settings if isinstance(settings, Mapping) else {}


def _model(settings: Any) -> str:
    """A model's folder or hub name; only the end of a long path."""
    name = str(_mapping(settings).get("model") or "")
    parts = name.split("/")
    return name if len(parts) <= 4 else "…/" + "/".join(parts[-3:])


def _problems(settings: Mapping[str, Any]) -> str:
    details = [f"{name} {settings[name]}" for name in ("split", "subset", "limit") if settings.get(name) is not None]
    return ", ".join([str(settings.get("source") or ""), *details])


def held_out_problems(run: RunRecord) -> int | None:
    """The number of held-out problems, if it is on record."""
    counts = [session.get("test_problems") for session in reversed(run.sessions)]
    return next((count for count in counts if isinstance(count, int) and count > 0), None)


def figures(run: RunRecord, verdict: RunVerdict, sample: completions.Sample) -> dict[str, Any]:
    """The run's row in the comparison. `low` and `high` are the 95 % interval of the accuracy at the end, or null.

    It is Wilson's interval. Its trials are the held-out problems, which is cautious if each is sampled several times.
    Without held-out problems they are the training problems of the last steps, whose mean is then the end. If the
    accuracy is the rule's, only problems that the rule judges count.
    """
    row: dict[str, Any] = {"verdict": verdict.state, "steps": run.step, "planned": run.steps, "alarm": verdict.alarm_at}
    if reward := run.values("reward/mean"):
        row |= {"reward_start": _average(reward[:WINDOW]), "reward_end": _average(reward[-WINDOW:])}
    if (truth := verdict.truth) is None:
        return row
    values = run.values(truth.metric)
    end = values[-1] if truth.held_out else _average(values[-WINDOW:])
    low = high = None
    if truth.held_out:
        if (problems := problems_behind(truth, run, held_out_problems(run))) and 0 <= end <= 1:
            low, high = wilson_interval(end, problems)
    elif means := sample.means.get("gold" if truth.is_gold else "rule"):
        low, high = wilson_interval(_average(means), len(means))
    return row | {"truth": truth.name, "start": values[0], "end": end, "best": max(values), "low": low, "high": high}


def over_seeds(runs: Sequence[RunRecord], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For runs that differ only in their seed: mean and 95 % interval of the end, by Student's t."""
    groups: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        design = {key: value for key, value in flat(run.config, "[{}]").items() if key not in OWN}
        groups.setdefault(json.dumps(design, sort_keys=True, default=str), []).append(index)
    intervals = []
    for members in groups.values():
        ends = [rows[i]["end"] for i in members if "end" in rows[i]]
        if len(members) > 1 and len(ends) > 1:
            mean, low, high = mean_interval(ends)
            labels = [runs[i].label for i in members]
            intervals.append(
                {"runs": labels, "mean": mean, "low": low, "high": high, "truth": rows[members[0]]["truth"]}
            )
    return intervals


def config_differences(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Every setting in which the runs differ, with its value in each run; null if a run does not have the setting."""
    settings = [flat(run.config, "[{}]") for run in runs]
    keys = dict.fromkeys(key for run_settings in settings for key in run_settings if key != "name")
    rows = {key: [run_settings.get(key) for run_settings in settings] for key in keys}
    return [{"key": key, "values": values} for key, values in rows.items() if len(set(values)) > 1]


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)
