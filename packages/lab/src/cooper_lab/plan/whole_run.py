"""Plans a whole run: its hours with evaluations, its disk space, and the assistant that it needs."""

from dataclasses import dataclass, replace

from cooper_lab.plan.devices import Device, Pace
from cooper_lab.plan.setup import Setup
from cooper_lab.plan.shapes import shape_of
from cooper_lab.plan.timing import generation, parts
from cooper_rl import InputError, RunConfig
from cooper_verify.problems.config import ProblemsConfig

PROBLEMS = {"gsm8k": 1319, "svamp": 1000, "math500": 500, "math": 5000, "olympiadbench": 675, "math_odyssey": 387}
"""Test problems of ready-made sets. Others are not opened by a plan: a set without a limit counts as `UNKNOWN`."""
UNKNOWN = 500
SAVED = 12
"""Bytes of a checkpoint for each trained parameter: the float32 weight and AdamW's two running means."""
RECORDED = 10
"""Bytes of a run's record for each token: its text, number and log-probability. Assumed."""


@dataclass(frozen=True)
class WholeRun:
    """The parts of a run besides its steps."""

    steps: int
    evaluations: int
    evaluated: int
    """Completions of one evaluation."""
    checkpoints: int
    """Most checkpoints on the disk at once, one being written among them."""
    assistant: str | None
    """The model of an assistant behind a server, which needs a device that the layout does not have."""


def whole_run_of(config: RunConfig) -> WholeRun:
    """The run that a configuration describes. Reads no data."""
    every, steps = config.evaluation.every, config.steps
    evaluations = 1 + -(-steps // every) if config.test_sets else 0  # one at the start, one at the end
    assistant = config.cooptimization.assistant if config.learns else None
    kept = config.checkpoint.keep + (config.checkpoint.keep_best is not None)
    return WholeRun(
        steps=steps,
        evaluations=evaluations,
        evaluated=config.evaluation.k * sum(map(_problems, config.test_sets.values())),
        checkpoints=kept + 1,
        assistant=getattr(assistant, "model", None),
    )


def hours(setup: Setup, run: WholeRun, device: Device, pace: Pace) -> tuple[float, float]:
    """Hours of all steps, and of all evaluations."""
    seconds = parts(setup, device, pace)
    step = seconds.lag_1 if setup.layout.lag else seconds.lag_0
    work = replace(setup.work, samples=run.evaluated)
    evaluation = generation(replace(setup, work=work), device, pace) if run.evaluated else 0.0
    return run.steps * step / 3600, run.evaluations * evaluation / 3600


def disk(setup: Setup, run: WholeRun) -> float:
    """Bytes of checkpoints and records."""
    trained = [model for model in (setup.policy, setup.reward_model) if model is not None and model.trains]
    saved = sum(SAVED * (model.shape.adapter_params if model.adapted else model.shape.params) for model in trained)
    return run.checkpoints * saved + RECORDED * run.steps * setup.work.tokens


def assistant_bytes(model: str) -> float | None:
    """Bytes of the assistant's weights in bfloat16; None for a model of unknown shape."""
    try:
        return 2.0 * shape_of(model).params
    except (InputError, OSError):
        return None


def _problems(data: ProblemsConfig) -> int:
    problem_count = PROBLEMS.get(data.format or "", UNKNOWN)
    return min(problem_count, data.limit or problem_count) if data.format else data.limit or UNKNOWN
