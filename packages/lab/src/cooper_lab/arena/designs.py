"""Designs of the arena: named settings on top of those that all runs share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cooper_base.config.checking import Settings, check_settings, read_settings
from cooper_lab.arithmetic.world import TWINS, run_settings
from cooper_rl import Config, InputError, build_config

BUILT_IN = Path(__file__).parent / "designs.yaml"


class Design(Config):
    """A design: one way to pay the policy and to train the reward model."""

    about: str = ""
    """A line that describes the design in tables."""
    settings: dict[str, Any]
    """Settings of a run. `$reward_model`, `$reward_model_1`, … are the planted models, `$reward_model_head` and
    `$reward_model_yes_no` two of one start and size, and `$start_samples` a file of completions of the hole's start
    policy."""


def built_in_designs() -> dict[str, Design]:
    """The designs that come with the package."""
    return read_designs(BUILT_IN)


def read_designs(path: Path) -> dict[str, Design]:
    """Designs of a YAML file of the user's: a name, and under it `settings` and, for tables, `about`.

    Raises InputError, naming file and design, for one that no run could have.
    """
    designs = {}
    for name, values in read_settings(path).values.items():
        where = f"{path}: design {name}"
        if not isinstance(values, dict):
            raise InputError(f"{where}: expected a mapping with settings, found {values!r}")
        design = designs[name] = check_settings(Design, Settings(values, where))
        try:
            build_config(run_settings(name, Path("runs"), 0, design.settings))
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
    return designs


def members(design: Design) -> list[int]:
    """The seeds of the planted reward models that a design names, besides the cell's own seed."""
    named = [placeholder for placeholder in _placeholders(design.settings) if placeholder.startswith("$reward_model")]
    return sorted({int(placeholder.rpartition("_")[2]) for placeholder in named if placeholder[-1].isdigit()})


def twins(design: Design) -> list[str]:
    """The reward models that a design names by the way they score (`TWINS`), besides the cell's own."""
    named = {placeholder.removeprefix("$reward_model_") for placeholder in _placeholders(design.settings)}
    return sorted(named & TWINS.keys())


def needs_start_samples(design: Design) -> bool:
    """Whether a design compares with samples of the start policy."""
    return "$start_samples" in _placeholders(design.settings)


def fill_in(value: Any, paths: Mapping[str, str]) -> Any:
    """The settings with every `$name` replaced by the path of the planted model or file."""
    if isinstance(value, dict):
        return {key: fill_in(element, paths) for key, element in value.items()}
    if isinstance(value, list):
        return [fill_in(element, paths) for element in value]
    return paths.get(value, value) if isinstance(value, str) else value


def _placeholders(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [placeholder for element in inner for placeholder in _placeholders(element)]
    return [value] if isinstance(value, str) and value.startswith("$") else []
