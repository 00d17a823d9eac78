"""`cooper audit`: is a run of another trainer being hacked?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cooper_rl.cli.console import RuleOption, counter, rule_from, say
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.audit.auditing import Audit

HACKED, CANNOT_TELL = 3, 4


def audit_rollouts(
    rollouts: Annotated[
        list[Path], typer.Argument(help="Files, or folders of files, in which a trainer has written its rollouts.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the result, a run that `cooper report` and `watch` read.")] = (
        Path("audit")
    ),
    form: Annotated[
        str | None, typer.Option("--format", help="The trainer's format; by default it is seen from the rows.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", help="FIELD=PATH for step, group, prompt, completion, reference, reward, advantage, cut."
        ),
    ] = None,
    rule: RuleOption = "maths",
    references: Annotated[
        Path | None, typer.Option(help="Questions and answers, where the rollouts have none.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="The file to_label.jsonl with your labels.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="The policy's, for rollouts that are token ids.")] = None,
    sample: Annotated[str, typer.Option(help="Rows of a step that are checked, or `all`.")] = "256",
    fail_on: Annotated[
        str, typer.Option(help="`hacked` exits with code 3 for a hacked run, `never` with 0.")
    ] = "hacked",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 4 if the audit cannot tell.")] = False,
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep no prompts and completions in the folder.")] = False,
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
) -> None:
    """Say whether a run of any trainer is being hacked, since when, and what its reward pays for; see docs/audit.md."""
    from cooper_rl.audit.auditing import Options, audit, read_labels
    from cooper_rl.audit.formats import chosen_format
    from cooper_rl.audit.references import read_references

    if fail_on not in ("hacked", "never"):
        raise InputError(f"--fail-on {fail_on!r}: write hacked or never")
    if sample != "all" and not (sample.isdecimal() and int(sample) > 0):
        raise InputError(f"--sample {sample!r}: write a number of rows, or all")
    choose = chosen_format(form, map_ or ())
    options = Options(
        rule_from(rule, workers),
        None if sample == "all" else int(sample),
        read_labels(labels) if labels else {},
        read_references(references) if references else None,
        not no_text,
    )
    with counter("audit") as advance:
        result = audit(rollouts, out, options, choose, _decoder(tokenizer), advance)
    _show(result)
    if result.finding.state in ("hacked", "recovered") and fail_on == "hacked":
        sys.exit(HACKED)
    if result.finding.state == "unknown" and strict:
        sys.exit(CANNOT_TELL)


def _decoder(tokenizer: str | None):
    if tokenizer is None:
        return None
    from cooper_rl.engines.model_folder import check_model_folder

    check_model_folder(tokenizer)
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(tokenizer)
    return lambda ids: loaded.decode(ids, skip_special_tokens=True)


def _show(result: "Audit") -> None:
    from cooper_rl.observe.report import write_report

    page = write_report(result.directory)
    for line in result.lines():
        say(line)
    say(f"page: {page}")
