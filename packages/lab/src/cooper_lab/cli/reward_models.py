"""Reward models by themselves: `cooper verifyrm bench --benchmark` and `cooper verifyrm distance`."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cooper_base.cli.console import console, named_models, names_and_settings, progress, record_from, stdout
from cooper_base.files.owned_file import OwnedFile, write_owned
from cooper_rl import InputError

if TYPE_CHECKING:
    from cooper_lab.benchmarks.scoring import Scorer

DISTANCE = "cooper verifyrm distance"
IN_FILE = "file"
"""The name under which scores that a file holds are shown."""
LABEL = "label"


def measure_benchmark(
    name: str, data: Sequence[Path], out: Path, models: Sequence[str], settings: Sequence[str], threads: int | None
) -> None:
    """Measure reward models, or the scores that the files hold, and write `benchmark.json`."""
    from cooper_lab.benchmarks import COMMAND, benchmark_named

    benchmark = benchmark_named(name)
    items = [item for path in data for item in benchmark.read(path)]
    folders = named_models(models, taken=[IN_FILE])
    held = [item.scores for item in items if item.scores is not None]
    if not folders and len(held) < len(items):
        raise InputError(f"{data[0]}: holds no scores of its own; give --reward-model")
    if folders and any(not any(item.completions) for item in items):
        raise InputError(f"{data[0]}: holds scores but no completions; leave out --reward-model")
    scores = {} if folders else {IN_FILE: held}
    for model, folder in folders.items():
        scorer = _scorer(folder, settings, threads)
        with progress(model, 0) as advance:
            scores[model] = scorer.scores(items, lambda done, total: advance(done, total=total))
    measures = {model: benchmark.measure(items, values) for model, values in scores.items()}
    result = {"benchmark": name, "models": {model: asdict(measured) for model, measured in measures.items()}}
    write_owned(out / "benchmark.json", json.dumps(result, indent=2) + "\n", COMMAND)
    table = Table(name, *measures)
    for measure in next(iter(measures.values())).summary:
        table.add_row(measure, *(f"{measured.summary[measure]:.4f}" for measured in measures.values()))
    stdout().print(table)
    console.print(f"{len(items)} problems; by subset, with intervals: {out / 'benchmark.json'}", soft_wrap=True)


def reward_distance(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA... [KEY=VALUE]...",
            help="Labelled completions, several for each question; and settings of the reward models.",
        ),
    ],
    reward_model: Annotated[list[str], typer.Option(help="A reward model folder, or NAME=FOLDER.")],
    threads: Annotated[int | None, typer.Option(help="CPU threads for tensor work.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Write the distances to this JSON file.")] = None,
) -> None:
    """Print the STARC distance (norm 2, equal to EPIC) between reward models and to the labels: 0 is equal, 1 opposite.

    Only differences between completions of the same question count.
    """
    from cooper_base.data.labelled import read_labelled

    paths, settings = names_and_settings(data)
    rows = [row for path in paths for row in read_labelled(path)]
    questions = [row.question for row in rows]
    if len(set(questions)) == len(questions):
        raise InputError(f"{', '.join(paths)}: no question has two completions, so there is nothing to compare")
    folders = named_models(reward_model, taken=[LABEL])

    import numpy as np

    from cooper_lab.benchmarks.distances import starc_distance

    with nullcontext() if out is None else OwnedFile(out, DISTANCE, map(Path, paths)) as file:
        rewards = {LABEL: np.array([row.label for row in rows])}
        for name, folder in folders.items():
            rewards[name] = np.array(_scorer(folder, settings, threads).logits(rows))
        groups = np.array(questions, dtype=object)
        matrix = {a: {b: starc_distance(rewards[a], rewards[b], groups) for b in rewards} for a in rewards}
        table = Table("distance", *matrix)
        for name, distances in matrix.items():
            table.add_row(name, *(f"{distance:.4f}" for distance in distances.values()))
        stdout().print(table)
        if file is not None:
            file.write(json.dumps({"rows": len(rows), "distances": matrix}, indent=2) + "\n")


def _scorer(folder: str, settings: Sequence[str], threads: int | None) -> "Scorer":
    from cooper_rl.engines.model_folder import check_reward_model_folder
    from cooper_rl.policy.evaluation_config import ScoringConfig

    config = record_from(ScoringConfig, {"model": folder}, settings)
    check_reward_model_folder(folder, config.kind)

    from cooper_lab.benchmarks.scoring import Scorer
    from cooper_rl.engines.local.device import set_threads

    set_threads(threads)
    return Scorer(config)
