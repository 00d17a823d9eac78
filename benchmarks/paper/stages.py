"""The stages of a study. Each leaves a result on disk and runs in a process of its own, so its memory is freed."""

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper.published import ROWS_AT
from benchmarks.paper.study import MAX_CHARACTERS, TINY_CONTEXT, TINY_ROWS, Study

from cooper_base.cli.console import counter, progress, record_from
from cooper_base.data.labelled import labelled_row, read_labelled
from cooper_base.data.readers import DataRow
from cooper_base.files.durable import read_fields, write_text
from cooper_base.packages import set_log_level
from cooper_lab.arithmetic.pool import run_in_processes
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import InputError, LabelledCompletion, build_config
from cooper_rl.cli.evaluate import engine_from
from cooper_verify.problems.config import ProblemsConfig

PUBLIC_ROWS = "fiowhahf/VerifyRM_training_data"
LOG = "paper.log"


@dataclass(frozen=True)
class Stage:
    """One step of the work. Its result is a JSON file; without the file the stage has not finished."""

    name: str
    """`models`, `verifyrm`, `train/ARM` or `evaluate/ARM`."""
    study: Study
    settings: dict[str, Any]
    """Everything that the result depends on, as JSON values."""

    @property
    def kind(self) -> str:
        """The first part of the name; stages of a kind take about as long."""
        return self.name.partition("/")[0]

    @property
    def arm(self) -> str:
        """The second part."""
        return self.name.partition("/")[2]

    @property
    def result_path(self) -> Path:
        """The file that exists when the stage has finished."""
        return self.study.folder / "stages" / f"{self.name.replace('/', '-')}.json"

    @property
    def started_path(self) -> Path:
        """The file with the settings with which the stage has begun."""
        return self.result_path.with_suffix(".started.json")

    def result(self) -> dict[str, Any] | None:
        """The stage's result; None if it has not finished.

        Raises InputError for a result of other settings: one folder cannot hold two studies.
        """
        for path in (self.started_path, self.result_path):
            begun = _read(path, "settings")["settings"] if path.exists() else self.settings
            if changed := [name for name in self.settings | begun if begun.get(name) != self.settings.get(name)]:
                raise InputError(
                    f"{path}: begun with other settings ({', '.join(changed)}); choose another --output-dir, or delete "
                    "this file and what the stage made, to run it again"
                )
        return _read(self.result_path, "settings") if self.result_path.exists() else None


def _read(path: Path, *fields: str) -> dict[str, Any]:
    return read_fields(path, dict.fromkeys(fields, dict), "delete it to run its stage again")


def stages_of(study: Study, engine: str, verifyrm_settings: tuple[str, ...]) -> list[Stage]:
    """All stages in order: each arm is measured as soon as it is trained. Raises InputError for settings that misfit.

    `engine` draws the completions of the measurements.
    """
    engine_from(engine)
    stages = []
    if study.scale == "tiny" and study.data is not None:
        stages.append(Stage("models", study, {"context": TINY_CONTEXT}))
    if "base" in study.arms:  # first, because it needs only the model, and shows at once whether that can be loaded
        stages.append(_evaluation(study, "base", study.settings("rule")["policy"]["model"], engine))
    if study.needs_verifyrm:
        config = study.verifyrm_config(verifyrm_settings).model_dump(mode="json")
        rows = str(study.labelled or (PUBLIC_ROWS if study.scale == "full" else "embedded"))
        stages.append(Stage("verifyrm", study, {"rows": rows, "config": config}))
    for arm in study.trained:
        settings = study.settings(arm)
        build_config(settings)
        stages.append(Stage(f"train/{arm}", study, _as_json(settings)))
        stages.append(_evaluation(study, arm, str(Path(settings["output_dir"]) / arm), engine))
    return stages


def _evaluation(study: Study, arm: str, policy: str, engine: str) -> Stage:
    """`policy` is a model or, of a trained arm, the folder of its run."""
    how = {"k": study.k, "engine": engine, "sampling": study.sampling().model_dump(mode="json")}
    how["rule"] = study.config("rule").model_dump(mode="json")["rule"]
    return Stage(f"evaluate/{arm}", study, _as_json({"policy": policy, "sets": study.test_sets(), **how}))


def _as_json(settings: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(settings))


def run_stages(stages: list[Stage], on_done: Callable[[Stage, float], None]) -> bool:
    """Run the stages that have not finished. `on_done` gets a stage and its seconds. False if an interrupt ended a run
    early."""
    for stage in [stage for stage in stages if stage.result() is None]:
        [seconds] = run_in_processes(run_stage, [stage], 1, lambda: None)
        if seconds is None:
            return False
        on_done(stage, seconds)
    return True


