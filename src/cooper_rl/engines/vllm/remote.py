"""A `vllm serve` that is running already, by its address.

It draws through `/inference/v1/generate`, which takes and gives token ids and says which weights drew them (completions
of the OpenAI protocol do not), and takes weights through the routes of vLLM's development mode.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx
import torch

from cooper_rl.config.event_loop import EventLoop
from cooper_rl.engines.base import EngineLost
from cooper_rl.engines.vllm.config import OLDEST, VllmConfig, version_numbers
from cooper_rl.engines.vllm.requests import Drawn, Request
from cooper_rl.errors import InputError

LOOK_AGAIN_S = 1.0
"""Seconds between two questions whether a server is back."""


class RemoteEngine:
    """One server as an engine (`InferenceEngine`). Verbs raise EngineLost where it does not answer."""

    elsewhere = True
    restarts = 0

    def __init__(self, config: VllmConfig, backend: str):
        """Raises InputError for a server that does not answer, is too old, or was started with other settings."""
        assert config.url is not None
        self.url = config.url.rstrip("/")
        self._config, self._backend = config, backend
        self._http = httpx.Client(base_url=self.url, timeout=config.timeout_s)
        self._loop = EventLoop()
        try:
            served = self._get("/v1/models")["data"][0]
            version = self._get("/version")["version"]
        except (RuntimeError, LookupError) as error:
            raise InputError(
                f"url: no vLLM server answers at {self.url} ({error}); start one as in docs/vllm.md, or correct the url"
            ) from error
        self.context: int = served["max_model_len"]
        self.model: str = served["root"]
        """The folder or name that the server was started with."""
        _check_version(self.url, version)
        described = self._described()
        _check_settings(self.url, described, backend)
        self.dtype: torch.dtype = getattr(torch, described["model_config"]["dtype"].removeprefix("torch."))
        self._try_to_draw()
        self.workers: int = (
            described["parallel_config"]["world_size"] * described["parallel_config"]["data_parallel_size"]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteEngine, (self._config, self._backend)  # another process opens connections of its own

    def generate(self, requests: Sequence[Request]) -> list[Drawn]:
        """Draw every completion; the order is that of the requests."""
        return self._loop.run(lambda: self._generate(requests))

    def wait_until_back(self) -> None:
        """Wait for a server that is being started again. Raises EngineLost after `timeout_s`."""
        end = time.monotonic() + self._config.timeout_s
        while True:
            try:
                self._http.get("/health", timeout=LOOK_AGAIN_S).raise_for_status()
                return
            except httpx.HTTPError as error:
                if time.monotonic() > end:
                    raise EngineLost(f"{self.url} did not come back: {error}") from error
            time.sleep(LOOK_AGAIN_S)

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """See `Receiver`."""
        self._post("/init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        """See `Receiver`."""
        self._post("/start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """See `Receiver`."""
        self._post("/update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """See `Receiver`."""
        self._post("/finish_weight_update", {"weight_version": weight_version})

    def update_weight_version(self, new_version: str) -> None:
        """See `Receiver`."""
        self._post("/update_weight_version", {"new_version": new_version})

    def weight_versions(self) -> list[str]:
        """See `Receiver`."""
        return [self._get("/weight_info")["weight_version"]]

    def reset_prefix_cache(self) -> None:
        """See `Receiver`."""
        if not self._post("/reset_prefix_cache")["success"]:
            raise RuntimeError(f"{self.url} could not empty its prefix cache: somebody else is drawing completions")

    async def _generate(self, requests: Sequence[Request]) -> list[Drawn]:
        slots = asyncio.Semaphore(self._config.max_num_seqs)
        limits = httpx.Limits(max_connections=self._config.max_num_seqs)

        async def one(request: Request) -> Drawn:
            async with slots:
                body = {"token_ids": request.prompt, "sampling_params": request.params}
                return _read(_answer(await http.post("/inference/v1/generate", json=body)))

        async with httpx.AsyncClient(base_url=self.url, timeout=self._config.timeout_s, limits=limits) as http:
            try:
                async with asyncio.TaskGroup() as group:  # the first failure ends the others
                    tasks = [group.create_task(one(request)) for request in requests]
            except ExceptionGroup as errors:
                first = errors.exceptions[0]
                if isinstance(first, httpx.HTTPError):
                    raise EngineLost(f"{self.url} does not answer: {type(first).__name__} {first}") from first
                raise first from None
        return [task.result() for task in tasks]

    def _described(self) -> dict[str, Any]:
        try:
            return self._get("/server_info?config_format=json")["vllm_config"]
        except (RuntimeError, LookupError) as error:
            raise InputError(
                f"url: the server at {self.url} takes no weights ({error}); start it with VLLM_SERVER_DEV_MODE=1 in "
                "its environment, in a network that nobody else can reach"
            ) from error

    def _try_to_draw(self) -> None:
        try:
            self.generate([Request([0], {"max_tokens": 1, "logprobs": 0, "detokenize": False})])
        except RuntimeError as error:
            raise InputError(
                f"url: the server at {self.url} does not draw from token ids ({error}); start it with "
                "--enable-scale-out"
            ) from error

    def _get(self, path: str) -> Any:
        return self._call("GET", path)

    def _post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        try:
            return _answer(self._http.request(method, path, json=body))
        except httpx.HTTPError as error:
            raise EngineLost(f"{self.url} does not answer: {type(error).__name__} {error}") from error


def _answer(response: httpx.Response) -> Any:
    if response.is_error:
        raise RuntimeError(f"{response.request.url} answered {response.status_code}: {response.text[:500]}")
    return response.json()


def _read(answer: dict[str, Any]) -> Drawn:
    choice = answer["choices"][0]
    return Drawn(
        token_ids=choice["token_ids"],
        logprobs=[token["logprob"] for token in choice["logprobs"]["content"]],
        finish_reason=choice["finish_reason"],
        versions=[span["version"] for span in choice["weight_versions"] or ()],
    )


def _check_version(url: str, version: str) -> None:
    if version_numbers(version) < OLDEST:
        raise InputError(
            f"url: the server at {url} is vLLM {version}; its weight transfer needs {OLDEST[0]}.{OLDEST[1]}"
        )


def _check_settings(url: str, described: dict[str, Any], backend: str) -> None:
    """Raises InputError for settings of a server under which it would draw or report something else."""
    mode = described["model_config"]["logprobs_mode"]
    if mode != "processed_logprobs":
        raise InputError(
            f"url: the server at {url} reports {mode}, which are not at the sampling temperature; start it with "
            "--logprobs-mode processed_logprobs"
        )
    transfer = (described.get("weight_transfer_config") or {}).get("backend")
    if transfer != backend:
        found = f"takes weights over {transfer}" if transfer else "takes no weights"
        extension = " --worker-extension-cls cooper_rl.engines.vllm.transfer.Extension" if backend == "gloo" else ""
        raise InputError(
            f"url: the server at {url} {found}, this run sends them over {backend}; start it with "
            f'--weight-transfer-config \'{{"backend": "{backend}"}}\'{extension}, or set transfer'
        )
