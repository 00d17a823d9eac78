"""Clients of `cooper serve`, with the verbs of `CooperReward`."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

from tenacity import AsyncRetrying, Retrying, retry_if_exception_type

from cooper_rl.rollouts.answers import AnswerGroup
from cooper_rl.service.calls import (
    POLL_S,
    Call,
    ServedScores,
    ServedUpdate,
    commit_call,
    read_scores,
    read_update,
    restore_call,
    score_call,
    state_call,
    write_pointer,
)
from cooper_rl.service.retries import Patience, UnavailableError, import_httpx, read_answer, wait_s


class _Connection:
    """Where the service is, and how long a request is tried. The HTTP client is opened at the first request."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        run: str | None = None,
        timeout_s: float = 600.0,
        early_s: float = 30.0,
    ) -> None:
        """`token` is the server's. `run` names the training run: a server trains for one run alone, and refuses others.

        A request is tried again for `timeout_s` seconds while the server is away, busy (429) or restarting (503), and
        for `early_s` while the step before it is not committed (425).
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
        """Trainers send reward functions to other processes; a connection stays where it is."""
        return vars(self) | {"_opened": None}


class RewardClient(_Connection):
    """A reward that learns in another process: `score`, `update`, `save` and `load` as `CooperReward` has them.

    A request whose answer is lost is sent again: the server does nothing twice. Raises `RefusedError` (an InputError)
    for what the service refuses, `UnavailableError` where it cannot be reached, `ServiceFailedError` where it failed.
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

        `partial` says that more answers of these groups may come in other calls: a group is then closed by the commit.
        Every answer needs an `id` where it is. Without a `step` the server counts them itself; `commit` says when it
        trains: `count:1024` (answers) or `idle:5s` (after the last).
        """
        return read_scores(self._send(score_call(groups, step, train, self.run, partial, commit)))

    def update(self, step: int, keep: Collection[str] | None = None, expected: int | None = None) -> ServedUpdate:
        """Train on the step's groups, once, and wait for it; see `CooperReward.update`.

        With `expected` the server refuses to train unless exactly so many groups were scored.
        """
        self._send(commit_call(step, keep, expected, self.run))
        while (answer := self._send(state_call(step)))["state"] == "updating":
            pass  # the server holds each question for a while
        return read_update(answer)

    def save(self, folder: str | Path) -> None:
        """Have the server keep a checkpoint of now, and note in `folder` which one it is."""
        write_pointer(folder, self.url, self._send(Call("POST", "/v1/checkpoints", {"run": self.run})))

    def load(self, folder: str | Path) -> None:
        """Take the server back to what `save` noted in `folder`; a step under way is forgotten."""
        self._send(restore_call(folder, self.run))

    def info(self) -> dict[str, Any]:
        """What the server is, its version, its step and its limits."""
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
            pass  # the server holds each question for a while
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
