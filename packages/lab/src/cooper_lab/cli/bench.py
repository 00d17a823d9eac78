"""`cooper verifyrm bench`: rule, reward models, judge and combinations on labelled completions and under attack."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cooper_base.cli.console import console, counter, named_models, names_and_settings, record_from, say
from cooper_base.files.owned_folder import OwnedFolder
from cooper_lab.cli.reward_models import measure_benchmark
from cooper_rl import InputError
from cooper_verify.cli.verify import RuleOption, rule_from


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
            measure_benchmark(benchmark, paths, out, reward_model or [], settings, threads)
        return
    from rich.markdown import Markdown

    from cooper_lab.benchmarks.bench import bench, read_bench
    from cooper_lab.benchmarks.bench_report import HTML, MARKDOWN, markdown, write_bench
    from cooper_lab.benchmarks.verifybench import beside_published, file_of
    from cooper_rl.adapters.graders.reward_model import RewardModelGrader
    from cooper_rl.engines.local.device import set_threads
    from cooper_rl.policy.evaluation_config import ScoringConfig
    from cooper_verify.grader import Grader
    from cooper_verify.graders.written import open_grader
    from cooper_verify.rules.verifier import Verifier

    rows = [row for path in paths for row in read_bench(file_of(path))]
    set_threads(threads)
    methods: dict[str, Grader] = {} if no_rule else {"rule": Verifier(rule_from(rule, workers))}
    folders = named_models(reward_model or [], taken=["judge", *methods])
    for name, folder in folders.items():
        methods[name] = RewardModelGrader(record_from(ScoringConfig, {"model": folder}, settings), threads)
    kinds = {name: "rule" if name == "rule" else "reward_model" for name in methods}
    if judge is not None:
        methods["judge"], kinds["judge"] = open_grader(str(judge)), "judge"
    if not methods:
        raise InputError("nothing to measure; leave out --no-rule, or give --reward-model or --judge")
    with OwnedFolder(out, COMMAND):
        try:
            with counter("bench") as advance:
                result = bench(rows, methods, combine or [], out, attacks, progress=advance)
        finally:
            for method in methods.values():
                method.close()
        published = beside_published(paths, result, kinds)
        write_bench(result, out, published)
    console.print(Markdown(markdown(result, published)))
    say(f"page: {out / HTML}\ntable: {out / MARKDOWN}")
    if folders:
        first = shlex.quote(next(iter(folders.values())))
        say(f"next, a run that is paid by it: cooper train CONFIG reward_model.model={first}")
