"""Clients of `cooper serve`, with the verbs of `CooperReward`."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception_type

from cooper_rl.clients.chat import retry_after_s, retry_wait
from cooper_rl.errors import InputError, MissingExtraError
from cooper_rl.rollouts import AnswerGroup
from cooper_rl.stage2.pairs import Pair
from cooper_rl.stage2.scored import Scored, Updated

if TYPE_CHECKING:
    import httpx


POINTER = "reward_service.json"
"""The file that `save` writes into a trainer's checkpoint; it names the server's checkpoint."""
POLL_S = 20.0
"""Seconds that the server may wait for the end of an update before it replies."""
TRANSIENT = frozenset({425, 429, 502, 503, 504})
"""Statuses after which the same request may succeed. 425 says that another step is not committed yet."""


class _Failure(Exception):
    def __init__(self, message: str, status: int | None = None, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s


class RefusedError(_Failure, InputError):
    """The service refused the request; the message is the service's and names the remedy."""


class UnavailableError(_Failure, ConnectionError):
    """The service could not be reached, or was busy, for as long as the client retried."""


class ServiceFailedError(_Failure, RuntimeError):
    """The service failed: a full disk (507), a failed update. Its log has more."""


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
    given = [
        {
            "id": one.id,
            "problem": asdict(one.problem),
            "completions": [asdict(answer) for answer in one.answers],
            "partial": partial,
        }
        for one in groups
    ]
    body = {"run": run, "step": step, "phase": "train" if train else "eval", "groups": given}
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
    status = response.status_code
    if response.is_success:
        return response.json()
    try:
        why = str(response.json()["error"])
    except (ValueError, LookupError, TypeError):  # a proxy's own error page
        why = response.text[:500]
    message = f"{response.request.method} {response.request.url.path}: {status}: {why}"
    if status in TRANSIENT:
        raise UnavailableError(message, status, retry_after_s(response.headers.get("retry-after", "")))
    raise (ServiceFailedError if status >= 500 else RefusedError)(message, status)


def read_scores(answer: dict[str, Any]) -> Scored:
    """The answer to `score_call`."""
    groups = answer["groups"]
    has_logits = bool(groups) and groups[0]["logits"] is not None
    return Scored(
        rewards=[[_number(one) for one in group["rewards"]] for group in groups],
        logits=[[_number(one) for one in group["logits"]] for group in groups] if has_logits else None,
        verdicts=[group["verdicts"] for group in groups],
        version=answer["version"],
        step=answer["step"],
        metrics={name: _number(value) for name, value in answer["metrics"].items()},
    )


def read_update(answer: dict[str, Any]) -> Updated:
    """The reply to `state_call` after the update. Raises ServiceFailedError unless the step is done."""
    if answer["state"] != "done":
        why = answer["error"] or "it was taken back by a restore"
        raise ServiceFailedError(f"step {answer['step']}: nothing was learned: {why}", 500)
    metrics = {name: _number(value) for name, value in answer["metrics"].items()}
    return Updated(answer["step"], answer["version"], [Pair(**pair) for pair in answer["pairs"]], metrics)


def import_httpx() -> Any:
    """httpx, which only the clients need."""
    try:
        import httpx  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("a client of the reward service needs httpx (the extra `serve`)") from error
    return httpx


def _number(value: float | None) -> float:
    return math.nan if value is None else value


