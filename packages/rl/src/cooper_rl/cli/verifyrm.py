"""`cooper verifyrm`: makes and measures reward models, from raw problems to a benchmark."""

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from cooper_base.cli.console import Overrides, counter, names_and_settings, progress, record_from, say, show_table
from cooper_base.config.user_functions import added
from cooper_base.errors import InputError
from cooper_verify.cli.verify import RULE_HELP, GraderOption, grader_from, rule_from

if TYPE_CHECKING:
    from cooper_verify.grader import Grader
    from cooper_verify.graders.judge import JudgeConfig
    from cooper_verify.rules.rule import RuleConfig

WATCH = [
    *(("loss", "loss"), ("held_out_loss", "held-out loss")),
    *(("held_out_accuracy", "held-out accuracy"), ("held_out_roc_auc", "ROC-AUC")),
]

verifyrm = typer.Typer(help="Make and measure reward models: collect, label, train, bench.", no_args_is_help=True)

JudgeFile = Annotated[Path | None, typer.Option(help="YAML file with `judge:`, of kind chat or local: --grader FILE.")]


@verifyrm.command("collect")
def collect_completions(
    config: Annotated[Path, typer.Argument(help="A YAML file with models and datasets; see configs/.")],
    overrides: Overrides = None,
) -> None:
    """Sample completions from several models on several datasets. Run it again to continue after an interruption."""
    from cooper_base.config.checking import check_settings, read_settings
    from cooper_rl.verifyrm.config import CollectConfig

    settings = check_settings(CollectConfig, read_settings(config, overrides or []))

    from cooper_rl.verifyrm.collect import collect  # torch loads only once the settings fit

    with counter("collect") as advance:
        collected = collect(settings, advance)
    outcomes = sorted({outcome for count in collected.counts.values() for outcome in count})
    rows = [[*names, *(str(count[outcome]) for outcome in outcomes)] for names, count in collected.counts.items()]
    show_table(["model", "dataset", *outcomes], rows)
    say(f"completions: {settings.output} ({len(collected.rows)} rows)")
    _say_next(f"label {_quoted(settings.output)} --out labelled.jsonl")


@verifyrm.command()
def label(
    data: Annotated[
        Path, typer.Argument(help="Rows with question, reference_answer and completion, such as `collect` writes.")
    ],
    out: Annotated[Path, typer.Option(help="Parquet or JSONL file for the rows on which all agree.")],
    judge: JudgeFile = None,
    grader: GraderOption = None,
    workers: Annotated[int, typer.Option(help="Verifier processes.", min=1)] = 1,
    threads: Annotated[int | None, typer.Option(help="CPU threads for tensor work.", min=1)] = None,
    rule: Annotated[str | None, typer.Option(help=f"{RULE_HELP} Default: maths.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of the judge or the grader: judge.max_tokens=32.")
    ] = None,
) -> None:
    """Label completions with the rule and a judge, the rule and any grader, or the rule alone.

    Rows on which all agree are kept; the rest go to a second file.
    """
    from cooper_base.data.verdict import Verdict
    from cooper_rl.verifyrm.label import agreement_counts, confusion, disagreements_path, label_completions
    from cooper_verify.graders.judgement import JudgeVerdict

    with counter("label") as advance:
        config, by, beside = _labellers(judge, grader, rule, workers, overrides or [])
        labelled = label_completions(data, config, out, by, threads, advance, beside)
    tables = confusion(labelled)
    tables["all", ""] = sum(tables.values(), Counter())
    words = [*get_args(Verdict), *get_args(JudgeVerdict)]
    shown = sorted(tables["all", ""], key=lambda said: [words.index(w) if w in words else len(words) for w in said])
    who = ["rule", *(["judge"] if config is not None else []), *(["grader"] if beside is not None else [])]
    columns = [", ".join(f"{name} {word}" for name, word in zip(who, said, strict=True)) for said in shown]
    show_table(
        ["dataset", "model", *columns],
        [[*names, *(str(table[said]) for said in shown)] for names, table in tables.items()],
    )
    counts = agreement_counts(labelled)
    counted = ", ".join(f"{name} {count}" for name, count in counts.items())
    say(f"{counted}\nlabelled: {out}\nothers: {disagreements_path(out)}")
    for name in ("judge", "grader"):
        if counts.get(f"{name} not heard"):
            say(f"the {name}'s server failed on some rows; run the same command again to ask for them")
    _say_next(f"train {_quoted(out)} --model BASE --out {_quoted(out.with_name('reward_model'))}")


def _labellers(
    judge: Path | None, grader: str | None, rule: str | None, workers: int, settings: list[str]
) -> "tuple[JudgeConfig | None, RuleConfig, Grader | None]":
    """The judge, the rule and the grader that label. A judge's file is the judge, whichever option names it. The rule
    labels alone without judge and grader, and if it is the only grader."""
    from cooper_verify.graders.judge import read_judge
    from cooper_verify.graders.written import form_of, rule_settings_in, settings_of

    if judge is None and grader is None:
        return None, rule_from(rule or "maths", workers, settings=settings), None
    form = None if grader is None else form_of(grader)
    if judge is None and form == "judge":
        judge, grader = Path(str(grader)), None
    elif judge is None and rule is None and form == "rule":
        values = rule_settings_in(str(grader)).values["rule"]
        return None, rule_from(json.dumps(values), workers, settings=settings), None
    of_judge = [] if judge is None else settings if grader is None else settings_of(settings, "judge")
    config = None if judge is None else read_judge(judge, of_judge)
    by = rule_from(rule or "maths", workers)
    others = [setting for setting in settings if setting not in of_judge]
    return config, by, None if grader is None else grader_from(grader, others)


@verifyrm.command("train")
def train_reward_model(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA... [KEY=VALUE]...",
            help="JSONL, Parquet, CSV or TSV files with question, reference_answer, completion, label; and settings: "
            "see `cooper config --for verifyrm-train`.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the reward model. It must not exist yet.")],
    model: Annotated[
        str | None, typer.Option(help="model=: the base, a Hugging Face folder or name, causal or reward model.")
    ] = None,
) -> None:
    """Train a VerifyRM and keep the weights with the lowest held-out loss."""
    from cooper_base.data.labelled import read_labelled
    from cooper_rl.engines.model_folder import check_model_folder
    from cooper_rl.verifyrm.config import VerifyRMConfig

    names, settings = names_and_settings(data)
    config = record_from(VerifyRMConfig, {"model": model}, settings)
    if not names:
        raise InputError("name a file of labelled completions before the settings")
    rows = [row for path in names for row in read_labelled(path, config.reads_reference)]
    check_model_folder(config.model)  # after the rows, because it may have to ask the hub

    from cooper_rl.verifyrm.train import METRICS_FILE, train_verifyrm  # torch loads only now

    with progress("verifyrm", 0, WATCH) as advance:
        result = train_verifyrm(config, rows, out, advance)
    measured = {**result["held_out"], **result["calibration"]}
    show_table(["held-out measure", "value"], [(name, f"{value:.4g}") for name, value in measured.items()])
    say(f"reward model: {out}\nmetrics: {out / METRICS_FILE}")
    _say_next(f"bench ROWS --reward-model {_quoted(out)} --out bench", "next, on labelled rows it was not trained on")


def _say_next(command: str, about: str = "next") -> None:
    say(f"{about}: cooper verifyrm {command}")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


for name, entry in added("verifyrm").items():
    verifyrm.command(name)(entry.load())
