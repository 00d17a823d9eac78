"""`cooper eval`: accuracy of a model on a set of problems."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from cooper_rl.cli.console import console, progress
from cooper_rl.cli.settings import RuleOption, record_from, rule_from

if TYPE_CHECKING:
    from cooper_rl.evaluation.accuracy import EvaluationResult


def evaluate_model(
    model: Annotated[str, typer.Argument(help="A Hugging Face folder or name.")],
    problems: Annotated[str, typer.Option(help="A JSONL, Parquet, CSV or TSV file, a dataset name, or `arithmetic`.")],
    format: Annotated[str | None, typer.Option(help="Ready-made mapping, such as gsm8k.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="Further problem settings: key=value.")] = None,
    rule: RuleOption = "maths",
    k: Annotated[int, typer.Option(help="Samples per problem.")] = 8,
    temperature: float = 0.7,
    top_p: float = 0.95,
    max_tokens: int = 512,
    limit: Annotated[int | None, typer.Option(help="Only the first problems.")] = None,
    batch_size: Annotated[int, typer.Option(help="Problems sampled at once.")] = 16,
    seed: int = 0,
    threads: Annotated[int | None, typer.Option(help="CPU threads for tensor work.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Write completions and verdicts to this JSONL file.")] = None,
) -> None:
    """Print avg@k and pass@k with 95 % Wilson intervals, according to the rule and, where it is known, to gold."""
    from cooper_rl.build import evaluate_model as evaluate  # noqa: PLC0415 - torch loads only when needed
    from cooper_rl.data.config import ProblemsConfig  # noqa: PLC0415
    from cooper_rl.engines.sampling import SamplingParams  # noqa: PLC0415

    data = record_from(ProblemsConfig, {"source": problems, "format": format, "limit": limit}, setting or [])
    by = rule_from(rule)
    params = record_from(SamplingParams, {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens})
    with progress("evaluating", 0) as advance:
        results = evaluate(
            model, data, params, k, seed, batch_size, lambda done, total: advance(done, total=total), threads, by
        )
    table = Table("labels", "measure", "value", "95 % interval")
    for labeller, result in results.items():
        for measure, estimate in {f"avg@{k}": result.avg_at_k, f"pass@{k}": result.pass_at[k]}.items():
            interval = f"{estimate.low:.4f} to {estimate.high:.4f}"
            table.add_row(labeller, measure, f"{estimate.mean:.4f}", interval)
    Console().print(table)
    _print_cut_off(results["rule"], max_tokens)
    if out is not None:
        lines = [
            json.dumps({"labels": labeller, **asdict(record)}, ensure_ascii=False)
            for labeller, result in results.items()
            for record in result.records
        ]
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        console.print(f"completions: {out}", highlight=False, soft_wrap=True)


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
