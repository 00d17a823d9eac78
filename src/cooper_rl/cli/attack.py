"""`cooper attack`: what a reward pays that is wrong, what a policy finds in it, and a repair of a reward model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cooper_rl.cli.console import counter, in_full, progress, say, show_table, stdout
from cooper_rl.errors import InputError
from cooper_rl.persist.durable import write_text

if TYPE_CHECKING:
    from cooper_rl.attack.attack import AttackResult
    from cooper_rl.attack.report import Table
    from cooper_rl.run_config import RunConfig

TABLE = "attack.md"
TRAINING = [("reward/mean", "reward"), ("rule/accuracy", "rule")]
REPAIRING = [("reward_model/loss", "loss"), ("reward_model/pair_accuracy_before", "pairs")]


def attack_reward(
    reward: Annotated[
        str,
        typer.Argument(
            help="rule, rule:KIND, a reward model's folder, package.module:function or file.py:function (Cooper's or "
            "TRL's signature), a YAML file with `judge:` or with the rewards of a run, http://host:port of "
            "`cooper serve`, or verifiers:ENVIRONMENT."
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
    from cooper_rl.attack.adapt import adapt_settings
    from cooper_rl.attack.attack import PLAIN, write_attack
    from cooper_rl.attack.repair import repair_settings
    from cooper_rl.attack.report import (
        example_table,
        finding_tables,
        markdown,
        pattern_table,
        repair_tables,
        summary_lines,
    )
    from cooper_rl.attack.rewards import attack_settings

    settings = [f"seed={seed}", *map(in_full, overrides or [])]
    config = attack_settings(reward, problems, settings, chats)
    if adapt is not None and out is None:
        raise InputError("--adapt trains a policy in a run's folder; say where with --out")
    trained = (
        None if adapt is None or out is None else adapt_settings(reward, adapt, out, policy, problems, settings, chats)
    )
    mended = None if repair is None else repair_settings(reward, repair, problems, settings)
    result = _attacked(reward, config, limit, out, accept_above, plain or PLAIN)
    lines, tables = summary_lines(result, fail_above), [example_table(result)]
    found, more, last = [], {}, result
    if trained is not None:
        findings = _adapted(trained, result)
        found = [completion for one in findings for completion in one.completions]
        tables += finding_tables(findings)
        more["found"] = {one.kind: one.count for one in findings}
    if not (found or any(result.accepts(one) and not one.right for one in result.answers)):
        mended = None  # there is nothing to repair
    if mended is not None and repair is not None:
        from cooper_rl.attack.repair import STEPS
        from cooper_rl.attack.repair import repair as train

        with progress("repair", repair_steps or STEPS, REPAIRING) as advance:
            repaired = train(mended, result, repair, repair_steps or STEPS, found, plain or PLAIN, advance)
        last = repaired.after
        lines += ["", *summary_lines(last, fail_above)]
        tables += repair_tables(repaired)
        more["repaired"] = last.summary()
    _show(lines, [*(pattern_table(result, right, whole=False) for right in (False, True)), *tables])
    if out is not None:
        write_attack(result, out, more)
        write_text(out / TABLE, markdown(lines, [*(pattern_table(result, right) for right in (False, True)), *tables]))
        say(f"answers and scores: {out}")
    if last.worst.accepted.mean > fail_above:
        sys.exit(3)


def _attacked(
    reward: str, config: "RunConfig", limit: int, out: Path | None, accept_above: float | None, plain: str
) -> "AttackResult":
    from cooper_rl.attack.attack import attack
    from cooper_rl.attack.rewards import open_reward, read_attack_problems

    problems = read_attack_problems(config)

    from cooper_rl.engines.local.device import set_threads  # torch loads only once the problems are read

    set_threads(config.threads)
    attacked = open_reward(reward, config)
    try:
        with counter("attack") as advance:
            return attack(attacked, problems, limit, config.seed, out, accept_above, plain, advance)
    finally:
        attacked.close()


def _adapted(config: "RunConfig", result: "AttackResult") -> list:
    from cooper_rl.attack.adapt import adapt

    with progress("adapt", config.steps, TRAINING) as advance:
        return adapt(config, result.accepts_above, advance)


def _show(lines: list[str], tables: list["Table"]) -> None:
    to = stdout()
    for heading, header, rows in tables:
        if rows:
            show_table(header, rows, to, heading)
    to.print("\n".join(lines), soft_wrap=True)
