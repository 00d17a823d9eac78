"""The conditions under which a resumed run equals an uninterrupted one."""

from collections.abc import Iterator
from typing import Any

import torch

from cooper_rl.run_config import RunConfig

WITHOUT_EFFECT = {"name", "output_dir", "checkpoint", "sinks"}
"""Settings that change no result."""


def conditions(config: RunConfig) -> dict[str, Any]:
    """The settings by dotted key, the version of torch and the number of threads, as JSON values."""
    settings = config.model_dump(mode="json", exclude=WITHOUT_EFFECT)
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
