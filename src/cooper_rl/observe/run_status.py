"""Where a run stands: whether a process is training it, how it ended, and how long it still takes."""

import math
from dataclasses import dataclass
from typing import Literal

from cooper_rl.observe.run_record import RunRecord
from cooper_rl.persist.folder_lock import holder_of

PACE_STEPS = 20
"""Number of last steps whose mean gives the pace."""

State = Literal["running", "finished", "stopped", "interrupted"]


@dataclass(frozen=True)
class End:
    """How a run that is neither running nor finished came to its end."""

    died: bool
    """Whether an error or a kill ended it, and nobody's wish."""
    text: str
    """A sentence; empty for a run that is running, finished, or was interrupted after a checkpoint."""


@dataclass(frozen=True)
class RunStatus:
    """State and pace of a run."""

    state: State
    """`running`: a process holds the folder. `stopped`: by a watch rule. `interrupted`: by anything else, or killed."""
    detail: str
    """The process that trains, the rule that stopped the run, or where a resumed run would go on."""
    seconds_per_step: float | None
    """Mean of the last steps, evaluations included."""
    seconds_left: float | None
    """Estimate for a run that is running."""
    tokens_per_second: float | None
    """Sampled tokens by the time of the last steps."""


def status_of(run: RunRecord) -> RunStatus:
    """Decide from the folder's lock, the events and the last step."""
    state, detail = _state(run)
    recent = [(row, seconds) for row, seconds in zip(run.metrics, run.seconds, strict=True) if "time/step" in row]
    recent = recent[-PACE_STEPS:]
    spent = math.fsum(seconds for _, seconds in recent)
    pace = spent / len(recent) if recent else None
    tokens = math.fsum(row.get("rollout/tokens") or 0.0 for row, _ in recent)
    in_steps = math.fsum(row["time/step"] for row, _ in recent)
    left = pace * max(run.steps - run.step, 0) if pace is not None and state == "running" else None
    return RunStatus(state, detail, pace, left, tokens / in_steps if in_steps > 0 else None)


def end_of(run: RunRecord) -> End:
    """Of what a run ended before its last step: an error on record, a watch rule, or a kill, which leaves no word."""
    state, _ = _state(run)
    last = run.events[-1] if run.events else {}
    if state != "running" and last.get("action") == "died" and last["step"] == run.step:
        return End(True, f"The run died after step {run.step}: {last['message']}.")
    if state == "stopped":
        return End(last["action"] == "rollback", f"A watch rule on {last['metric']} stopped it at step {run.step}.")
    # An interrupted run writes a checkpoint of its last step.
    if state == "interrupted" and run.sessions and run.step not in run.checkpoints:
        text = f"The run ended after step {run.step} of {run.steps or '?'} without a word: killed, or out of memory."
        return End(True, text)
    return End(False, "")


def _state(run: RunRecord) -> tuple[State, str]:
    holder = holder_of(run.directory)
    if holder is not None:
        return "running", holder
    last = run.events[-1] if run.events else {}
    if last.get("action") in ("stop", "rollback") and "back_to" not in last and last["step"] == run.step:
        return "stopped", str(last["message"])
    if run.steps and run.step >= run.steps:
        return "finished", ""
    goes_on = f"--resume goes on after step {max(run.checkpoints, default=0)}"
    died = last.get("action") == "died" and last["step"] == run.step
    return "interrupted", f"died: {last['message']}; {goes_on}" if died else goes_on