def run_stage(stage: Stage) -> float | None:
    """Run a stage to its end and write its result; returns its seconds, or None where it was interrupted."""
    stage.study.folder.mkdir(parents=True, exist_ok=True)
    where = stage.study.folder / LOG
    logging.basicConfig(filename=where, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    set_log_level(logging.INFO)
    stage.result_path.parent.mkdir(parents=True, exist_ok=True)
    again = stage.started_path.exists()
    write_text(stage.started_path, json.dumps({"settings": stage.settings}) + "\n")
    start = time.monotonic()
    try:
        result = {"models": _models, "verifyrm": _verifyrm, "train": _train, "evaluate": _evaluate}[stage.kind](stage)
    except InputError:
        if not again:  # the user may repair it by other settings
            stage.started_path.unlink()
        raise
    if result is None:
        return None
    seconds = round(time.monotonic() - start, 1)
    result = {"settings": stage.settings, "seconds": seconds, "begun_again": again, **result}
    write_text(stage.result_path, json.dumps(result, indent=2) + "\n")
    return seconds


def _models(stage: Stage) -> dict[str, Any]:
    """The embedded policy with a longer context: its positions are rotary, so its weights serve any length."""
    folder = stage.study.folder / "models" / "tiny"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ASSETS / "policy", folder)
    path = folder / "config.json"
    described = json.loads(path.read_text(encoding="utf-8")) | {"max_position_embeddings": TINY_CONTEXT}
    write_text(path, json.dumps(described, indent=2))
    return {}


def _verifyrm(stage: Stage) -> dict[str, Any]:
    from cooper_rl import VerifyRMConfig, train_verifyrm

    rows = training_rows(stage.study)
    folder = Path(stage.study.verifyrm_folder)
    shutil.rmtree(folder, ignore_errors=True)
    with progress("verifyrm", 0, [("loss", "loss"), ("held_out_accuracy", "held-out accuracy")]) as advance:
        result = train_verifyrm(record_from(VerifyRMConfig, stage.settings["config"]), rows, folder, advance)
    return {"rows": result["rows"], "held_out": result["held_out"]}


def training_rows(study: Study) -> list[LabelledCompletion]:
    """VerifyRM's training rows that are not too long. Raises InputError, which says where the public ones are."""
    if study.labelled is not None:
        rows = read_labelled(study.labelled)
    elif study.scale == "tiny":
        rows = read_labelled(ASSETS / "labelled.jsonl")
    else:
        rows = list(_public_rows())
    most = MAX_CHARACTERS[study.scale]
    kept = [row for row in rows if len(row.question) + len(row.answer) + len(row.completion) <= most]
    if not kept:
        raise InputError(f"VerifyRM's {len(rows)} rows all have more than {most} characters")
    return kept[:TINY_ROWS] if study.scale == "tiny" else kept


def _public_rows() -> Iterator[LabelledCompletion]:
    try:
        from datasets import load_dataset

        rows = load_dataset(PUBLIC_ROWS, split="train")
    except (ImportError, OSError, ValueError) as error:
        raise InputError(
            f"VerifyRM's training rows cannot be read from the hub ({error}). They are {ROWS_AT}; download the file "
            "and name it with --labelled, or give rows of your own"
        ) from error
    for number, fields in enumerate(rows, start=1):
        yield labelled_row(DataRow(f"{PUBLIC_ROWS}:row {number}", dict(fields)))


def _train(stage: Stage) -> dict[str, Any] | None:
    from cooper_rl import CooperTrainer, read_metrics

    config = build_config(stage.settings)
    folder = Path(config.output_dir) / config.name
    watched = [("reward/mean", "reward"), ("rule/accuracy", "rule"), ("test/rule_avg", "MATH500")]
    with CooperTrainer.from_config(config, resume=folder.exists()) as trainer:
        with progress(stage.name, config.steps, watched) as advance:
            trainer.fit(on_step=advance)
        if trainer.interrupted:
            return None
        stopped = None if trainer.stopped_by is None else trainer.stopped_by.message
    return {"steps": read_metrics(folder, last=1)[-1]["step"], "stopped_by": stopped}


def _evaluate(stage: Stage) -> dict[str, Any]:
    from cooper_rl import SamplingParams
    from cooper_rl.policy.folder import FolderEvaluator

    study, given = stage.study, stage.settings
    folder = study.folder / "evaluations" / stage.arm
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [name for name in given["sets"] if not (folder / f"{name}.json").exists()]
    if waiting:
        policy = given["policy"] if stage.arm == "base" else str(last_policy(Path(given["policy"])))
        run, engine = study.config("rule"), engine_from(given["engine"])
        params, at_once = SamplingParams(**given["sampling"]), 256 if engine.kind == "vllm" else 32
        rows: dict[str, Any] = {
            "max_rows": run.rollout.max_rows or 256,
            "autocast": run.policy.autocast,
            "threads": run.threads,
            "rules": run.rules,
        }
        with FolderEvaluator(policy, engine, run.rule, **rows) as evaluator:
            for name in waiting:
                data = record_from(ProblemsConfig, given["sets"][name])
                with counter(f"{stage.name}, {name}") as advance:
                    result = evaluator.evaluate(data, params, given["k"], at_once, progress=advance)["rule"]
                lines = (json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in result.records)
                write_text(folder / f"{name}.jsonl", "".join(lines))
                measured = {"k": result.k, "problems": result.problems, "cut_off": result.truncated}
                write_text(folder / f"{name}.json", json.dumps(asdict(result.avg_at_k) | measured) + "\n")
    sets = {name: _read(folder / f"{name}.json") for name in given["sets"]}
    return {"sets": sets}


def last_policy(run: Path) -> Path:
    """The policy of a run's last checkpoint, merged where it was trained by an adapter."""
    if (run / "final" / "policy").is_dir():
        return run / "final" / "policy"
    steps = [int(path.name) for path in (run / "checkpoints").iterdir() if path.name.isdigit()]
    return run / "checkpoints" / f"{max(steps):06d}" / "policy"
