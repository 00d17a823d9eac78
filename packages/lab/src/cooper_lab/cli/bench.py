"""`cooper verifyrm bench`: rule, reward models, judge and combinations on labelled completions and under attack."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cooper_base.cli.console import (
    console,
    counter,
    named_models,
    names_and_settings,
    progress,
    record_from,
    say,
    stdout,
)
from cooper_base.files.owned_file import write_owned
from cooper_base.files.owned_folder import OwnedFolder
from cooper_rl import InputError
from cooper_verify.cli.verify import RuleOption, rule_from

if TYPE_CHECKING:
    from cooper_rl.reward.context import RewardModel

IN_FILE = "file"
"""The name under which scores that a file holds are shown."""


def bench_methods(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA... [KEY=VALUE]...",
            help="Files in the format of VerifyBench, rows as for `train`, or a name on the hub: "
            "ZJU-REAL/VerifyBench, ZJU-REAL/VerifyBench-Hard; and settings of the reward models: see `cooper config "
            "--for verifyrm-bench`.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the page, the table and the single opinions.")],
    rule: RuleOption = "maths",
    no_rule: Annotated[bool, typer.Option("--no-rule", help="Leave out the rule.")] = False,
    reward_model: Annotated[
        list[str] | None, typer.Option(help="A reward model folder, or NAME=FOLDER; the first is called rm.")
    ] = None,
    judge: Annotated[Path | None, typer.Option(help="YAML file with `judge:`, of kind chat or local.")] = None,
    combine: Annotated[list[str] | None, typer.Option(help="A combination, such as 'rule or rm'.")] = None,
    attacks: Annotated[int, typer.Option(help="Number of problems on which every attack is tried.", min=0)] = 100,
    threads: Annotated[int | None, typer.Option(help="CPU threads for tensor work.", min=1)] = None,
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
    benchmark: Annotated[
        str | None, typer.Option(help="Read the files of judgebench, rewardbench, rewardbench2, rewardmath or rmbench.")
    ] = None,
) -> None:
    """Compare rule, reward models, judge and combinations on labelled completions and under attack."""
    from cooper_lab.benchmarks import COMMAND

    names, settings = names_and_settings(data)
    paths = [Path(name) for name in names]
    if benchmark is not None:
        if judge is not None or combine:
            raise InputError("--benchmark measures scores; leave out --judge and --combine")
        with OwnedFolder(out, COMMAND):
            _measure_benchmark(benchmark, paths, out, reward_model or [], settings, threads)
        return
    from rich.markdown import Markdown

    from cooper_lab.benchmarks.bench import bench, read_bench
    from cooper_lab.benchmarks.bench_report import HTML, MARKDOWN, markdown, write_bench
    from cooper_lab.benchmarks.verifybench import file_of
    from cooper_rl.adapters.graders.reward_model import RewardModelGrader
    from cooper_rl.engines.config import ScorerConfig
    from cooper_rl.engines.local.device import set_threads
    from cooper_verify.grader import Grader
    from cooper_verify.graders.written import open_grader
    from cooper_verify.rules.verifier import Verifier

    rows = [row for path in paths for row in read_bench(file_of(path))]
    set_threads(threads)
    methods: dict[str, Grader] = {} if no_rule else {"rule": Verifier(rule_from(rule, workers))}
    folders = named_models(reward_model or [], taken=["judge", *methods])
    for name, folder in folders.items():
        methods[name] = RewardModelGrader(record_from(ScorerConfig, {"model": folder}, settings), threads)
    if judge is not None:
        methods["judge"] = open_grader(str(judge))
    if not methods:
        raise InputError("nothing to measure; leave out --no-rule, or give --reward-model or --judge")
    with OwnedFolder(out, COMMAND):
        try:
            with counter("bench") as advance:
                result = bench(rows, methods, combine or [], out, attacks, progress=advance)
        finally:
            for method in methods.values():
                method.close()
        write_bench(result, out)
    console.print(Markdown(markdown(result)))
    say(f"page: {out / HTML}\ntable: {out / MARKDOWN}")
    if folders:
        first = shlex.quote(next(iter(folders.values())))
        say(f"next, a run that is paid by it: cooper train CONFIG reward_model.model={first}")


def _measure_benchmark(
    name: str, data: Sequence[Path], out: Path, models: Sequence[str], settings: Sequence[str], threads: int | None
) -> None:
    """Measure reward models, or the scores that the files hold, and write `benchmark.json`."""
    from cooper_lab.benchmarks import COMMAND, benchmark_named
    from cooper_lab.benchmarks.scoring import logits_of

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
        loaded = _reward_model(folder, settings, threads)
        with progress(model, 0) as advance:
            scores[model] = logits_of(loaded, items, lambda done, total: advance(done, total=total))
    measures = {model: benchmark.measure(items, values) for model, values in scores.items()}
    result = {"benchmark": name, "models": {model: asdict(measured) for model, measured in measures.items()}}
    write_owned(out / "benchmark.json", json.dumps(result, indent=2) + "\n", COMMAND)
    table = Table(name, *measures)
    for measure in next(iter(measures.values())).summary:
        table.add_row(measure, *(f"{measured.summary[measure]:.4f}" for measured in measures.values()))
    stdout().print(table)
    console.print(f"{len(items)} problems; by subset, with intervals: {out / 'benchmark.json'}", soft_wrap=True)


def _reward_model(folder: str, settings: Sequence[str], threads: int | None) -> "RewardModel":
    from cooper_rl.engines.config import ScorerConfig
    from cooper_rl.engines.model_folder import check_reward_model_folder

    config = record_from(ScorerConfig, {"model": folder}, settings)
    check_reward_model_folder(folder, config.kind)

    from cooper_rl.engines.local.device import set_threads
    from cooper_rl.reward.scorer import load_scorer

    set_threads(threads)
    return load_scorer(config)
