"""Turns a YAML file and `key=value` overrides into a checked `RunConfig`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cooper_rl.config.settings import Settings, check, merge, read_settings
from cooper_rl.presets import PRESETS
from cooper_rl.run_config import RunConfig


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a run's configuration.

    `overrides` ("policy.learning_rate=1e-5") win over the file, the file over the preset, the preset over the defaults.
    Raises InputError for anything that does not fit; it names the file, line and key, and the nearest known key.
    """
    return _with_preset(read_settings(path, overrides))


def build_config(settings: dict[str, Any]) -> RunConfig:
    """Check plain settings against the schema. Raises InputError like `load_config`."""
    return _with_preset(Settings(settings))


def _with_preset(settings: Settings) -> RunConfig:
    preset = settings.values.get("preset", RunConfig.model_fields["preset"].default)
    defaults = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
    return check(RunConfig, replace(settings, values=merge(defaults, settings.values)))
