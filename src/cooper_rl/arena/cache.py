"""Planted models in a folder of the user's, made once for each recipe, seed and version."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_rl import __version__
from cooper_rl.arena.hole import Hole
from cooper_rl.arena.holes import HOLES

RECIPE = 1
"""Raised by every change to a recipe: models of an older one are made again."""


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/cooper-rl/arena`, by default in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cooper-rl" / "arena"


@dataclass(frozen=True)
class Planted:
    """Where the models of one hole and seed are, or will be."""

    hole: Hole
    seed: int
    cache: Path

    @property
    def key(self) -> str:
        """The hole's name and a digest of everything that the models depend on."""
        kind = HOLES.kind_of(self.hole)
        made_from = {"hole": HOLES.dump(self.hole), "seed": self.seed, "recipe": RECIPE, "version": __version__}
        digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
        return f"{kind.rpartition(':')[2]}-{self.seed}-{digest}"

    @property
    def folder(self) -> Path:
        """Holds `policy/`, `reward_model/` and `manifest.json`."""
        return self.cache / self.key

    @property
    def exists(self) -> bool:
        """Whether the models have been made."""
        return (self.folder / "manifest.json").is_file()

    @property
    def manifest(self) -> dict[str, Any]:
        """What was measured when they were made; see `plant.measure`."""
        return json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))


def make(planted: Planted) -> None:
    """Plant the hole in a folder aside and rename it: a killed process leaves nothing that looks finished."""
    from cooper_rl.arena.plant import plant  # noqa: PLC0415 - torch, in the process that plants
    from cooper_rl.engines.local.device import set_threads  # noqa: PLC0415

    set_threads(1)
    aside = planted.cache / f".{planted.key}.{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    plant(planted.hole, aside, planted.seed)
    shutil.rmtree(planted.folder, ignore_errors=True)
    aside.rename(planted.folder)
