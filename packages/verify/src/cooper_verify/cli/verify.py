"""`cooper verify`: verdicts of a grader on a file of answers; and the options that describe a rule and a grader."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from cooper_base.cli.console import counter, in_full, say, show_table
from cooper_base.config.base import mapping_of, merge
from cooper_base.config.checking import Settings, check_settings, with_overrides
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.errors import InputError
from cooper_verify.rules.rule import RuleConfig

if TYPE_CHECKING:
    from cooper_verify.grader import Grader
    from cooper_verify.verdict_file import VerdictCounts

RULE_HELP = (
    "The rule: maths, exact, choice, numeric, package.module:function, or settings such as "
    "'{kind: numeric, relative: 0.01}'."
)
RuleOption = Annotated[str, typer.Option(help=RULE_HELP)]
GRADER_HELP = (
    "Any grader: rule:KIND, a YAML file with `judge:` or with the rewards of a run, a reward model's folder, "
    "file.py:function or file.py:Class, http://host:port of `cooper serve`, or verifiers:ENVIRONMENT; "
    "see docs/graders.md."
)
GraderOption = Annotated[str | None, typer.Option(help=GRADER_HELP)]


def verify(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet, CSV or TSV with answer and completion.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="JSONL file for the rows with their verdicts, continued if it exists. Default: NAME.verdicts.jsonl in "
            "the working directory, for a file NAME.jsonl."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
    timeout: Annotated[float, typer.Option(help="Most seconds for one answer.", min=0.01)] = 5.0,
    rule: Annotated[str | None, typer.Option(help=f"{RULE_HELP} Default: maths.")] = None,
    grader: GraderOption = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Settings of the grader: rule=numeric rule.relative=0.01, judge.max_tokens=32."),
    ] = None,
) -> None:
    """Say of every answer in a file whether it is right, by a rule (--rule) or any grader (--grader).

    Rows that cannot be read are named, have no verdict, and make the exit code 2. --workers and --timeout apply to
    the rule `maths`.
    """
    from cooper_base.data.readers import listing_of
    from cooper_verify.verdict_file import faults_path, grade_file

    if rule is not None and grader is not None:
        raise InputError(f"--rule and --grader: one grader writes the verdicts; --rule {rule} is --grader rule:{rule}")
    settings, out = overrides or [], out or Path(f"{data.stem}.verdicts.jsonl")
    if grader is None:
        by = rule_from(rule or "maths", workers, timeout, settings).build()
    else:
        by = grader_from(grader, settings)
    with closing(by), counter("verify") as advance:
        counts = grade_file(data, out, by, workers, advance)
    _show(counts, "rule" if grader is None else "grader")
    if counts.faults:
        say(f"{by.name} raised an exception on {counts.faults} rows, which are unparsed: {faults_path(out)}")
    say(f"verdicts: {out}")
    if counts.unread:
        judged = counts.by_gold.total()
        listed = listing_of(counts.unread)
        raise InputError(f"{len(counts.unread)} rows have no verdict (the other {judged} have one):\n{listed}")


def _show(counts: "VerdictCounts", judge: str) -> None:
    """How often each verdict was given, and how often it agrees with gold."""
    from cooper_base.data.verdict import Verdict
    from cooper_verify.grader import NO_ANSWER

    show_table(["verdict", "rows"], [(verdict, str(counts.verdicts[verdict])) for verdict in get_args(Verdict)])
    if counts.with_gold:
        shares = {"precision": counts.precision, "recall": counts.recall}
        shown = ", ".join(f"{name} {'–' if share is None else f'{share:.4f}'}" for name, share in shares.items())
        judged = f" that the {judge} judges" if counts.verdicts["silent"] else ""
        say(f"against gold, on {counts.with_gold} rows{judged}: {shown}")
    if counts.scored:
        rest = counts.verdicts["silent"] - counts.scored
        say(f"silent, with a score that says neither right nor wrong: {counts.scored}; with no opinion: {rest}")
    if counts.why:
        say("no plain verdict: " + ", ".join(f"{why} {count}" for why, count in counts.why.most_common()))
    if counts.why[NO_ANSWER]:
        say("a server failed on some rows; run the same command again to ask for them")


def grader_from(written: str, settings: Sequence[str] = ()) -> "Grader":
    """The grader that `--grader` writes, with settings of its own over it. Raises InputError for any other setting."""
    from cooper_verify.graders.apart import open_where_it_can_do_no_harm
    from cooper_verify.graders.written import check_settings_taken

    settings = [in_full(setting) for setting in settings]
    check_settings_taken(written, settings)
    return open_where_it_can_do_no_harm(written, settings)


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
