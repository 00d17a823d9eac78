"""`cooper attack`: what a reward pays that is wrong, what a policy finds in it, and a repair of a reward model."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cooper_base.cli.console import counter, in_full, print_result, progress, say, show_table, stdout
from cooper_base.config.user_functions import brought_by_training
from cooper_base.errors import InputError
from cooper_base.files.owned_file import write_owned
from cooper_base.files.owned_folder import OwnedFolder

if TYPE_CHECKING:
    from cooper_audit.attack.attack import AttackResult
    from cooper_audit.attack.edits import EditedPattern
    from cooper_audit.attack.problems import AttackSettings
    from cooper_audit.attack.report import Table
    from cooper_audit.attack.results import Finding, Repair
    from cooper_audit.attack.search import Search

EMBEDDED = "embedded"
PATTERNS = "patterns.txt"
TABLE = "attack.md"
COMPARED_PROBLEMS = 20
QUIET_S = 2.0
"""Seconds before progress is shown."""
EXIT_CODES = {"sound": 0, "gameable": 3, "raises exceptions": 4, "refuses right answers": 4}
REFUSED_REPAIR = 5
TRAINING = [("reward/mean", "reward"), ("rule/accuracy", "rule")]
REPAIRING = [("reward_model/loss", "loss"), ("reward_model/pair_accuracy_before", "pairs")]


class Further(NamedTuple):
    """What is tried besides the patterns that every attack has."""

    patterns: "list[EditedPattern]"
    rounds: int
    """Rounds of a search."""


def attack_reward(
    reward: Annotated[
        str | None,
        typer.Argument(
            help="rule, rule:KIND, a reward model's folder, package.module:function or file.py:function of any common "
            "signature, a YAML file with `judge:` or with the rewards of a run, http://host:port of `cooper serve`, or "
            "verifiers:ENVIRONMENT; see docs/graders.md. Without it, common ways of checking an answer are compared.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Settings of a run: problems.format=gsm8k, rule=exact, reward_model.learning_rate=1e-5."),
    ] = None,
    problems: Annotated[
        str | None, typer.Option(help="problems.source=: a file or a data set. Default: word problems of its own.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Problems that are attacked, drawn at random.", min=2)] = 60,
    plain: Annotated[
        str | None,
        typer.Option(help="The one form of answers, '<answer>{answer}</answer>'. Default: all that the reward reads."),
    ] = None,
    chats: Annotated[
        bool | None, typer.Option(help="Give a function lists of messages instead of texts. Default: what it takes.")
    ] = None,
    accept_above: Annotated[
        float | None, typer.Option(help="Score above which an answer is accepted, in place of the reward's own.")
    ] = None,
    fail_above: Annotated[
        float, typer.Option(help="Exit with 3 if a wrong pattern is accepted in a larger share of the problems.")
    ] = 0.05,
    table: Annotated[bool, typer.Option("--table", help="Show the tables of all patterns and of examples.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the result as Markdown.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for every answer and score, the tables and the run of --adapt.")
    ] = None,
    patterns: Annotated[
        Path | None, typer.Option(help="Further patterns, one a line, as --adapt finds and keeps them in --out.")
    ] = None,
    adapt: Annotated[
        int | None,
        typer.Option(help="Search for what no pattern knows, in rounds of 64 answers; steps of a --policy.", min=1),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="With --adapt, train this policy against the reward: `embedded`, or a model.")
    ] = None,
    repair: Annotated[
        Path | None, typer.Option(help="Train the reward model on what was found, into this folder; attack it again.")
    ] = None,
    repair_steps: Annotated[int | None, typer.Option(help="Updates of --repair. Default: 60.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="seed=: of the problems and the patterns.")] = 0,
) -> None:
    """Attack a reward with known patterns of wrong answers, and with right answers in unusual form.

    Exit codes: 0 if the reward is sound, 3 if it is gameable, 4 if it refuses more than a quarter of right answers or
    raises an exception on any, 2 for bad input and a reward that ends its process. With --repair the second attack
    decides; 5 if the repair is refused, because some wrong answers are accepted more often after it.
    """
    from cooper_audit.attack.attack import write_attack
    from cooper_audit.attack.edits import COMMAND, read_patterns
    from cooper_audit.attack.problems import attack_settings
    from cooper_audit.attack.report import as_record, markdown, pattern_tables
    from cooper_audit.attack.results import REPAIR_STEPS

    if reward is None:
        return _compare(fail_above)
    settings = [f"seed={seed}", *map(in_full, overrides or [])]
    config = attack_settings(reward, problems, settings, trains=policy is not None or repair is not None)
    further = Further([] if patterns is None else read_patterns(patterns), 0 if policy is not None else adapt or 0)
    trained = None if policy is None else _training(reward, adapt, out, policy, problems, settings, chats)
    mended = None
    if repair is not None:
        mended = brought_by_training("attack", "repair", "--repair")(reward, repair, problems, settings)
    with nullcontext() if out is None else OwnedFolder(out, COMMAND):
        result, signature, searched = _attacked(
            reward, config, settings, chats, limit, out, accept_above, plain, further
        )
        if table and not (as_json or as_markdown):
            _show(pattern_tables(result, whole=False))  # now, since a policy and a repair may take hours
        if out is not None:
            write_attack(result, out, {})
        findings = [] if trained is None else _adapted(trained, adapt or 0, result)
        repaired = None
        if mended is not None and repair is not None and (findings or result.accepts_wrong):
            repaired = _repaired(mended, result, repair, repair_steps or REPAIR_STEPS, findings)

        lines, tables = _words(result, fail_above, signature, searched, findings, repaired)
        changed = {"repaired": None if repaired is None else repaired.after.summary() | repaired.changes()}
        if as_json or as_markdown:
            record = json.dumps(as_record(result, fail_above, signature, searched) | changed, indent=2)
            print_result(record if as_json else markdown(lines, [*pattern_tables(result), *tables(True)]))
        else:
            _show(tables(table))
            print_result("\n".join(lines))
        if out is not None:
            write_attack(result, out, changed | {"found": {finding.kind: finding.count for finding in findings}})
            write_owned(out / TABLE, markdown(lines, [*pattern_tables(result), *tables(True)]), COMMAND)
            say(f"answers and scores: {out}")
        sys.exit(_exit_code(result, repaired, fail_above))


def _words(
    result: "AttackResult",
    fail_above: float,
    signature: str | None,
    searched: "Search | None",
    findings: "list[Finding]",
    repaired: "Repair | None",
) -> "tuple[list[str], Callable[[bool], list[Table]]]":
    """The lines of the verdicts, and the tables below what was tried, whole or for a screen."""
    from cooper_audit.attack.report import first_screen, further_tables, repair_lines

    lines = first_screen(result, fail_above, signature, searched)
    if repaired is not None:
        lines += ["", *repair_lines(repaired), "", *first_screen(repaired.after, fail_above)]
    return lines, partial(further_tables, result, findings, repaired)


def _exit_code(result: "AttackResult", repaired: "Repair | None", fail_above: float) -> int:
    if repaired is not None and repaired.risen:
        return REFUSED_REPAIR
    return EXIT_CODES[(result if repaired is None else repaired.after).verdict(fail_above)]


def _compare(fail_above: float) -> None:
    """Attack common ways of checking an answer, and show them side by side."""
    from cooper_audit.attack.common import COMPARED
    from cooper_audit.attack.problems import attack_settings
    from cooper_audit.attack.report import comparison_table

    results = {
        name: _attacked(reward, attack_settings(reward), [], None, COMPARED_PROBLEMS, None, None, None, Further([], 0))[
            0
        ]
        for name, reward in COMPARED.items()
    }
    _show([comparison_table(results, fail_above)])
    print_result("Yours: cooper attack my_rewards.py:function")


def _attacked(
    reward: str,
    config: "AttackSettings",
    settings: list[str],
    chats: bool | None,
    limit: int,
    out: Path | None,
    accept_above: float | None,
    plain: str | None,
    further: Further,
) -> "tuple[AttackResult, str | None, Search | None]":
    """The result, a name for the function's signature (such as "verl's compute_score"), and the search of --adapt."""
    from cooper_audit.attack.attack import attack, with_patterns
    from cooper_audit.attack.edits import write_patterns
    from cooper_audit.attack.problems import open_apart, read_attack_problems
    from cooper_audit.attack.search import search
    from cooper_verify.graders.apart import GraderApart

    with counter("attack") as advance, closing(open_apart(reward, settings, chats)) as grader:
        start = time.monotonic()

        def later(done: int, total: int) -> None:
            if time.monotonic() - start > QUIET_S:
                advance(done, total)

        problems = read_attack_problems(config, grader)
        result = attack(grader, problems, limit, config.seed, out, accept_above, plain, later)
        more = partial(with_patterns, grader, problems=problems, seed=config.seed, out=out, accept_above=accept_above)
        if further.patterns:
            result = more(result, patterns=further.patterns)
        found = search(grader, problems, result, further.rounds, config.seed) if further.rounds else None
        if found is not None and found.patterns:
            result = more(result, patterns=found.patterns, skip=found.problems)
            if out is not None:
                write_patterns(out / PATTERNS, found.patterns)
    return result, grader.signature if isinstance(grader, GraderApart) else None, found


