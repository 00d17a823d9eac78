"""Tasks of lm-evaluation-harness (the extra `harness`) on a model's folder: its problems, its prompts, its metrics."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.model_folder import adapter_base
from cooper_rl.errors import InputError, MissingExtraError


@dataclass(frozen=True)
class HarnessResult:
    """One metric of one task; `error` is its standard error as the harness gives it, None where it gives none."""

    task: str
    metric: str
    shots: int | None
    value: float
    error: float | None


def check_tasks(tasks: Sequence[str]) -> Any:
    """The harness's manager of tasks. A task is a name of the harness, or the path of a YAML file of one's own.

    Raises MissingExtraError without the harness, and InputError for a task that it does not know.
    """
    if find_spec("lm_eval") is None:
        raise MissingExtraError(
            "--harness needs lm-evaluation-harness (the extra `harness`): pip install 'lm-eval[hf]'"
        )
    from lm_eval.tasks import TaskManager  # noqa: PLC0415  # pyright: ignore[reportMissingImports] - an extra

    manager = TaskManager()
    if unknown := [one for one in tasks if not os.path.isfile(one) and not manager.match_tasks([one])]:
        raise InputError(f"--harness: no task {unknown[0]!r} in lm-evaluation-harness; `lm_eval ls tasks` lists them")
    return manager


def harness_results(
    model: str, tasks: Sequence[str], manager: Any, limit: int | None, batch_size: int, device: str
) -> list[HarnessResult]:
    """Evaluate a model's folder, or an adapter's, or a hub name. With a chat template prompts are chats.

    `manager` is that of `check_tasks`; `limit` takes the first problems of every task. Raises what the harness raises.
    """
    from lm_eval import simple_evaluate  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    base = adapter_base(model)
    found: Any = simple_evaluate(
        "hf",
        {"pretrained": base or model, "tokenizer": model, **({"peft": model} if base else {})},
        list(tasks),
        task_manager=manager,
        limit=limit,
        batch_size=batch_size,
        device=device,
        apply_chat_template=bool(load_tokenizer(model).chat_template),
        log_samples=False,
    )
    rows = []
    for task, values in found["results"].items():
        for key, value in values.items():
            metric, _, kind = key.partition(",")
            if kind and isinstance(value, float) and not metric.endswith("_stderr"):
                name = metric if kind == "none" else f"{metric} ({kind})"
                error = values.get(f"{metric}_stderr,{kind}")
                known = float(error) if isinstance(error, float) else None
                rows.append(HarnessResult(task, name, found["n-shot"].get(task), float(value), known))
    return rows
