"""Clients of `cooper serve`, with the verbs of `CooperReward`."""

import json
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception_type

from cooper_base.closing import Closing
from cooper_base.config.user_functions import EventLoop
from cooper_base.data.answer import AnswerGroup
from cooper_base.data.strict_json import check_values
from cooper_base.errors import InputError, MissingExtraError
from cooper_base.files.durable import read_fields, write_text
from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.scored import Scored, Updated
from cooper_verify.clients.address import check_address, check_key
from cooper_verify.clients.bounded import OversizedError, bounded_reply
from cooper_verify.clients.chat import retry_after_s, retry_wait

if TYPE_CHECKING:
    import httpx


logger = logging.getLogger(__name__)

TOKEN = "COOPER_TOKEN"
"""The environment variable with the service's token, where none is given."""
URL = "COOPER_URL"
"""The environment variable with the service's address, for adapters."""
POINTER = "reward_service.json"
"""The file that `save` writes into a trainer's checkpoint; it names the server's checkpoint."""
POLL_S = 20.0
"""Seconds that the server may wait for the end of an update before it replies: a proxy between the two would end a
longer silence, nginx by default after 60 seconds."""
REPORTED_EVERY_S = 10.0
"""Seconds between two lines of the log about a server that does not serve."""
LARGEST_REPLY = 128 << 20
"""Most bytes of a reply. The pairs of a step, which are texts, take most."""
TRANSIENT = frozenset({425, 429, 502, 503, 504})
"""Statuses after which the same request may succeed. 425 says that another step is not committed yet."""


