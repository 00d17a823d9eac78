"""vLLM engines in this process (`OfflineEngine`) and behind a URL (`RemoteEngine`), and their requests."""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import json
import os
import socket
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import torch

from cooper_base.config.user_functions import EventLoop
from cooper_base.errors import EngineLost, InputError
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.numerics import allow_tf32
from cooper_rl.engines.model_folder import local_folder
from cooper_rl.engines.scale.vllm import OLDEST, VllmConfig, version_numbers
from cooper_verify.clients.bounded import OversizedError, bounded_reply

HEALTH_POLL_S = 1.0
LARGEST_REPLY = 2**30
"""Most bytes of a reply. A completion takes some 200 a token."""

EnginePart = Literal["weights", "kv_cache"]


@dataclass(frozen=True)
class CompletionRequest:
    prompt: list[int]
    params: dict[str, Any]  # vLLM's SamplingParams as plain data


@dataclass(frozen=True)
class DrawnCompletion:
    """A completion as vLLM reports it: token ids, `stop` or `length`, and the versions of the weights that drew it."""

    token_ids: Sequence[int]
    logprobs: Sequence[float]
    finish_reason: str | None
    versions: Sequence[str]


class InferenceEngine(ABC):
    """One vLLM engine, or several that are called as one and take the same weights. By default, one in another process
    that never sleeps, is not restarted from here and is sent whole weights."""

    dtype: torch.dtype  # of its weights
    workers: int  # processes that hold weights, over all engines
    context: int  # most tokens of a prompt and its completion together
    adapter_rank: int = 0  # of the adapter that it applies beside its first weights; 0 where it is sent whole weights
    elsewhere: bool = True  # whether it draws in another process, so that this one can do something else meanwhile
    restarts: int = 0  # engines that this side has started in place of lost ones

    @abstractmethod
    def generate(self, requests: list[CompletionRequest]) -> list[DrawnCompletion]:
        """Draw every completion, in the order of the requests. Raises EngineLost where the engine is gone."""

    def wait_until_back(self) -> None:  # noqa: B027 - need not be overridden
        """Wait for an engine that is being restarted. Raises EngineLost where it does not come back."""

    @abstractmethod
    def weight_versions(self) -> list[str]:
        """The version of the weights that each engine reports; `default` is what it started with."""

    @abstractmethod
    def reset_prefix_cache(self) -> None:
        """Drop keys and values that earlier weights computed."""

    def sleep(self) -> bool:
        """Release the memory of weights and cache if the engine shares a device. Returns whether it did."""
        return False

    def wake_up(self, part: EnginePart) -> None:  # noqa: B027 - need not be overridden
        """Reserve the memory of a part again, if the engine sleeps. After that only frozen weights are valid, which an
        engine with an `adapter_rank` has; all others must be sent again."""

    def load_adapter(self, files: Mapping[str, bytes]) -> None:
        """Apply this adapter (peft's files by name) from now on. Only for an `adapter_rank` above 0."""
        raise RuntimeError(f"a {type(self).__name__} is sent whole weights")

    @abstractmethod
    def control(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Call `update_weight_version` or one of the four verbs of vLLM's weight-transfer API, on every engine.

        `init_weight_transfer_engine` has every worker join the sender's group; its `init_info["rank_offset"]` is the
        rank of the first engine's first worker. `update_weights` returns when all weights have arrived.
        """


class OfflineEngine(InferenceEngine):
    """vLLM's offline class, `LLM`, in this process. Its weights are all its state: it may be killed and restarted."""

    elsewhere = False

    def __init__(self, model: str, config: VllmConfig, backend: str = "gloo", adapter_rank: int = 0):
        # One process an engine: the process that vLLM would start survives a parent that is killed.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        from vllm import LLM, SamplingParams  # noqa: PLC0415 - starts vLLM
        from vllm.config import WeightTransferConfig  # noqa: PLC0415
        from vllm.lora.request import LoRARequest  # noqa: PLC0415

        from cooper_rl.engines.scale.vllm.weight_sync import EXTENSION  # noqa: PLC0415

        self._params: Any = SamplingParams
        self._request: Any = LoRARequest
        self._adapter: Any = None
        self.adapter_rank = adapter_rank
        adapters: Any = {"enable_lora": True, "max_loras": 1, "max_lora_rank": adapter_rank} if adapter_rank else {}
        on_cpu = not torch.cuda.is_available()
        kv_cache_gib = config.kv_cache_gib or (1.0 if on_cpu else None)
        set_num_threads = torch.set_num_threads
        self._llm = LLM(
            model,
            tensor_parallel_size=config.tensor_parallel,
            # Under Ray vLLM would ask Ray for devices, beside those that this process has.
            distributed_executor_backend="mp" if config.tensor_parallel > 1 else None,
            dtype=("float32" if on_cpu else "bfloat16") if config.dtype == "auto" else config.dtype,
            max_num_seqs=config.rows,
            max_model_len=config.max_model_len,
            gpu_memory_utilization=config.gpu_memory_utilization,
            kv_cache_memory_bytes=int(kv_cache_gib * 2**30) if kv_cache_gib else None,
            # On a CPU there are no graphs to capture, and compiling would take longer than it saves in most runs.
            enforce_eager=on_cpu,
            enable_prefix_caching=True,
            # Where a prompt is computed in two parts, vLLM sets a request's generator back, and a CPU's cannot be.
            enable_chunked_prefill=False if on_cpu else None,
            generation_config="vllm",
            logprobs_mode="processed_logprobs",
            trust_remote_code=False,
            disable_log_stats=True,
            enable_sleep_mode=bool(config.sleep),
            weight_transfer_config=WeightTransferConfig(backend=backend),
            worker_extension_cls=EXTENSION,
            **adapters,
        )
        torch.set_num_threads = set_num_threads  # on a CPU vLLM replaces it by a function that does nothing
        if not on_cpu:
            allow_tf32(torch.device("cuda"))  # vLLM's workers disable it
        self._sleeps, self._asleep = bool(config.sleep), set[str]()
        self.workers = config.tensor_parallel
        self.context: int = self._llm.model_config.max_model_len
        self.dtype: torch.dtype = self._llm.model_config.dtype

    def generate(self, requests: list[CompletionRequest]) -> list[DrawnCompletion]:
        prompts: Any = [{"prompt_token_ids": request.prompt} for request in requests]
        params = [self._params(**request.params, flat_logprobs=True) for request in requests]
        how: Any = {"use_tqdm": False, "lora_request": self._adapter}
        found: Any = [output.outputs[0] for output in self._llm.generate(prompts, params, **how)]
        versions = [[span.version for span in output.weight_versions or ()] for output in found]
        return [
            DrawnCompletion(list(output.token_ids), output.logprobs.logprobs, output.finish_reason, its_own)
            for output, its_own in zip(found, versions, strict=True)
        ]

    def control(self, verb: str, arguments: Mapping[str, Any]) -> None:
        takes_record = verb in ("init_weight_transfer_engine", "update_weights")
        getattr(self._llm, verb)(*([arguments] if takes_record else arguments.values()))

    def weight_versions(self) -> list[str]:
        return [self._llm.get_weight_version()]

    def reset_prefix_cache(self) -> None:
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM could not empty its prefix cache: a completion is still being drawn")

    def load_adapter(self, files: Mapping[str, bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:  # from which vLLM reads it once
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            self._adapter = self._request("policy", 1, folder)
            self._llm.llm_engine.add_lora(self._request("policy", 1, folder, load_inplace=True))

    def sleep(self) -> bool:
        if self._sleeps and not self._asleep:
            # At level 1 vLLM keeps its weights in the machine's memory, which is for those that are not sent anew.
            self._llm.sleep(level=1 if self.adapter_rank else 2)
            self._asleep = {"weights", "kv_cache"}
        return self._sleeps

    def wake_up(self, part: EnginePart) -> None:
        if part in self._asleep:
            self._llm.wake_up(tags=[part])
            self._asleep.remove(part)


class RemoteEngine(InferenceEngine):
    """A `vllm serve` that is running already, by its address. Calls raise EngineLost where it does not answer.

    It draws through `/inference/v1/generate`, which takes and gives token ids and names the weights that drew them
    (completions of the OpenAI protocol do not), and takes weights through the routes of vLLM's development mode.
    """

    def __init__(self, config: VllmConfig, backend: str):
        """Raises InputError for a server that does not answer, is too old, or was started with other settings."""
        assert config.url is not None
        self.url = url = config.url.rstrip("/")
        self._config, self._backend = config, backend
        self._loop = EventLoop()
        with _refused(f"no vLLM server answers at {url}", "start one as in docs/vllm.md, or correct the url"):
            served = self._call("GET", "/v1/models")["data"][0]
            version = self._call("GET", "/version")["version"]
        self.context: int = served["max_model_len"]
        self.model: str = served["root"]  # the folder or name that it was started with
        if version_numbers(version) < OLDEST:
            raise InputError(
                f"url: the server at {url} is vLLM {version}; its weight transfer needs {OLDEST[0]}.{OLDEST[1]}"
            )
        remedy = "start it with VLLM_SERVER_DEV_MODE=1 in its environment, in a network that nobody else can reach"
        with _refused(f"the server at {url} takes no weights", remedy):
            described = self._call("GET", "/server_info?config_format=json")["vllm_config"]
        _check_settings(url, described, backend)
        self.dtype: torch.dtype = getattr(torch, described["model_config"]["dtype"].removeprefix("torch."))
        with _refused(f"the server at {url} does not draw from token ids", "start it with --enable-scale-out"):
            self.generate([CompletionRequest([0], {"max_tokens": 1, "logprobs": 0, "detokenize": False})])
        parallel = described["parallel_config"]
        self.workers: int = parallel["world_size"] * parallel["data_parallel_size"]

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteEngine, (self._config, self._backend)  # another process opens connections of its own

    def check_serves(self, model: str) -> None:
        """Raises InputError where the server has another model: one with other tokens would not fail at all."""
        if local_folder(model) is not None and Path(self.model).is_dir():
            own, served = (load_tokenizer(path).get_vocab() for path in (model, self.model))
            if own != served:
                raise InputError(f"url: {self.url} serves {self.model}, whose tokens are others than those of {model}")
        elif local_folder(model) is None and self.model != model:
            raise InputError(f"url: {self.url} serves {self.model}, and this run's policy is {model}")

    def generate(self, requests: list[CompletionRequest]) -> list[DrawnCompletion]:
        return self._loop.run(lambda: self._generate(requests))

    async def _generate(self, requests: list[CompletionRequest]) -> list[DrawnCompletion]:
        slots = asyncio.Semaphore(self._config.rows)
        limits = httpx.Limits(max_connections=self._config.rows)

        async def draw(request: CompletionRequest) -> DrawnCompletion:
            async with slots:
                body = {"token_ids": request.prompt, "sampling_params": request.params}
                choice = (await _answer(http, "POST", "/inference/v1/generate", body))["choices"][0]
            logprobs = [token["logprob"] for token in choice["logprobs"]["content"]]
            versions = [span["version"] for span in choice["weight_versions"] or ()]
            return DrawnCompletion(choice["token_ids"], logprobs, choice["finish_reason"], versions)

        async with httpx.AsyncClient(base_url=self.url, timeout=self._config.timeout_s, limits=limits) as http:
            try:
                async with asyncio.TaskGroup() as group:  # the first failure ends the others
                    tasks = [group.create_task(draw(request)) for request in requests]
            except ExceptionGroup as errors:
                first = errors.exceptions[0]
                if isinstance(first, httpx.HTTPError):
                    raise EngineLost(f"{self.url} does not answer: {type(first).__name__} {first}") from first
                raise first from None
        return [task.result() for task in tasks]

    def wait_until_back(self) -> None:
        end = time.monotonic() + self._config.timeout_s
        while True:
            try:
                self._loop.run(lambda: self._asked("GET", "/health", None, HEALTH_POLL_S))
                return
            except (httpx.HTTPError, RuntimeError) as error:
                if time.monotonic() > end:
                    raise EngineLost(f"{self.url} did not come back: {error}") from error
            time.sleep(HEALTH_POLL_S)

    def control(self, verb: str, arguments: Mapping[str, Any]) -> None:
        self._call("POST", f"/{verb}", dict(arguments) or None)

    def weight_versions(self) -> list[str]:
        return [self._call("GET", "/weight_info")["weight_version"]]

    def reset_prefix_cache(self) -> None:
        if not self._call("POST", "/reset_prefix_cache")["success"]:
            raise RuntimeError(f"{self.url} could not empty its prefix cache: somebody else is drawing completions")

    async def _asked(self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> Any:
        async with httpx.AsyncClient(base_url=self.url, timeout=timeout_s) as http:
            return await _answer(http, method, path, body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        try:
            return self._loop.run(lambda: self._asked(method, path, body, self._config.timeout_s))
        except httpx.HTTPError as error:
            raise EngineLost(f"{self.url} does not answer: {type(error).__name__} {error}") from error


async def _answer(http: httpx.AsyncClient, method: str, path: str, body: Any) -> Any:
    """The JSON value of a whole reply, None for an empty one. Raises RuntimeError for an error of the server, and
    httpx.HTTPError where no whole reply comes within the client's time.
    """
    total_s, sending = http.timeout.read or 0.0, http.stream(method, path, json=body)
    try:
        response, content = await bounded_reply(sending, lambda reply: reply.aiter_bytes(), total_s, LARGEST_REPLY)
    except TimeoutError as error:
        raise httpx.ReadTimeout(f"no whole reply within {total_s:g} s") from error
    except OversizedError as error:
        raise RuntimeError(f"{http.base_url}{path}: {error}") from error
    if response.is_error:
        text = content[:500].decode(errors="replace")
        raise RuntimeError(f"{response.request.url} answered {response.status_code}: {text}")
    return json.loads(content) if content else None


@contextmanager
def _refused(what: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, LookupError) as error:
        raise InputError(f"url: {what} ({error}); {remedy}") from error


def _check_settings(url: str, described: dict[str, Any], backend: str) -> None:
    mode = described["model_config"]["logprobs_mode"]
    if mode != "processed_logprobs":
        raise InputError(
            f"url: the server at {url} reports {mode}, which are not at the sampling temperature; start it with "
            "--logprobs-mode processed_logprobs"
        )
    transfer = (described.get("weight_transfer_config") or {}).get("backend")
    if transfer != backend:
        found = f"takes weights over {transfer}" if transfer else "takes no weights"
        extension = (
            " --worker-extension-cls cooper_rl.engines.scale.vllm.weight_sync.Extension" if backend == "gloo" else ""
        )
        raise InputError(
            f"url: the server at {url} {found}, this run sends them over {backend}; start it with "
            f'--weight-transfer-config \'{{"backend": "{backend}"}}\'{extension}'
        )


def host_towards(url: str) -> str:
    """The IPv4 address under which a server reaches this machine. Nothing is sent: UDP only looks up the route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        route.connect((urlsplit(url).hostname, 1))
        return route.getsockname()[0]
