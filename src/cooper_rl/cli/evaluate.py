"""`cooper eval`: accuracy of a model on a set of problems, alone or beside another model's."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cooper_rl.cli.console import console, progress
from cooper_rl.cli.evaluated_run import checkpoint_policy, differences, problems_of, run_of, settings_of
from cooper_rl.cli.settings import record_from, rule_from
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.evaluation.accuracy import EvaluationResult

DEFAULTS = {"k": 8, "temperature": 0.7, "top_p": 0.95, "max_tokens": 512, "batch_size": 16, "seed": 0}
"""What is not set, of a model that lies in no run."""
OR_RUN = "By default the run's, or else"


def evaluate_model(
    model: Annotated[str | None, typer.Argument(help="A Hugging Face folder or name.")] = None,
    run: Annotated[Path | None, typer.Option(help="A run: its policy is evaluated, and its start beside it.")] = None,
    step: Annotated[str | None, typer.Option(help="With --run: a checkpoint's step, or `best`. Newest by default.")] = (
        None
    ),
    against: Annotated[str | None, typer.Option(help="Another model: the difference on the same problems.")] = None,
    problems: Annotated[
        str | None,
        typer.Option(help="A JSONL, Parquet, CSV or TSV file, a dataset name, or `arithmetic`. By default the run's."),
    ] = None,
    format: Annotated[str | None, typer.Option(help="Ready-made mapping, such as gsm8k.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="Further problem settings: key=value.")] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="The rule: maths, exact, choice, numeric, package.module:function, or settings such as "
            f"'{{kind: numeric, relative: 0.01}}'. {OR_RUN} maths."
        ),
    ] = None,
    k: Annotated[int | None, typer.Option(help=f"Samples per problem. {OR_RUN} 8.")] = None,
    temperature: Annotated[float | None, typer.Option(help=f"{OR_RUN} 0.7.")] = None,
    top_p: Annotated[float | None, typer.Option(help=f"{OR_RUN} 0.95.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help=f"{OR_RUN} 512.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first problems.")] = None,
    batch_size: Annotated[int | None, typer.Option(help=f"Problems sampled at once. {OR_RUN} 16.")] = None,
    seed: Annotated[int | None, typer.Option(help=f"{OR_RUN} 0.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads for tensor work.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Write completions and verdicts to this JSONL file.")] = None,
) -> None:
    """Print avg@k and pass@k with 95 % Wilson intervals, according to the rule and, where it is known, to gold.

    The policy of a run, `--run` or a model's folder that lies in one, is evaluated as the run evaluates itself: with
    its test problems, prompt, rule, sampling and lengths. An option that differs wins, with a warning.
    """
    from cooper_rl.build import evaluate_model as evaluate  # noqa: PLC0415 - torch loads only when needed
    from cooper_rl.data.config import ProblemsConfig  # noqa: PLC0415
    from cooper_rl.engines.config import SamplingParams  # noqa: PLC0415
    from cooper_rl.evaluation.accuracy import difference  # noqa: PLC0415
    from cooper_rl.run_config import load_config  # noqa: PLC0415

    if (model is None) == (run is None):
        raise InputError("name a model's folder or --run, and not both")
    if step is not None and run is None:
        raise InputError("--step is a checkpoint's of --run; name the run")
    folder = run or run_of(str(model))
    of_run = None if folder is None else load_config(folder / "config.yaml")
    if run is not None and of_run is not None:
        model, against = str(checkpoint_policy(run, of_run, step)), against or of_run.policy.model
    if problems is None and of_run is None:
        raise InputError("--problems: name the problems; only a run's own policy has some by default")

    given = {"k": k, "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "batch_size": batch_size}
    given |= {"seed": seed, "threads": threads, "rule": rule_from(rule) if rule else None}
    usual: dict[str, Any] = settings_of(of_run) if of_run else {**DEFAULTS, "rule": rule_from("maths"), "threads": None}
    chosen = usual | {name: value for name, value in given.items() if value is not None}
    own = problems_of(of_run) if of_run else {}
    source = {"source": problems, "prompt": own.get("prompt")} if problems else own
    data = record_from(ProblemsConfig, source | _set(format=format, limit=limit), setting or [])
    sampling = {name: chosen[name] for name in ("temperature", "top_p", "max_tokens")}
    base = of_run.rollout.model_dump(include=set(SamplingParams.model_fields)) if of_run else {}
    params = record_from(SamplingParams, base | sampling)
    warnings = differences(given, usual) if of_run else []
    if of_run and data.prompt.model_dump(mode="json") != own["prompt"]:
        warnings.append(f"--setting: the prompt differs from the run's {own['prompt']}")
    if folder is not None:
        console.print(f"settings of the run {folder}", highlight=False, soft_wrap=True, markup=False)
    for warning in warnings:
        console.print(f"[bold yellow]warning:[/] {escape(warning)}", highlight=False, soft_wrap=True)

    def measure(name: str, shown: bool) -> "dict[str, EvaluationResult]":
        def show(text: str) -> None:
            console.print(text, highlight=False, soft_wrap=True, markup=False)

        with progress("evaluating", 0) as advance:
            return evaluate(
                name,
                data,
                params,
                chosen["k"],
                chosen["seed"],
                chosen["batch_size"],
                lambda done, total: advance(done, total=total),
                chosen["threads"],
                chosen["rule"],
                show if shown else None,
                of_run,
            )

    results = measure(str(model), shown=True)
    _print_results(results, chosen["k"])
    _print_cut_off(results["rule"], chosen["max_tokens"])
    if against is not None:
        others = measure(against, shown=False)
        table = Table("labels", "measure", against, "difference", "95 % interval", title="on the same problems")
        for labeller, result in results.items():
            gain, other = difference(others[labeller], result), others[labeller].avg_at_k
            row = (
                f"avg@{chosen['k']}",
                f"{other.mean:.4f}",
                f"{gain.mean:+.4f}",
                f"{gain.low:+.4f} to {gain.high:+.4f}",
            )
            table.add_row(labeller, *row)
        Console().print(table)
    if out is not None:
        lines = [
            json.dumps({"labels": labeller, **asdict(record)}, ensure_ascii=False)
            for labeller, result in results.items()
            for record in result.records
        ]
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        console.print(f"completions: {out}", highlight=False, soft_wrap=True)


def _set(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _print_results(results: "dict[str, EvaluationResult]", k: int) -> None:
    table = Table("labels", "measure", "value", "95 % interval")
    for labeller, result in results.items():
        for measure, estimate in {f"avg@{k}": result.avg_at_k, f"pass@{k}": result.pass_at[k]}.items():
            interval = f"{estimate.low:.4f} to {estimate.high:.4f}"
            table.add_row(labeller, measure, f"{estimate.mean:.4f}", interval)
    Console().print(table)


def _print_cut_off(result: "EvaluationResult", max_tokens: int) -> None:
    """Print how many completions reached the length limit. If most did, the accuracy means little."""
    total = len(result.records)
    cut_off, share = round(result.truncated * total), f"{100 * result.truncated:.0f} %"
    Console().print(f"cut off at {max_tokens} tokens: {cut_off} of {total} completions ({share})", highlight=False)
    if 2 * cut_off > total:
        console.print(
            "[bold yellow]warning:[/] most completions were cut off at the token limit, so few of them can be right; "
            "raise --max-tokens, or check that the model ends its answers",
            highlight=False,
            soft_wrap=True,
        )