class _Failure(Exception):
    def __init__(self, message: str, status: int | None = None, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.wait_s = status, wait_s


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


OF_PROBLEM = ("id", "question", "answer", "solution", "metadata", "rule")
"""What a reward reads of a problem; prompts are the trainer's own."""


def score_call(
    groups: Sequence[AnswerGroup], step: int | None, train: bool, run: str | None, partial: bool, commit: str | None
) -> Call:
    given = [
        {
            "id": group.id,
            "problem": {name: getattr(group.problem, name) for name in OF_PROBLEM},
            "completions": [answer.record() for answer in group.answers],
            "partial": partial,
        }
        for group in groups
    ]
    body = {"run": run, "step": step, "phase": "train" if train else "eval", "groups": given}
    return Call("POST", "/v1/score", body, {"commit": commit} if commit else None)


def restore_call(folder: str | Path, run: str | None) -> Call:
    """Restore the checkpoint that `save` noted. Raises InputError if the folder has no such note."""
    path = Path(folder) / POINTER
    if not path.is_file():
        raise InputError(f"{path}: no such file; this checkpoint was not saved through a reward service")
    pointer = read_fields(path, {"step": int, "history": str}, "resume from another checkpoint of the trainer")
    return Call("POST", "/v1/restore", {"run": run, "step": pointer["step"], "history": pointer["history"]})


def read_answer(response: "httpx.Response", body: bytes) -> dict[str, Any]:
    """A successful reply's body as a value. Raises RefusedError, ServiceFailedError or (to be retried)
    UnavailableError."""
    status, text = response.status_code, body.decode("utf-8", "replace")
    value: Any = None
    asked = f"{response.request.method} {response.request.url.path}"
    try:
        check_values(text)
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if response.is_success:
            raise ServiceFailedError(f"{asked}: the reply is no JSON of the service: {error}", status) from error
    if response.is_success:
        return value
    try:
        why = str(value["error"])
    except (LookupError, TypeError):  # a proxy's own error page
        why = text[:500]
    message = f"{asked}: {status}: {why}"
    if status in TRANSIENT:
        raise UnavailableError(message, status, retry_after_s(response.headers.get("retry-after", "")))
    raise (ServiceFailedError if status >= 500 else RefusedError)(message, status)


def read_scores(answer: dict[str, Any]) -> Scored:
    groups = answer["groups"]
    has_logits = bool(groups) and groups[0]["logits"] is not None
    return Scored(
        rewards=[[_number(number) for number in group["rewards"]] for group in groups],
        logits=[[_number(number) for number in group["logits"]] for group in groups] if has_logits else None,
        verdicts=[group["verdicts"] for group in groups],
        version=answer["version"],
        step=answer["step"],
        metrics={name: _number(value) for name, value in answer["metrics"].items()},
    )


def read_update(answer: dict[str, Any]) -> Updated:
    """The state of a step after the update. Raises ServiceFailedError unless the step is done."""
    if answer["state"] != "done":
        why = answer["error"] or "it was taken back by a restore"
        raise ServiceFailedError(f"step {answer['step']}: nothing was learned: {why}", 500)
    metrics = {name: _number(value) for name, value in answer["metrics"].items()}
    return Updated(answer["step"], answer["version"], [Pair(**pair) for pair in answer["pairs"]], metrics)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


ScoredT = TypeVar("ScoredT")
UpdatedT = TypeVar("UpdatedT")
InfoT = TypeVar("InfoT")
NoneT = TypeVar("NoneT")


class _Client(Generic[ScoredT, UpdatedT, InfoT, NoneT]):
    """The verbs of both clients. The first request opens the HTTP client."""

    def __init__(
        self, url: str, token: str | None = None, *, run: str | None = None, timeout_s: float = 600, early_s: float = 30
    ) -> None:
        """`token` is the server's, by default that in the environment variable COOPER_TOKEN. `run` names the training
        run: a server trains for one run and refuses others.

        A request may take `timeout_s` seconds, whatever the server sends meanwhile, and is retried for as long while
        the server is unreachable or busy (429, 502 to 504), and for `early_s` seconds while the previous step is not
        committed (425). The log says what it waits for. Raises InputError for an address or a token that no request
        can have.
        """
        token = token or os.environ.get(TOKEN)
        try:
            self.url, self.run = check_address(url.rstrip("/")), run
        except ValueError as error:
            raise InputError(f"the address of the reward service: {error}") from error
        self._token = check_key(token, f"the token ({TOKEN})") if token else None
        self._timeout_s, self._early_s = timeout_s, early_s
        self._opened: Any = None
        self._loop: EventLoop | None = None
        """That of a client whose caller has none."""
        self._reported_at = -math.inf

    def score(
        self,
        groups: Sequence[AnswerGroup],
        *,
        step: int | None = None,
        train: bool = True,
        partial: bool = False,
        commit: str | None = None,
    ) -> ScoredT:
        """Rewards of these groups; see `CooperReward.score`.

        With `partial`, other calls may add answers to these groups, and the commit closes them; every answer then
        needs an `id`. Without a `step` the server counts steps, and `commit` says when it trains: `count:1024`
        (answers) or `idle:5s` (seconds after the last answer).
        """
        return self._ask(score_call(groups, step, train, self.run, partial, commit), read_scores)

    def update(self, step: int, keep: Collection[str] | None = None, expected: int | None = None) -> UpdatedT:
        """Train on the groups that were scored in this step, once, and wait for it; see `CooperReward.update`.

        With `expected` the server refuses to train unless exactly that many groups were scored.
        """
        body = {"run": self.run, "keep": None if keep is None else sorted(keep), "expected": expected}
        # The server waits for the end of the update before it replies to the second call.
        wait_s = min(POLL_S, self._timeout_s / 2)
        state = Call("GET", f"/v1/steps/{step}", query={"wait_s": str(wait_s), "pairs": "true"})

        def read(answer: dict[str, Any]) -> Updated | Call:
            return state if "pairs" not in answer or answer["state"] == "updating" else read_update(answer)

        return self._ask(Call("POST", f"/v1/steps/{step}/commit", body), read)

    def save(self, folder: str | Path) -> NoneT:
        """Make the server write a checkpoint, and note in `folder` which one it is."""

        def note(checkpoint: dict[str, Any]) -> None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            pointer = {"url": self.url, "step": checkpoint["step"], "history": checkpoint["history"]}
            write_text(Path(folder) / POINTER, json.dumps(pointer, indent=1))

        return self._ask(Call("POST", "/v1/checkpoints", {"run": self.run}), note)

    def load(self, folder: str | Path) -> NoneT:
        """Restore the server's checkpoint that `save` noted in `folder`; a step under way is forgotten."""
        return self._ask(restore_call(folder, self.run), lambda answer: None)

    def info(self) -> InfoT:
        return self._ask(Call("GET", "/v1/info"), lambda answer: answer)

    def _ask(self, call: Call, read: Callable[[dict[str, Any]], Any]) -> Any:
        """What `read` makes of the answer; if that is another call, of the answer to that one."""
        raise NotImplementedError

    async def _send_once(self, call: Call) -> dict[str, Any]:
        try:
            import httpx  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtraError("a client of the reward service needs httpx (the extra `serve`)") from error
        if self._opened is None:
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            timeout = httpx.Timeout(self._timeout_s, connect=10.0)
            self._opened = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=timeout)
        sending = self._opened.stream(call.method, call.path, json=call.body, params=call.query)
        place = f"{call.method} {self.url}{call.path}"
        try:
            response, body = await bounded_reply(
                sending, lambda response: response.aiter_bytes(), self._timeout_s, LARGEST_REPLY
            )
        except TimeoutError as error:
            raise UnavailableError(f"{place}: no whole reply within {self._timeout_s:g} s") from error
        except OversizedError as error:
            raise ServiceFailedError(f"{place}: {error}; is this address that of `cooper serve`?") from error
        except httpx.TransportError as error:
            raise UnavailableError(f"{place}: {error or type(error).__name__}") from error
        return read_answer(response, body)

    def _retrying(self) -> dict[str, Any]:
        def is_over(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            limit = self._early_s if getattr(error, "status", None) == 425 else self._timeout_s
            return (state.seconds_since_start or 0) >= limit

        retry, wait = retry_if_exception_type(UnavailableError), retry_wait(0.1, 5)
        return {"stop": is_over, "wait": wait, "retry": retry, "before_sleep": self._report, "reraise": True}

    def _report(self, state: RetryCallState) -> None:
        """Log what a request waits for, every few seconds; the first time at once if the server cannot be reached."""
        error, waited = state.outcome and state.outcome.exception(), state.seconds_since_start or 0.0
        reached = getattr(error, "status", None) is not None
        if time.monotonic() - self._reported_at < REPORTED_EVERY_S or (reached and waited < REPORTED_EVERY_S):
            return
        self._reported_at = time.monotonic()
        remedy = "" if reached else f"; is `cooper serve` running there? The address is the client's url, or {URL}"
        logger.warning("%s; trying again for up to %.0f s%s", error, max(self._timeout_s - waited, 0), remedy)

    def __getstate__(self) -> dict[str, Any]:
        """Trainers send reward functions to other processes; connections are not sent."""
        return vars(self) | {"_opened": None, "_loop": None, "_reported_at": -math.inf}


class RewardClient(_Client[Scored, Updated, dict[str, Any], None], Closing):
    """A reward that learns in another process: `score`, `update`, `save` and `load` as `CooperReward` has them.

    A request without a reply is sent again, because the server does nothing twice. Raises `RefusedError` (an
    InputError) if the service refuses a request, `UnavailableError` if it cannot be reached, `ServiceFailedError` if
    it fails.
    """

    _process = 0
    """The one in which the event loop runs."""

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
        if self._opened is not None and self._loop is not None and self._process == os.getpid():
            self._loop.run(self._opened.aclose)
        self._opened = self._loop = None

    def _ask(self, call: Call, read: Callable[[dict[str, Any]], Any]) -> Any:
        call_or_reply: Any = call
        while isinstance(call_or_reply, Call):
            call_or_reply = read(Retrying(**self._retrying())(self._send, call_or_reply))
        return call_or_reply

    def _send(self, call: Call) -> dict[str, Any]:
        if self._loop is None or self._process != os.getpid():  # no thread goes on in a fork
            self._loop, self._opened, self._process = EventLoop(), None, os.getpid()
        return self._loop.run(lambda: self._send_once(call))


class AsyncRewardClient(_Client[Awaitable[Scored], Awaitable[Updated], Awaitable[dict[str, Any]], Awaitable[None]]):
    """`RewardClient` for asynchronous code: the same verbs, to be awaited."""

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def _ask(self, call: Call, read: Callable[[dict[str, Any]], Any]) -> Any:
        call_or_reply: Any = call
        while isinstance(call_or_reply, Call):
            call_or_reply = read(await AsyncRetrying(**self._retrying())(self._send_once, call_or_reply))
        return call_or_reply
