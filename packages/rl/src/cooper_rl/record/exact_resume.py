"""What a resumed run needs to equal an uninterrupted one: the random states, and the same conditions."""

import base64
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from cooper_base.config.base import Config


def seed_random_state(seed: int) -> None:
    """Seed the generators of python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """The states of python, numpy and torch, of the CPU and of every CUDA device."""
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": [_text(np.asarray(keys).tobytes()), int(position), int(has_gauss), float(cached)],
        "torch": _text(torch.get_rng_state().numpy().tobytes()),
        "cuda": [_text(state.numpy().tobytes()) for state in torch.cuda.get_rng_state_all()],
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Restore what `random_state` returned. States of CUDA devices that this machine lacks are ignored."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    keys = np.frombuffer(base64.b64decode(keys), dtype=np.uint32)
    np.random.set_state(("MT19937", keys, position, has_gauss, cached))
    torch.set_rng_state(_tensor(state["torch"]))
    for device, text in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(_tensor(text), device)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)


WITHOUT_EFFECT = {"name", "output_dir", "checkpoint", "sinks"}
"""Settings that do not change any result."""


def conditions(config: "Config", without: "set[str] | dict[str, Any]" = WITHOUT_EFFECT) -> dict[str, Any]:
    """The conditions as JSON values: the settings by dotted key, except those in `without`, the version of torch and
    the number of threads."""
    settings = config.model_dump(mode="json", exclude=without)
    return dict(_flat(settings, "")) | {"torch version": torch.__version__, "CPU threads": torch.get_num_threads()}


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Every condition that differs, as "key: before -> now"."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return [f"{key}: {before.get(key)} -> {now.get(key)}" for key in keys]


def _flat(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield key, value
        return
    for name, inner in value.items():
        yield from _flat(inner, f"{key}.{name}" if key else name)
