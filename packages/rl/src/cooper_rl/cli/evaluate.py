"""`cooper eval`: accuracy of a model on a set of problems, alone or beside another model's."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cooper_base.cli.console import counter, in_full, names_and_settings, record_from, say, show_table, stdout, warn
from cooper_base.config.base import mapping_of, merge
from cooper_base.config.checking import Settings, check_settings, with_overrides
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.data.readers import check_name_of_jsonl
from cooper_base.errors import InputError
from cooper_base.files.owned_file import OwnedFile
from cooper_rl.policy.evaluation_config import EvalConfig
from cooper_verify.cli.verify import RULE_HELP, rule_from
from cooper_verify.problems.config import same_form, with_form_of

if TYPE_CHECKING:
    from cooper_rl.policy.accuracy import EvaluationResult
    from cooper_rl.run_config import RunConfig

COMMAND = "cooper eval"
VLLM_SHARE = 0.9
"""Share of a GPU's memory for the vLLM engines of an evaluation: nothing else uses the GPU."""
PROBLEMS_WITH_VLLM = 256
"""Problems sampled at once with vLLM, which divides them itself."""
SAMPLING = ("k", "temperature", "top_p", "max_tokens", "batch_size", "seed", "threads", "rule")


def evaluate_model(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [KEY=VALUE]...",
            help="A Hugging Face folder or name, and settings: see `cooper config --for eval`.",
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="A run: its policy is evaluated, and its start beside it.")] = None,
    step: Annotated[
        str | None, typer.Option(help="With --run: a checkpoint's step, or `best`. Newest by default.")
    ] = None,
    against: Annotated[str | None, typer.Option(help="Another model: the difference on the same problems.")] = None,
    problems: Annotated[
        str | None, typer.Option(help="problems.source=: a file, a dataset name, or `arithmetic`.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="problems.format=: a ready-made mapping, such as gsm8k.")] = None,
    rule: Annotated[str | None, typer.Option(help=f"rule=: {RULE_HELP}")] = None,
    k: Annotated[int | None, typer.Option(help="k=: samples per problem.")] = None,
    temperature: Annotated[
        float | None, typer.Option(help="temperature=: of sampling; 0 takes the most likely token.")
    ] = None,
    top_p: Annotated[float | None, typer.Option(help="top_p=: the share of probability that is sampled from.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="max_tokens=: the longest completion.")] = None,
    limit: Annotated[int | None, typer.Option(help="problems.limit=: only the first problems.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="batch_size=: problems sampled at once.")] = None,
    engine: Annotated[
        str, typer.Option(help="engine=: local, vllm, or settings such as '{kind: vllm, tensor_parallel: 2}'.")
    ] = "local",
    seed: Annotated[int | None, typer.Option(help="seed=: of sampling.")] = None,
    threads: Annotated[int | None, typer.Option(help="threads=: CPU threads for tensor work.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Write completions and verdicts to this JSONL file.")] = None,
) -> None:
    """Measure a model on problems: avg@k, maj@k and pass@k with 95 % intervals, by the rule and, where known, by gold.

    The policy of a run, `--run` or a model's folder that lies in one, is evaluated as the run evaluates itself: with
    its test problems, prompt, rule, sampling and lengths. A setting that differs wins, with a warning. Other problems
    (problems=FILE) are read, asked and judged like the run's, where their settings do not say otherwise.
    """
    names, settings = names_and_settings(given)
    subject = _subject_of(names, run, step, against)
    of_problems = _given(source=problems, format=format, limit=limit)
    options = _given(k=k, temperature=temperature, top_p=top_p, max_tokens=max_tokens, batch_size=batch_size)
    options |= _given(seed=seed, threads=threads, rule=rule_from(rule) if rule else None)
    chosen, drawn_by = _checked(subject, [in_full(setting) for setting in settings], of_problems, options, engine)
    if out is None:
        _evaluated(subject, drawn_by, chosen)
    else:
        check_name_of_jsonl(out)
        with OwnedFile(out, COMMAND, [Path(chosen.problems.source)]) as file:
            _write_completions(file, _evaluated(subject, drawn_by, chosen))


@dataclass(frozen=True)
class _Subject:
    """The subject of an evaluation: a model, perhaps beside another one, and the run that it belongs to, with its
    folder."""

    model: str
    against: str | None
    run: "RunConfig | None"
    folder: Path | None

    def usual_problems(self) -> dict[str, Any]:
        return (self.run.test_problems or self.run.problems).model_dump(mode="json") if self.run else {}


def _checked(
    subject: _Subject, settings: Sequence[str], of_problems: dict[str, Any], options: dict[str, Any], engine: str
) -> tuple[EvalConfig, Any]:
    """The settings of the evaluation and its engine, from the run, the options, and `settings` as key=value.

    Says how they differ from the run's. Raises InputError for settings that do not fit.
    """
    by_key = with_overrides({}, settings)
    drawn_by = engine_from(by_key.pop("engine", engine), models=1 if subject.against is None else 2)
    usual = _settings_of(subject.run) if subject.run else {}
    if drawn_by.kind == "vllm":
        usual |= {"batch_size": PROBLEMS_WITH_VLLM}
    of_problems = of_problems | mapping_of(by_key.get("problems"))
    values = merge({**usual, **options}, by_key) | {"problems": _problems_of(subject, of_problems)}
    chosen = check_settings(EvalConfig, Settings(values, "command line", overrides=settings))
    _say_how_the_run_evaluates(subject, usual, chosen, options, other_problems="source" in of_problems)
    return chosen, drawn_by


def _subject_of(names: Sequence[str], run: Path | None, step: str | None, against: str | None) -> _Subject:
    from cooper_rl.run_config import load_config

    if len(names) + (run is not None) != 1:
        raise InputError("give a model's folder or --run, not both")
    if step is not None and run is None:
        raise InputError("--step names a checkpoint of a run; give --run too")
    model = names[0] if names else ""
    folder = run or _run_of(model)
    config = None if folder is None else load_config(folder / "config.yaml")
    if run is not None and config is not None:
        model, against = str(_checkpoint_policy(run, config, step)), against or config.policy.model
    return _Subject(model, against, config, folder)


def _given(**options: Any) -> dict[str, Any]:
    """The options that are given on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def _problems_of(subject: _Subject, given: dict[str, Any]) -> dict[str, Any]:
    """The settings of the problems: the run's with those that are `given`, or those of other problems, read like the
    run's."""
    if "source" not in given and subject.run is None:
        raise InputError("problems: name the problems, problems=FILE; only a run's own policy has some by default")
    usual = subject.usual_problems()
    return with_form_of(usual, given)[0] if "source" in given else merge(usual, given)


def _say_how_the_run_evaluates(
    subject: _Subject, usual: dict[str, Any], chosen: EvalConfig, options: Collection[str], other_problems: bool
) -> None:
    """Warns of every setting that differs from the run's, written as it was given: as one of the `options`, or as
    key=value."""
    if subject.run is None:
        return
    values = usual | {"problems": subject.usual_problems()}
    before = check_settings(EvalConfig, Settings(values, str(subject.folder)))
    say(f"settings of the run {subject.folder}")
    if other_problems and (alike := same_form(before.problems, chosen.problems)[0]):
        say(f"{chosen.problems.source}: {', '.join(alike)} as in the run")
    for name in SAMPLING:
        if (now := getattr(chosen, name)) != (then := getattr(before, name)):
            given = f"--{name.replace('_', '-')} " if name in options else f"{name}="
            warn(f"{given}{_shown(now)} differs from the run's {_shown(then)}")
    if chosen.problems.prompt != before.problems.prompt:
        warn(f"the prompt differs from the run's {before.problems.prompt.model_dump(mode='json')}")
    if subject.run.rollout.environment:
        warn("the run has an environment, but this evaluation samples a single turn without tools")


def _evaluated(subject: _Subject, engine: Any, chosen: EvalConfig) -> "dict[str, EvaluationResult]":
    """What the model's completions are worth, printed, beside another model's if there is one."""
    results = _measure(subject.model, subject.run, engine, chosen, shows_prompt=True)
    _print_results(results, chosen.k, chosen.max_tokens)
    if subject.against is not None:
        others = _measure(subject.against, subject.run, engine, chosen, shows_prompt=False)
        _print_difference(subject.against, others, results)
    return results


def _measure(
    model: str, run: "RunConfig | None", engine: Any, chosen: EvalConfig, shows_prompt: bool
) -> "dict[str, EvaluationResult]":
    from cooper_rl.engines.config import SamplingParams
    from cooper_rl.policy.folder import FolderEvaluator  # torch loads only once the settings fit
    from cooper_rl.run.first_screen import describe_prompt

    sampling = run.rollout.model_dump(include=set(SamplingParams.model_fields)) if run else {}
    sampling |= {name: getattr(chosen, name) for name in ("temperature", "top_p", "max_tokens")}
    params = record_from(SamplingParams, sampling)
    of_run: dict[str, Any] = {}
    if run:
        of_run = {"autocast": run.policy.autocast, "max_rows": run.rollout.max_rows, "rules": run.rules}
    show = (lambda problem, prompt: say(describe_prompt(problem, prompt))) if shows_prompt else None
    sampled = chosen.problems, params, chosen.k, chosen.batch_size, chosen.seed
    with (
        counter("evaluating") as advance,
        FolderEvaluator(model, engine, chosen.rule, threads=chosen.threads, **of_run) as evaluator,
    ):
        return evaluator.evaluate(*sampled, advance, show)


def _write_completions(out: OwnedFile, results: "dict[str, EvaluationResult]") -> None:
    lines = [
        json.dumps({"labels": labeller, **asdict(record)}, ensure_ascii=False)
        for labeller, result in results.items()
        for record in result.records
    ]
    out.write("".join(f"{line}\n" for line in lines))
    say(f"completions: {out.path}")


def engine_from(given: str | dict[str, Any], models: int = 1) -> Any:
    """The engine that `--engine` names or describes, or that has these settings. Raises InputError, also for an engine
    that can only train.

    Each of the `models` gets its own engine, one after the other, because vLLM holds its memory until the process ends.
    """
    from cooper_rl.policy.evaluation_config import EvaluationEngine

    try:
        values = given if isinstance(given, dict) else parse_yaml(given)[0]
    except ValueError as error:
        raise InputError(f"--engine {given!r}: {error}") from error
    values = values if isinstance(values, dict) else {"kind": str(given).strip()}
    if values.get("kind") == "vllm":
        values = {"gpu_memory_utilization": VLLM_SHARE / models} | values
    engine: Any = check_settings(EvaluationEngine, Settings({"engine": values}, "--engine")).engine
    if not engine.evaluates_folders:
        raise InputError(f"--engine: kind {engine.kind} evaluates only inside its own runs; use local or vllm")
    return engine


def _print_results(results: "dict[str, EvaluationResult]", k: int, max_tokens: int) -> None:
    rows = [
        (labeller, f"{measure}@{k}", f"{estimate.mean:.4f}", f"{estimate.low:.4f} to {estimate.high:.4f}")
        for labeller, result in results.items()
        for measure, estimate in (("avg", result.avg_at_k), ("maj", result.maj_at_k), ("pass", result.pass_at[k]))
        if not isnan(estimate.mean)
    ]
    show_table(["labels", "measure", "value", "95 % interval"], rows, stdout())
    result, total = results["rule"], len(results["rule"].records)
    cut_off, share = round(result.truncated * total), f"{100 * result.truncated:.0f} %"
    if result.judged < result.problems:
        said = f"the rule judges {result.judged} of {result.problems} problems and is silent on the others, which count"
        stdout().print(f"{said} in none of its measures", highlight=False)
    stdout().print(f"cut off at {max_tokens} tokens: {cut_off} of {total} completions ({share})", highlight=False)
    if 2 * cut_off > total:
        warn(
            "most completions were cut off at the token limit, so few of them can be right; "
            "raise max_tokens, or check that the model ends its answers"
        )


def _print_difference(
    against: str, others: "dict[str, EvaluationResult]", results: "dict[str, EvaluationResult]"
) -> None:
    from cooper_rl.policy.accuracy import difference

    rows = []
    for labeller, result in results.items():
        gain, other = difference(others[labeller], result), others[labeller].avg_at_k
        if isnan(gain.mean):  # no problem was judged in both
            continue
        interval = f"{gain.low:+.4f} to {gain.high:+.4f}"
        rows.append((labeller, f"avg@{result.k}", f"{other.mean:.4f}", f"{gain.mean:+.4f}", interval))
    header = ["labels", "measure", against, "difference", "95 % interval"]
    show_table(header, rows, stdout(), title="on the same problems")


def _run_of(model: str) -> Path | None:
    """The run that a model's folder lies in, such as `runs/x` for `runs/x/checkpoints/000060/policy`."""
    parents = Path(model).resolve().parents if Path(model).is_dir() else ()
    return next(
        (parent for parent in parents if (parent / "config.yaml").is_file() and (parent / "metrics.jsonl").exists()),
        None,
    )


def _checkpoint_policy(run: Path, config: "RunConfig", step: str | None) -> Path:
    from cooper_rl.record.checkpoint import OF_RUN, CheckpointStore

    store = CheckpointStore(run / "checkpoints", config.checkpoint, OF_RUN)
    folders = {int(folder.name): folder for folder in store.list()}
    if not folders:
        raise InputError(f"{run}: no checkpoint to evaluate")
    if step == "best":
        if (best := store.best()) is None:
            raise InputError(f"{run}: no checkpoint is marked as best; set checkpoint.keep_best, or name a --step")
        return best[0] / "policy"
    number = str(max(folders)) if step is None else step
    if not number.isdigit() or int(number) not in folders:
        raise InputError(f"{run}: no checkpoint of step {step}; there are {', '.join(map(str, folders))} and `best`")
    return folders[int(number)] / "policy"


def _settings_of(config: "RunConfig") -> dict[str, Any]:
    evaluation = config.evaluation.model_dump(include={"k", "temperature", "top_p", "batch_size"})
    others = {"max_tokens": config.rollout.max_tokens, "seed": config.seed, "threads": config.threads}
    return evaluation | others | config.model_dump(mode="json", include={"rule"})


def _shown(value: Any) -> str:
    dump = getattr(value, "model_dump", None)
    return str(dump(mode="json") if dump else value)
