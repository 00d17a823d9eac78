"""The run that `cooper eval` takes a model and its settings from."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.run_config import RunConfig


def run_of(model: str) -> Path | None:
    """The run that a model's folder lies in, such as `runs/x` for `runs/x/checkpoints/000060/policy`."""
    folder = Path(model)
    if not folder.is_dir():
        return None
    parents = folder.resolve().parents
    return next(
        (path for path in parents if (path / "config.yaml").is_file() and (path / "metrics.jsonl").exists()), None
    )


def checkpoint_policy(run: Path, config: "RunConfig", step: str | None) -> Path:
    """The policy of a checkpoint: of the step `step`, of the `best` one, or of the newest.

    Raises InputError if there is none.
    """
    from cooper_rl.persist.checkpoint import CheckpointStore  # noqa: PLC0415 - torch loads only when needed

    store = CheckpointStore(run / "checkpoints", config.checkpoint)
    folders = {int(folder.name): folder for folder in store.list()}
    if not folders:
        raise InputError(f"{run}: no checkpoint to evaluate")
    if step is None:
        return folders[max(folders)] / "policy"
    if step == "best":
        if (best := store.best()) is None:
            raise InputError(f"{run}: no checkpoint is marked as best; set checkpoint.keep_best, or name a --step")
        return best[0] / "policy"
    if not step.isdigit() or int(step) not in folders:
        raise InputError(f"{run}: no checkpoint of step {step}; there are {', '.join(map(str, folders))} and `best`")
    return folders[int(step)] / "policy"


def settings_of(config: "RunConfig") -> dict[str, Any]:
    """The run's own value of every option of `cooper eval`, by the option's name."""
    return {
        "rule": config.rule,
        "k": config.evaluation.k,
        "temperature": config.evaluation.temperature,
        "top_p": config.evaluation.top_p,
        "max_tokens": config.rollout.max_tokens,
        "batch_size": config.evaluation.batch_size,
        "seed": config.seed,
        "threads": config.threads,
    }


def problems_of(config: "RunConfig") -> dict[str, Any]:
    """The settings of the run's test problems; of one without, those of its training problems."""
    data = config.test_problems or config.problems
    return data.model_dump(mode="json")


def differences(given: Mapping[str, Any], of_run: Mapping[str, Any]) -> list[str]:
    """A line for each option that is set to something else than the run has."""
    return [
        f"--{name.replace('_', '-')} {_shown(value)} differs from the run's {_shown(of_run[name])}"
        for name, value in given.items()
        if value is not None and name in of_run and value != of_run[name]
    ]


def _shown(value: Any) -> str:
    dump = getattr(value, "model_dump", None)
    return str(dump(mode="json") if dump else value)
