"""Writes the page of a study: the paper's table beside ours, what fills its empty cells, the protocol, the time
taken."""

import json
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.paper.published import CHOICES, LABELS, ROWS, TABLE, mean
from benchmarks.paper.stages import Stage
from benchmarks.paper.study import MODELS, Study

from cooper_base.files.owned_file import write_owned

COMMAND = "python -m benchmarks.paper"
PAGE, NUMBERS = "paper.md", "paper.json"


def write_page(study: Study, stages: Sequence[Stage], command: str) -> Path:
    """Write `paper.md` and `paper.json` from the results on disk, finished or not, and return the page's path."""
    results = {stage.name: stage.result() for stage in stages}
    ours = {arm: _percent(results.get(f"evaluate/{arm}")) for arm in ROWS}
    parts = [_head(study), _table(study, ours), _empty(ours, command), _protocol(study, results), _work(results)]
    page = study.folder / PAGE
    write_owned(page, "\n\n".join("\n".join(part) for part in parts if part) + "\n", COMMAND)
    numbers = {"model": study.model, "scale": study.scale, "published": TABLE[study.model], "ours": ours}
    write_owned(study.folder / NUMBERS, json.dumps(numbers, indent=2) + "\n", COMMAND)
    return page


def _percent(result: dict[str, Any] | None) -> dict[str, list[float]] | None:
    """avg@k, lower and upper end of its 95 % interval, in per cent, by set."""
    if result is None:
        return None
    keys = ("mean", "low", "high")
    return {name: [round(100 * of_set[key], 2) for key in keys] for name, of_set in result["sets"].items()}


def _head(study: Study) -> list[str]:
    lines = [f"# The paper's table: {study.model}{', tiny scale' if study.scale == 'tiny' else ''}", ""]
    if study.scale == "tiny":
        where = "real ones" if study.data is not None else "the embedded arithmetic world, in place of the five sets"
        lines += [
            f"**This is the tiny scale: a policy of 0.7 M parameters, six steps, few problems: {where}. It shows "
            "that every stage runs. Its figures say nothing about the paper or about Cooper.**",
            "",
        ]
    else:
        lines += [f"{MODELS[study.model]}; arXiv 2508.05613.", ""]
    return [
        *lines,
        f"Accuracy in per cent, avg@{study.k}; {_whose(study)} with a 95 % interval over the problems. Empty: not run.",
    ]


def _table(study: Study, ours: dict[str, dict[str, list[float]] | None]) -> list[str]:
    lines = [f"| reward | | {' | '.join(LABELS.values())} | mean |", "|---|---|" + "---|" * (len(LABELS) + 1)]
    for arm, name in ROWS.items():
        if (published := TABLE[study.model].get(arm)) is not None:
            cells = [f"{value:.2f}" for value in (*published, mean(published))]
            lines.append(f"| {name} | paper | {' | '.join(cells)} |")
        accuracies = ours[arm]
        if accuracies is None:
            cells = [""] * (len(LABELS) + 1)
        else:
            cells = [
                f"{value:.2f} [{low:.1f}, {high:.1f}]" for value, low, high in (accuracies[label] for label in LABELS)
            ]
            cells.append(f"{mean([accuracies[label][0] for label in LABELS]):.2f}")
        lines.append(f"| {name} | {_whose(study)} | {' | '.join(cells)} |")
    return lines


def _whose(study: Study) -> str:
    return "tiny" if study.scale == "tiny" else "ours"


def _empty(ours: dict[str, Any], command: str) -> list[str]:
    if not (empty := [arm for arm, measured in ours.items() if measured is None]):
        return []
    return [
        "This fills the empty rows; what is finished is kept:",
        "",
        "```bash",
        f"{command} --arms {','.join(empty)}",
        "```",
    ]


def _protocol(study: Study, results: dict[str, Any]) -> list[str]:
    sampling, tiny = study.sampling(), study.scale == "tiny"
    lines = [
        "## Protocol",
        "",
        f"Evaluation: temperature {sampling.temperature}, top-p {sampling.top_p}, {study.k} samples a problem, at most "
        f"{sampling.max_tokens} tokens, mean accuracy by the rule; the policy of the last step. Training"
        + (" at the full scale, of which this one changes models, data, lengths, rates and steps" if tiny else "")
        + ": GRPO, 16 completions a problem, learning rate 1e-6 with 20 steps of warm-up, clip 0.2, KL loss 0.001 "
        "(k3), 180 steps; reward model: learning rate 1e-5, one pair a problem, assistant at temperature 0.7 with up "
        "to 3 tries.",
        "",
        f"| what | in the paper | {'here at the full scale' if tiny else 'here'} |",
        "|---|---|---|",
        *(f"| {what} | {there} | {here} |" for what, there, here in CHOICES),
    ]
    stopped = [
        f"- {name}: {result['stopped_by']}" for name, result in results.items() if result and result.get("stopped_by")
    ]
    if stopped:
        lines += ["", "Runs that a watch rule ended early, and why:", "", *stopped]
    return lines


def _work(results: dict[str, Any]) -> list[str]:
    lines = ["## Stages", "", "| stage | state | minutes | found |", "|---|---|---|---|"]
    for name, result in results.items():
        minutes = (
            "" if result is None else f"{result['seconds'] / 60:.1f}" + (" (went on)" if result["begun_again"] else "")
        )
        lines.append(f"| {name} | {'open' if result is None else 'finished'} | {minutes} | {_found(name, result)} |")
    lines += ["", f"{_machine()}. Settings and completions: `stages/`, `runs/`, `evaluations/` beside this page."]
    return lines


def _found(name: str, result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    if name == "verifyrm":
        rows, held_out = result["rows"], result["held_out"]
        return f"{rows['train']:,} rows; held-out accuracy {held_out['accuracy']:.3f} on {rows['held_out']:,}"
    if name.startswith("train/"):
        return f"[{result['steps']} steps](runs/{name.partition('/')[2]}/report.html)"
    if name.startswith("evaluate/"):
        sets = result["sets"].values()
        cut = sum(of_set["cut_off"] * of_set["problems"] for of_set in sets) / sum(
            of_set["problems"] for of_set in sets
        )
        return f"{sum(of_set['problems'] for of_set in sets):,} problems; {100 * cut:.0f} % of completions cut off"
    return ""


def _machine() -> str:
    import torch

    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else f"{platform.machine()} CPU"
    try:
        ours = f"cooper-rl {version('cooper-rl')}, "
    except PackageNotFoundError:
        ours = ""
    return f"{device}; {ours}torch {torch.__version__}, Python {platform.python_version()}"
