"""`cooper verify`: verdicts of the rule verifier on a file of completions."""

from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.table import Table

from cooper_rl.cli.console import console, progress
from cooper_rl.cli.settings import RuleOption, rule_from


def verify(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet, CSV or TSV with answer and completion.")],
    out: Annotated[Path, typer.Option(help="JSONL file for the rows with their verdicts; continued if it exists.")],
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
    timeout: Annotated[float, typer.Option(help="Most seconds for one answer.", min=0.01)] = 5.0,
    rule: RuleOption = "maths",
) -> None:
    """Check final answers against reference answers with a rule. --workers and --timeout apply to the rule `maths`."""
    from cooper_rl.rules.rule import Verdict  # noqa: PLC0415
    from cooper_rl.rules.verdict_file import verify_file  # noqa: PLC0415 - `cooper --help` stays quick

    by = rule_from(rule, workers, timeout)
    with progress("verify", 0) as advance:
        counts = verify_file(data, out, workers, timeout, lambda done, total: advance(done, total=total), by)
    table = Table("verdict", "rows")
    for verdict in get_args(Verdict):
        table.add_row(verdict, str(counts.verdicts[verdict]))
    console.print(table)
    if counts.with_gold:
        shares = {"precision": counts.precision, "recall": counts.recall}
        shown = ", ".join(f"{name} {'–' if share is None else f'{share:.4f}'}" for name, share in shares.items())
        console.print(f"against gold, on {counts.with_gold} rows: {shown}", highlight=False)
    console.print(f"verdicts: {out}", highlight=False, soft_wrap=True)
