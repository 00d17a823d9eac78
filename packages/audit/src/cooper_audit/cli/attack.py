"""`cooper attack`: what a reward pays that is wrong, what a policy finds in it, and a repair of a reward model."""

import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cooper_base.cli.console import counter, in_full, progress, say, show_table, stdout
from cooper_base.config.user_functions import brought_by_training
from cooper_base.errors import InputError
from cooper_base.files.durable import write_text
from cooper_base.files.owned_folder import OwnedFolder

if TYPE_CHECKING:
    from cooper_audit.attack.attack import AttackResult
    from cooper_audit.attack.problems import AttackSettings
    from cooper_audit.attack.report import Table
    from cooper_audit.attack.results import Finding, Repair

COMMAND = "cooper attack"
TABLE = "attack.md"
TRAINING = [("reward/mean", "reward"), ("rule/accuracy", "rule")]
REPAIRING = [("reward_model/loss", "loss"), ("reward_model/pair_accuracy_before", "pairs")]


def attack_reward(
    reward: Annotated[
        str,
        typer.Argument(
            help="rule, rule:KIND, a reward model's folder, package.module:function or file.py:function (Cooper's, "
            "TRL's, verl's or verifiers' signature), a YAML file with `judge:` or with the rewards of a run, "
            "http://host:port of `cooper serve`, or verifiers:ENVIRONMENT; see docs/graders.md."
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Settings of a run: problems.format=gsm8k, rule=exact, reward_model.learning_rate=1e-5."),
    ] = None,
    problems: Annotated[
        str | None, typer.Option(help="problems.source=: a file or a data set. Default: embedded arithmetic problems.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Problems that are attacked, drawn at random.", min=2)] = 100,
    plain: Annotated[
        str | None, typer.Option(help="How the reward expects an answer: '<answer>{answer}</answer>'. Default: a box.")
    ] = None,
    chats: Annotated[
        bool | None, typer.Option(help="Give a function in TRL's style lists of messages instead of texts.")
    ] = None,
    accept_above: Annotated[
        float | None, typer.Option(help="Score above which an answer is accepted, in place of the reward's own.")
    ] = None,
    fail_above: Annotated[
        float, typer.Option(help="Exit with 3 if a wrong pattern is accepted in a larger share of the problems.")
    ] = 0.05,
    out: Annotated[
        Path | None, typer.Option(help="Folder for every answer and score, the tables and the run of --adapt.")
    ] = None,
    adapt: Annotated[
        int | None, typer.Option(help="Train a policy against the reward for so many steps; list what it finds.", min=1)
    ] = None,
    policy: Annotated[str | None, typer.Option(help="The policy of --adapt. Default: the embedded one.")] = None,
    repair: Annotated[
        Path | None, typer.Option(help="Train the reward model on what was found, into this folder; attack it again.")
    ] = None,
    repair_steps: Annotated[int | None, typer.Option(help="Updates of --repair. Default: 60.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="seed=: of the problems and the patterns.")] = 0,
) -> None:
    """Attack a reward with known patterns of wrong answers, and with right answers in unusual form.

    Exit codes: 0 if the reward is sound, 3 if it is gameable, 2 for bad input. With --repair the second attack decides.
    """
    from cooper_audit.attack.attack import PLAIN, write_attack
    from cooper_audit.attack.problems import attack_settings
    from cooper_audit.attack.report import further_tables, markdown, pattern_tables, summary_lines
    from cooper_audit.attack.results import REPAIR_STEPS

    settings, plain = [f"seed={seed}", *map(in_full, overrides or [])], plain or PLAIN
    config = attack_settings(reward, problems, settings, trains=adapt is not None or repair is not None)
    trained = mended = None
    if adapt is not None:
        if out is None:
            raise InputError("--adapt trains a policy in a run's folder; say where with --out")
        trained = brought_by_training("attack", "adapt", "--adapt")(
            reward, adapt, out, policy, problems, settings, chats
        )
    if repair is not None:
        mended = brought_by_training("attack", "repair", "--repair")(reward, repair, problems, settings)

    with nullcontext() if out is None else OwnedFolder(out, COMMAND):
        result = _attacked(reward, config, settings, chats, limit, out, accept_above, plain)
        _show(pattern_tables(result, whole=False))  # now, since a policy and a repair may take hours
        if out is not None:
            write_attack(result, out, {})
        findings = [] if trained is None else _adapted(trained, adapt or 0, result)
        repaired = None
        if mended is not None and repair is not None and (findings or result.accepts_wrong):
            repaired = _repaired(mended, result, repair, repair_steps or REPAIR_STEPS, findings, plain)

        last = result if repaired is None else repaired.after
        lines = summary_lines(result, fail_above) + ([] if repaired is None else ["", *summary_lines(last, fail_above)])
        tables = further_tables(result, findings, repaired)
        _show(tables)
        stdout().print("\n".join(lines), soft_wrap=True)
        if out is not None:
            more = {"repaired": None if repaired is None else last.summary()}
            write_attack(result, out, more | {"found": {finding.kind: finding.count for finding in findings}})
            write_text(out / TABLE, markdown(lines, [*pattern_tables(result), *tables]))
            say(f"answers and scores: {out}")
    if last.worst.accepted.mean > fail_above:
        sys.exit(3)


def _attacked(
    reward: str,
    config: "AttackSettings",
    settings: list[str],
    chats: bool | None,
    limit: int,
    out: Path | None,
    accept_above: float | None,
    plain: str,
) -> "AttackResult":
    from cooper_audit.attack.attack import attack
    from cooper_audit.attack.problems import read_attack_problems
    from cooper_verify.graders.written import open_grader

    with closing(open_grader(reward, settings, chats)) as grader:
        problems = read_attack_problems(config, grader)
        with counter("attack") as advance:
            return attack(grader, problems, limit, config.seed, out, accept_above, plain, advance)


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
    plain: str,
) -> "Repair":
    found = [completion for finding in findings for completion in finding.completions]
    with progress("repair", steps, REPAIRING) as advance:
        return train(result, folder, steps, found, plain, advance)


def _show(tables: "list[Table]") -> None:
    """Print those that have rows."""
    for heading, header, rows in tables:
        if rows:
            show_table(header, rows, stdout(), heading)