class _Connection:
    """The service's address and how long a request is retried. The first request opens the HTTP client."""

    def __init__(
        self, url: str, token: str | None = None, *, run: str | None = None, timeout_s: float = 600, early_s: float = 30
    ) -> None:
        """`token` is the server's. `run` names the training run: a server trains for one run and refuses others.

        A request is retried for `timeout_s` seconds while the server is unreachable or busy (429, 502 to 504), and for
        `early_s` seconds while the previous step is not committed (425).
        """
        self.url = url.rstrip("/")
        self.run = run
        self._token = token
        self._timeout_s = timeout_s
        self._early_s = early_s
        self._opened: Any = None

    def _options(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        timeout = import_httpx().Timeout(max(self._timeout_s, 2 * POLL_S), connect=10.0)
        return {"base_url": self.url, "headers": headers, "timeout": timeout}

    def _retrying(self) -> dict[str, Any]:
        def is_over(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            limit = self._early_s if getattr(error, "status", None) == 425 else self._timeout_s
            return (state.seconds_since_start or 0) >= limit

        retry = retry_if_exception_type(UnavailableError)
        return {"stop": is_over, "wait": retry_wait(0.1, 5), "retry": retry, "reraise": True}

    def __getstate__(self) -> dict[str, Any]:
        """Trainers send reward functions to other processes; connections are not sent."""
        return vars(self) | {"_opened": None}


class RewardClient(_Connection):
    """A reward that learns in another process: `score`, `update`, `save` and `load` as `CooperReward` has them.

    A request without a reply is sent again, because the server does nothing twice. Raises `RefusedError` (an
    InputError) if the service refuses a request, `UnavailableError` if it cannot be reached, `ServiceFailedError` if
    it fails.
    """

    def score(
        self,
        groups: Sequence[AnswerGroup],
        *,
        step: int | None = None,
        train: bool = True,
        partial: bool = False,
        commit: str | None = None,
    ) -> Scored:
        """Rewards of these groups; see `CooperReward.score`.

        With `partial`, other calls may add answers to these groups, and the commit closes them; every answer then
        needs an `id`. Without a `step` the server counts steps, and `commit` says when it trains: `count:1024`
        (answers) or `idle:5s` (seconds after the last answer).
        """
        return read_scores(self._send(score_call(groups, step, train, self.run, partial, commit)))

    def update(self, step: int, keep: Collection[str] | None = None, expected: int | None = None) -> Updated:
        """Train on the step's groups, once, and wait for it; see `CooperReward.update`.

        With `expected` the server refuses to train unless exactly that many groups were scored.
        """
        self._send(commit_call(step, keep, expected, self.run))
        while (answer := self._send(state_call(step)))["state"] == "updating":
            pass  # the server waits for the update before it replies
        return read_update(answer)

    def save(self, folder: str | Path) -> None:
        """Make the server write a checkpoint, and note in `folder` which one it is."""
        write_pointer(folder, self.url, self._send(Call("POST", "/v1/checkpoints", {"run": self.run})))

    def load(self, folder: str | Path) -> None:
        """Restore the server's checkpoint that `save` noted in `folder`; a step under way is forgotten."""
        self._send(restore_call(folder, self.run))

    def info(self) -> dict[str, Any]:
        """The server's state and limits."""
        return self._send(Call("GET", "/v1/info"))

    @property
    def version(self) -> int:
        """Updates of the reward model so far, asked of the server."""
        return self.info()["version"]

    @property
    def last_step(self) -> int:
        """The last step that was updated, asked of the server."""
        return self.info()["last_step"]

    def close(self) -> None:
        """Close the connections; a later request opens them again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _send(self, call: Call) -> dict[str, Any]:
        return Retrying(**self._retrying())(self._send_once, call)

    def _send_once(self, call: Call) -> dict[str, Any]:
        httpx = import_httpx()
        self._opened = self._opened or httpx.Client(**self._options())
        try:
            return read_answer(self._opened.request(call.method, call.path, json=call.body, params=call.query))
        except httpx.TransportError as error:
            raise UnavailableError(f"{call.method} {self.url}{call.path}: {error or type(error).__name__}") from error


class AsyncRewardClient(_Connection):
    """`RewardClient` for asynchronous code: the same verbs, to be awaited."""

    async def score(
        self,
        groups: Sequence[AnswerGroup],
        *,
        step: int | None = None,
        train: bool = True,
        partial: bool = False,
        commit: str | None = None,
    ) -> Scored:
        return read_scores(await self._send(score_call(groups, step, train, self.run, partial, commit)))

    async def update(self, step: int, keep: Collection[str] | None = None, expected: int | None = None) -> Updated:
        await self._send(commit_call(step, keep, expected, self.run))
        while (answer := await self._send(state_call(step)))["state"] == "updating":
            pass  # the server waits for the update before it replies
        return read_update(answer)

    async def save(self, folder: str | Path) -> None:
        write_pointer(folder, self.url, await self._send(Call("POST", "/v1/checkpoints", {"run": self.run})))

    async def load(self, folder: str | Path) -> None:
        await self._send(restore_call(folder, self.run))

    async def info(self) -> dict[str, Any]:
        return await self._send(Call("GET", "/v1/info"))

    async def close(self) -> None:
        """Close the connections; a later request opens them again."""
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def _send(self, call: Call) -> dict[str, Any]:
        return await AsyncRetrying(**self._retrying())(self._send_once, call)

    async def _send_once(self, call: Call) -> dict[str, Any]:
        httpx = import_httpx()
        self._opened = self._opened or httpx.AsyncClient(**self._options())
        try:
            response = await self._opened.request(call.method, call.path, json=call.body, params=call.query)
        except httpx.TransportError as error:
            raise UnavailableError(f"{call.method} {self.url}{call.path}: {error or type(error).__name__}") from error
        return read_answer(response)
