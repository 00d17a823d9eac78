"""Clients of `cooper serve`, with the verbs of `CooperReward`."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

from tenacity import AsyncRetrying, Retrying, retry_if_exception_type

from cooper_rl.rollouts import AnswerGroup
from cooper_rl.service.calls import (
    POLL_S,
    Call,
    Patience,
    ServedScores,
    ServedUpdate,
    UnavailableError,
    commit_call,
    import_httpx,
    read_answer,
    read_scores,
    read_update,
    restore_call,
    score_call,
    state_call,
    wait_s,
    write_pointer,
)


class _Connection:
    """The service's address and how long a request is retried. The first request opens the HTTP client."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        run: str | None = None,
        timeout_s: float = 600.0,
        early_s: float = 30.0,
    ) -> None:
        """`token` is the server's. `run` names the training run: a server trains for one run and refuses others.

        A request is retried for `timeout_s` seconds while the server is unreachable or busy (429, 502 to 504), and for
        `early_s` seconds while the previous step is not committed (425).
        """
        self.url = url.rstrip("/")
        self.run = run
        self._token = token
        self._timeout_s = timeout_s
        self._patience = Patience(timeout_s, early_s)
        self._opened: Any = None

    def _options(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        timeout = import_httpx().Timeout(max(self._timeout_s, 2 * POLL_S), connect=10.0)
        return {"base_url": self.url, "headers": headers, "timeout": timeout}

    def _retry_options(self) -> dict[str, Any]:
        retry = retry_if_exception_type(UnavailableError)
        return {"stop": self._patience.is_over, "wait": wait_s, "retry": retry, "reraise": True}

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
    ) -> ServedScores:
        """Rewards of these groups; see `CooperReward.score`.

        With `partial`, other calls may add answers to these groups, and the commit closes them; every answer then
        needs an `id`. Without a `step` the server counts steps, and `commit` says when it trains: `count:1024`
        (answers) or `idle:5s` (seconds after the last answer).
        """
        return read_scores(self._send(score_call(groups, step, train, self.run, partial, commit)))

    def update(self, step: int, keep: Collection[str] | None = None, expected: int | None = None) -> ServedUpdate:
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
        return Retrying(**self._retry_options())(self._send_once, call)

    def _send_once(self, call: Call) -> dict[str, Any]:
        httpx = import_httpx()
        self._opened = self._opened or httpx.Client(**self._options())
        try:
            return read_answer(self._opened.request(call.method, call.path, json=call.body, params=call.query))
        except httpx.TransportError as error:
            raise UnavailableError(f"{call.method} {self.url}{call.path}: {error or type(error).__name__}") from error


class AsyncRewardClient(_Connection):
    """`RewardClient` for asynchronous code."""

    async def score(
        self,
        groups: Sequence[AnswerGroup],
        *,
        step: int | None = None,
        train: bool = True,
        partial: bool = False,
        commit: str | None = None,
    ) -> ServedScores:
        """See `RewardClient.score`."""
        return read_scores(await self._send(score_call(groups, step, train, self.run, partial, commit)))

    async def update(self, step: int, keep: Collection[str] | None = None, expected: int | None = None) -> ServedUpdate:
        """See `RewardClient.update`."""
        await self._send(commit_call(step, keep, expected, self.run))
        while (answer := await self._send(state_call(step)))["state"] == "updating":
            pass  # the server waits for the update before it replies
        return read_update(answer)

    async def save(self, folder: str | Path) -> None:
        """See `RewardClient.save`."""
        write_pointer(folder, self.url, await self._send(Call("POST", "/v1/checkpoints", {"run": self.run})))

    async def load(self, folder: str | Path) -> None:
        """See `RewardClient.load`."""
        await self._send(restore_call(folder, self.run))

    async def info(self) -> dict[str, Any]:
        """See `RewardClient.info`."""
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
        return await AsyncRetrying(**self._retry_options())(self._send_once, call)

    async def _send_once(self, call: Call) -> dict[str, Any]:
        httpx = import_httpx()
        self._opened = self._opened or httpx.AsyncClient(**self._options())
        try:
            response = await self._opened.request(call.method, call.path, json=call.body, params=call.query)
        except httpx.TransportError as error:
            raise UnavailableError(f"{call.method} {self.url}{call.path}: {error or type(error).__name__}") from error
        return read_answer(response)
