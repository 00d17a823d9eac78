"""`cooper verify`: verdicts of a rule on a file of answers; and the option that describes a rule."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from cooper_base.cli.console import counter, in_full, say, show_table
from cooper_base.config.base import mapping_of, merge
from cooper_base.config.checking import Settings, check_settings, with_overrides
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.errors import InputError
from cooper_verify.rules.rule import RuleConfig

RULE_HELP = (
    "The rule: maths, exact, choice, numeric, package.module:function, or settings such as "
    "'{kind: numeric, relative: 0.01}'."
)
RuleOption = Annotated[str, typer.Option(help=RULE_HELP)]


def verify(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet, CSV or TSV with answer and completion.")],
    out: Annotated[Path, typer.Option(help="JSONL file for the rows with their verdicts; continued if it exists.")],
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
    timeout: Annotated[float, typer.Option(help="Most seconds for one answer.", min=0.01)] = 5.0,
    rule: RuleOption = "maths",
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of the rule: rule=numeric rule.relative=0.01.")
    ] = None,
) -> None:
    """Check final answers against reference answers with a rule. --workers and --timeout apply to the rule `maths`."""
    from cooper_base.data.verdict import Verdict
    from cooper_verify.verdict_file import verify_file

    by = rule_from(rule, workers, timeout, overrides or [])
    with counter("verify") as advance:
        counts = verify_file(data, out, workers, advance, by)
    show_table(["verdict", "rows"], [(verdict, str(counts.verdicts[verdict])) for verdict in get_args(Verdict)])
    if counts.with_gold:
        shares = {"precision": counts.precision, "recall": counts.recall}
        shown = ", ".join(f"{name} {'–' if share is None else f'{share:.4f}'}" for name, share in shares.items())
        judged = " that the rule judges" if counts.verdicts["silent"] else ""
        say(f"against gold, on {counts.with_gold} rows{judged}: {shown}")
    say(f"verdicts: {out}")


def rule_from(text: str, workers: int = 1, timeout_s: float = 5.0, settings: Sequence[str] = ()) -> RuleConfig:
    """The rule that `--rule` names or describes, with `settings` such as "rule.relative=0.01" over it, or InputError.

    `workers` and `timeout_s` are defaults for `maths`.
    """
    from cooper_verify.rules.rule import OneRule

    try:
        values, _ = parse_yaml(text)
    except ValueError as error:
        raise InputError(f"--rule {text!r}: {error}") from error
    values = values if isinstance(values, dict) else {"kind": text.strip()}
    settings = [in_full(setting) for setting in settings]
    asked = with_overrides({}, settings)
    values = merge(values, mapping_of(asked.pop("rule", None)))
    if values.get("kind", "maths") == "maths":
        values = {"workers": workers, "timeout_s": timeout_s, **values}
    return check_settings(OneRule, Settings({"rule": values, **asked}, "--rule", overrides=settings)).rule
