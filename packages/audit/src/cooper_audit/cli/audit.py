"""`cooper audit`: is a run of another trainer being hacked?"""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cooper_base.cli.console import counter, named_models, names_and_settings, say, show_table
from cooper_base.config.user_functions import brought_by_training
from cooper_base.errors import InputError
from cooper_verify.cli.verify import RuleOption, rule_from

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cooper_audit.rollouts.auditing import Audit
    from cooper_audit.rollouts.graders import Grade
    from cooper_verify.grader import Grader

HACKED, CANNOT_TELL = 3, 4
NEVER_THE_CHECK = (
    "A judge, and any other --grader, is a row of the table and never the check. Only a rule with references, or your "
    "labels, decides."
)
OURS = ("reward", "judge", "retrained")
"""Names of rows of the table that no reward model may have."""


def audit_rollouts(
    rollouts: Annotated[
        list[str],
        typer.Argument(
            metavar="ROLLOUTS... [KEY=VALUE]...",
            help="Files, or folders of files, in which a trainer has written its rollouts; and settings of --retrain: "
            "see `cooper config --for verifyrm-train`.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the result, a run that `cooper report` and `watch` read.")] = (
        Path("audit")
    ),
    form: Annotated[
        str | None,
        typer.Option("--format", help="The trainer's format, such as trl; by default it is seen from the rows."),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", help="FIELD=PATH for step, group, prompt, completion, reference, reward, advantage, cut, failed."
        ),
    ] = None,
    rule: RuleOption = "maths",
    references: Annotated[
        Path | None, typer.Option(help="A file of questions and answers, for rollouts without a reference.")
    ] = None,
    unread_wrong: Annotated[
        bool,
        typer.Option(
            "--unread-wrong", help="What the rule does not read is wrong: decides a verdict that waits for it."
        ),
    ] = False,
    labels: Annotated[Path | None, typer.Option(help="to_label.jsonl of an earlier audit, with your labels.")] = None,
    grader: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=GRADER for the table of graders: rule:KIND, a reward model's folder, file.py:function, a YAML "
            "file with `judge:` or the rewards of a run, http://host:port of `cooper serve`; may be repeated. See "
            "docs/graders.md."
        ),
    ] = None,
    reward_model: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER of a reward model, as with --grader.")
    ] = None,
    judge: Annotated[Path | None, typer.Option(help="YAML file with `judge:`: --grader judge=FILE.")] = None,
    retrain: Annotated[
        str | None,
        typer.Option(help="A model: a reward model is trained from it on the check's labels, for the table."),
    ] = None,
    until: Annotated[int | None, typer.Option(help="The last step of which --retrain learns.", min=0)] = None,
    tokenizer: Annotated[str | None, typer.Option(help="The policy's, for rollouts that are token ids.")] = None,
    sample: Annotated[str, typer.Option(help="Rows of a step that are checked, or `all`.")] = "256",
    fail_on: Annotated[
        str, typer.Option(help="`hacked` exits with code 3 where the reward is hacked or pays wrongly, `never` with 0.")
    ] = "hacked",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 4 if the audit cannot tell.")] = False,
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep no prompts and completions in the folder.")] = False,
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
) -> None:
    """Say whether a run of any trainer is being hacked, since when, and what its reward pays for; see docs/audit.md."""
    from cooper_audit.report.report import write_report
    from cooper_audit.rollouts.auditing import Options, audit, audit_folder
    from cooper_audit.rollouts.formats import chosen_format
    from cooper_audit.rollouts.labels import read_labels
    from cooper_audit.rollouts.references import read_references
    from cooper_audit.run.finding import ACCUSED

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
        unread_wrong,
    )
    names, settings = names_and_settings(rollouts)
    if (retrain is None) != (until is None) or (settings and retrain is None):
        raise InputError("--retrain BASE, --until STEP and settings such as learning_rate=1e-4 go together")
    if no_text and (grader or reward_model or judge or retrain):
        raise InputError("graders read texts, which --no-text does not keep; leave it out")
    graders = _graders(grader or [], reward_model or [], judge)
    retraining = None
    if retrain is not None:
        retraining = brought_by_training("audit", "retrain", "--retrain")(retrain, until, settings)
    decode = None if tokenizer is None else brought_by_training("audit", "decode", "--tokenizer")(tokenizer)
    with audit_folder(out) as folder:
        with counter("audit") as advance:
            result = audit([Path(name) for name in names], folder, options, choose, decode, advance)
        notes, shown = _show(result, graders, retraining)
    page = write_report(out, notes=notes, graders=shown, tell=partial(_say_the_rest, result.lines()))
    say(f"page: {page}")
    if result.finding.state in ACCUSED and fail_on == "hacked":
        sys.exit(HACKED)
    if result.finding.state == "unknown" and strict:
        sys.exit(CANNOT_TELL)


def _say_the_rest(said: "Sequence[str]", line: str) -> None:
    """What a line of the page has behind what was said before the graders were asked."""
    if rest := line.removeprefix(next((one for one in said if line.startswith(one)), "")).strip():
        say(rest)


def _graders(named: list[str], reward_models: list[str], judge: Path | None) -> "dict[str, Grader]":
    """The graders besides the reward, whose settings are checked here and whose models load when they are asked."""
    if not (named or reward_models or judge):
        return {}
    from cooper_verify.graders.apart import open_where_it_can_do_no_harm

    written = named_models(reward_models, taken=OURS)
    if judge is not None:
        written["judge"] = str(judge)
    for text in named:
        name, _, grader = text.partition("=")
        if not name.isidentifier() or not grader or name in written or name in {"reward", "retrained"}:
            raise InputError(
                f"--grader {text!r}: {name!r} is not a valid name, or is used already; write NAME=GRADER, such as "
                "exact=rule:exact"
            )
        written[name] = grader
    return {name: open_where_it_can_do_no_harm(grader) for name, grader in written.items()}


def _show(
    result: "Audit", asked: "dict[str, Grader]", retraining: "Callable[[Audit], Grade] | None"
) -> tuple[list[str], dict[str, Any]]:
    """Print the verdict and the table of graders; the notes and the graders of the page."""
    from cooper_audit.report.first_screen import grader_bars
    from cooper_audit.rollouts.graders import COLUMNS_SAY, HEADER, described, graded, windows_to_grade

    lines, windows = result.lines(), windows_to_grade(result)
    if asked and not result.checked:
        lines.append(NEVER_THE_CHECK)
    for line in lines:
        say(line)
    grades = graded(result, windows, asked) + ([] if retraining is None else [retraining(result)])
    table = [grade.cells() for grade in grades]
    show_table(HEADER, table)
    verdict = (result.finding.sentence, *result.finding.guards, *result.basis)  # which the page shows by itself
    notes = [line for line in lines if not line.endswith(verdict)] + described(windows)
    if retraining is not None:
        notes.append("What the retrained model pays for recorded answers is not what the policy would have become.")
    return ["", *notes], {"bars": grader_bars(grades), "header": HEADER, "rows": table, "columns": COLUMNS_SAY}
