"""The clients' requests and how they read the replies, without any network access."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.errors import InputError
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts.answers import AnswerGroup
from cooper_rl.service.retries import ServiceFailedError

POINTER = "reward_service.json"
"""The file that `save` writes into a trainer's checkpoint; it names the server's checkpoint."""
POLL_S = 20.0
"""Seconds that the server may wait for the end of an update before it replies."""


@dataclass(frozen=True)
class ServedScores:
    """The results of `CooperReward.score` (`Scored`) that are sent over HTTP.

    One list per group, one entry per answer; `logits` is None if the server has no reward model. NaN and infinity both
    arrive as NaN. `step` is the step that the groups belong to, None for an evaluation.
    """

    rewards: list[list[float]]
    logits: list[list[float]] | None
    verdicts: list[list[Verdict]]
    version: int
    step: int | None
    metrics: Metrics


@dataclass(frozen=True)
class ServedUpdate:
    """What `CooperReward.update` did (`Updated`): the step's pairs with the logits before and after."""

    step: int
    version: int
    pairs: list[Pair]
    metrics: Metrics


@dataclass(frozen=True)
class Call:
    """One HTTP request. It is safe to repeat: the server does nothing twice."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, str] | None = None


def score_call(
    groups: Sequence[AnswerGroup], step: int | None, train: bool, run: str | None, partial: bool, commit: str | None
) -> Call:
    """Score these groups."""
    body = {
        "run": run,
        "step": step,
        "phase": "train" if train else "eval",
        "groups": [
            {
                "id": group.id,
                "problem": asdict(group.problem),
                "completions": [asdict(answer) for answer in group.answers],
                "partial": partial,
            }
            for group in groups
        ],
    }
    return Call("POST", "/v1/score", body, {"commit": commit} if commit else None)


def commit_call(step: int, keep: Collection[str] | None, expected: int | None, run: str | None) -> Call:
    """Train on the step's groups."""
    body = {"run": run, "keep": None if keep is None else sorted(keep), "expected": expected}
    return Call("POST", f"/v1/steps/{step}/commit", body)


def state_call(step: int) -> Call:
    """Ask for the state of a commit; the server waits for the end of an update before it replies."""
    return Call("GET", f"/v1/steps/{step}", query={"wait_s": str(POLL_S), "pairs": "true"})


def read_scores(answer: dict[str, Any]) -> ServedScores:
    """The answer to `score_call`."""
    groups = answer["groups"]
    has_logits = bool(groups) and groups[0]["logits"] is not None
    return ServedScores(
        rewards=[_numbers(group["rewards"]) for group in groups],
        logits=[_numbers(group["logits"]) for group in groups] if has_logits else None,
        verdicts=[group["verdicts"] for group in groups],
        version=answer["version"],
        step=answer["step"],
        metrics=_metrics(answer["metrics"]),
    )


def read_update(answer: dict[str, Any]) -> ServedUpdate:
    """The reply to `state_call` after the update. Raises ServiceFailedError unless the step is done."""
    if answer["state"] != "done":
        why = answer["error"] or "it was taken back by a restore"
        raise ServiceFailedError(f"step {answer['step']}: nothing was learned: {why}", 500)
    pairs = [Pair(**pair) for pair in answer["pairs"]]
    return ServedUpdate(answer["step"], answer["version"], pairs, _metrics(answer["metrics"]))


def write_pointer(folder: str | Path, url: str, checkpoint: dict[str, Any]) -> None:
    """Note the server's checkpoint in the trainer's."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    pointer = {"url": url, "step": checkpoint["step"], "history": checkpoint["history"]}
    (Path(folder) / POINTER).write_text(json.dumps(pointer, indent=1), encoding="utf-8")


def restore_call(folder: str | Path, run: str | None) -> Call:
    """Restore the checkpoint that `write_pointer` noted. Raises InputError if the folder has no such note."""
    path = Path(folder) / POINTER
    if not path.is_file():
        raise InputError(f"{path}: no such file; this checkpoint was not saved through a reward service")
    pointer = json.loads(path.read_text(encoding="utf-8"))
    return Call("POST", "/v1/restore", {"run": run, "step": pointer["step"], "history": pointer["history"]})


def _numbers(row: list[float | None]) -> list[float]:
    return [math.nan if number is None else number for number in row]


def _metrics(metrics: dict[str, float | None]) -> Metrics:
    return {name: math.nan if value is None else value for name, value in metrics.items()}