def _training(
    reward: str,
    steps: int | None,
    out: Path | None,
    policy: str,
    problems: str | None,
    settings: list[str],
    chats: bool | None,
) -> "Callable[[float, Callable[..., None]], list[Finding]]":
    """The training of a policy, whose settings are checked now."""
    if steps is None:
        raise InputError("--policy is trained by --adapt; say for how many steps: --adapt 20")
    if out is None:
        raise InputError("--policy is trained in a run's folder; say where with --out")
    train = brought_by_training("attack", "adapt", "--policy")
    return train(reward, steps, out, None if policy == EMBEDDED else policy, problems, settings, chats)


def _adapted(
    train: "Callable[[float, Callable[..., None]], list[Finding]]", steps: int, result: "AttackResult"
) -> "list[Finding]":
    with progress("adapt", steps, TRAINING) as advance:
        return train(result.accepts_above, advance)


def _repaired(
    train: "Callable[..., Repair]",
    result: "AttackResult",
    folder: Path,
    steps: int,
    findings: "list[Finding]",
) -> "Repair":
    found = [completion for finding in findings for completion in finding.completions]
    with progress("repair", steps, REPAIRING) as advance:
        return train(result, folder, steps, found, result.plain, advance)


def _show(tables: "list[Table]") -> None:
    """Print those that have rows."""
    for heading, header, rows in tables:
        if rows:
            show_table(header, rows, stdout(), heading or None)
