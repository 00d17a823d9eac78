"""The clients' requests, how they read the replies, and when they retry; without any network access."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenacity import RetryCallState, wait_exponential_jitter

from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.errors import InputError, MissingExtraError
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts import AnswerGroup

if TYPE_CHECKING:
    import httpx

POINTER = "reward_service.json"
"""The file that `save` writes into a trainer's checkpoint; it names the server's checkpoint."""
POLL_S = 20.0
"""Seconds that the server may wait for the end of an update before it replies."""
TRANSIENT = frozenset({425, 429, 502, 503, 504})
"""Statuses after which the same request may succeed. 425 says that another step is not committed yet."""


class RefusedError(InputError):
    """The service refused the request; the message is the service's and names the remedy."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnavailableError(ConnectionError):
    """The service could not be reached, or was busy, for as long as the client retried."""

    def __init__(self, message: str, status: int | None = None, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s


class ServiceFailedError(RuntimeError):
    """The service failed: a full disk (507), a failed update. Its log has more."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


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


def restore_call(folder: str | Path, run: str | None) -> Call:
    """Restore the checkpoint that `write_pointer` noted. Raises InputError if the folder has no such note."""
    path = Path(folder) / POINTER
    if not path.is_file():
        raise InputError(f"{path}: no such file; this checkpoint was not saved through a reward service")
    pointer = json.loads(path.read_text(encoding="utf-8"))
    return Call("POST", "/v1/restore", {"run": run, "step": pointer["step"], "history": pointer["history"]})


def write_pointer(folder: str | Path, url: str, checkpoint: dict[str, Any]) -> None:
    """Note the server's checkpoint in the trainer's."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    pointer = {"url": url, "step": checkpoint["step"], "history": checkpoint["history"]}
    (Path(folder) / POINTER).write_text(json.dumps(pointer, indent=1), encoding="utf-8")


def read_answer(response: "httpx.Response") -> dict[str, Any]:
    """The body of a successful reply. Raises RefusedError, ServiceFailedError or (to be retried) UnavailableError."""
    if response.is_success:
        return response.json()
    place = f"{response.request.method} {response.request.url.path}: {response.status_code}"
    message = f"{place}: {_message(response)}"
    if response.status_code in TRANSIENT:
        raise UnavailableError(message, response.status_code, _retry_after(response.headers))
    if response.status_code >= 500:
        raise ServiceFailedError(message, response.status_code)
    raise RefusedError(response.status_code, message)


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


@dataclass(frozen=True)
class Patience:
    """How long a request is retried; `early_s` is the limit after 425."""

    total_s: float
    early_s: float

    def is_over(self, state: RetryCallState) -> bool:
        """For `tenacity`: whether to stop trying."""
        error = state.outcome.exception() if state.outcome else None
        limit = self.early_s if getattr(error, "status", None) == 425 else self.total_s
        return (state.seconds_since_start or 0.0) >= limit


def wait_s(state: RetryCallState) -> float:
    """From 0.1 s to 5 s, or the server's `Retry-After` if that is longer."""
    error = state.outcome.exception() if state.outcome else None
    return max(wait_exponential_jitter(initial=0.1, max=5, jitter=0.1)(state), getattr(error, "wait_s", 0.0))


def import_httpx() -> Any:
    """httpx, which only the clients need."""
    try:
        import httpx  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("a client of the reward service needs httpx (the extra `serve`)") from error
    return httpx


def _message(response: "httpx.Response") -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, LookupError, TypeError):  # a proxy's own error page
        return response.text[:500]


def _retry_after(headers: Mapping[str, str]) -> float:
    seconds = headers.get("retry-after", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _numbers(row: list[float | None]) -> list[float]:
    return [math.nan if number is None else number for number in row]


def _metrics(metrics: dict[str, float | None]) -> Metrics:
    return {name: math.nan if value is None else value for name, value in metrics.items()}
