"""The embedded world as a run's settings."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cooper_rl import merge

ASSETS = Path(__file__).parent / "assets"
START_SAMPLES = "start.jsonl"
"""In a folder of planted models: completions of the start policy."""
TWINS: dict[str, dict[str, Any]] = {
    "head": {"kind": "head"},
    "yes_no": {"kind": "yes_no", "ask": "?"},
    "chat": {"kind": "head", "input": "chat"},
    "implicit": {"input": "chat"},
    "implicit_reference": {"input": "chat_with_reference"},
    "ipvrm": {"input": "chat"},
}
"""Reward models of one size from one start (`twins.py`), by how they score. The world's tokenizer has one token a
character, so yes and no are `y` and `n`. `chat` and `implicit` read no reference."""


def run_settings(
    name: str, output_dir: Path, seed: int, chosen: dict[str, Any], models: Path = ASSETS
) -> dict[str, Any]:
    """The settings of a run in the embedded world: `arithmetic.yaml` beside this file, overridden by `chosen`.

    `models` holds the folders `policy` and `reward_model`.
    """
    folders = {part: {"model": str(models / part)} for part in ("policy", "reward_model")}
    run = {"name": name, "output_dir": str(output_dir), "seed": seed, **folders}
    return merge(merge(deepcopy(_world()), run), chosen)


@cache
def _world() -> dict[str, Any]:
    return yaml.safe_load((Path(__file__).parent / "arithmetic.yaml").read_text(encoding="utf-8"))
