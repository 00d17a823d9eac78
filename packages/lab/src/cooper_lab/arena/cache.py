"""Planted models in the user's cache folder, made once for each recipe, seed and version."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cooper_base import __version__
from cooper_base.files.durable import delete, read_fields
from cooper_lab.arena.hole import Hole
from cooper_lab.arena.holes import HOLES
from cooper_lab.arithmetic.world import START_SAMPLES, TWINS

RECIPE = 1
"""Increase this with every change to a recipe, so that models of an older recipe are made again."""
TWIN_RECIPES = {"implicit": 2, "implicit_reference": 2, "ipvrm": 2}
"""The same for how a hole is planted in these twins."""
MANIFEST = "manifest.json"
_MEASURED = {"policy": dict, "reward_model": dict, "rule": dict, "cpu_s": int | float}
"""Fields of a manifest that the arena's page shows."""


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/cooper-rl/arena`, by default in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cooper-rl" / "arena"


@dataclass(frozen=True)
class Planted:
    """The folder of the models of one hole and seed, which may not exist yet."""

    hole: Hole
    seed: int
    cache: Path
    start_samples: bool = False
    """Whether a design needs samples of the policy too."""
    twin: str = ""
    """One of `cooper_lab.arithmetic.twins.TWINS`: then the hole is planted in that reward model, and in no policy."""

    @property
    def key(self) -> str:
        """The hole's name and a digest of everything that the models depend on."""
        kind = HOLES.kind_of(self.hole)
        made_from = {"hole": HOLES.dump(self.hole), "seed": self.seed, "recipe": RECIPE, "version": __version__}
        digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
        key = f"{kind.rpartition(':')[2]}-{self.seed}-{digest}"
        if self.twin:
            key += f"-{self.twin}"
        if self.twin in TWIN_RECIPES:
            key += f"-{TWIN_RECIPES[self.twin]}"
        return key

    @property
    def start(self) -> Path:
        """The folder of a twin before any hole, which all holes share; of those that read chats, all plantings too."""
        return self.cache / f"twin-{self.twin}-{self.start_seed}-{RECIPE}-{__version__}"

    @property
    def start_seed(self) -> int:
        """The seed by which a twin is trained before any hole."""
        return 0 if "input" in TWINS.get(self.twin, {}) else self.seed

    @property
    def folder(self) -> Path:
        """Holds `policy/` (not of a twin), `reward_model/` and `manifest.json`, and `start.jsonl` where a design needs
        it."""
        return self.cache / self.key

    @property
    def exists(self) -> bool:
        """Whether the models, and the samples if they are needed, exist."""
        return self.has_models and (not self.start_samples or (self.folder / START_SAMPLES).is_file())

    @property
    def has_models(self) -> bool:
        """Whether the models exist."""
        return (self.folder / MANIFEST).is_file()

    @property
    def manifest(self) -> dict[str, Any]:
        """What was measured when they were made; see `plant.measure`."""
        return read_fields(self.folder / MANIFEST, _MEASURED, f"delete {self.folder} to plant the hole again")


def make(planted: Planted) -> None:
    """Make the missing models and samples. A hole is planted in another folder that is then renamed, so a killed
    process leaves nothing that looks finished."""
    from cooper_lab.arena.plant import plant, plant_in_twin  # noqa: PLC0415 - torch, in the process that plants
    from cooper_lab.arithmetic.start_samples import draw_start_samples, training_problems  # noqa: PLC0415
    from cooper_lab.arithmetic.twins import train_twin  # noqa: PLC0415
    from cooper_rl.engines.local.device import set_threads  # noqa: PLC0415

    set_threads(1)
    if planted.twin and not planted.start.exists():
        _write_aside(planted.start, lambda aside: train_twin(planted.twin, aside, planted.start_seed))
    if not planted.has_models:
        delete(planted.folder)
        if planted.twin:
            own = replace(planted, twin="", start_samples=False)
            make(own)
            at = (planted.seed, planted.twin, planted.start, own.folder / "policy")
            _write_aside(planted.folder, lambda aside: plant_in_twin(planted.hole, aside, *at))
        else:
            _write_aside(planted.folder, lambda aside: plant(planted.hole, aside, planted.seed))
    if planted.start_samples:
        draw_start_samples(planted.folder, training_problems())


def _write_aside(folder: Path, write: Callable[[Path], object]) -> None:
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    delete(aside)
    write(aside)
    with suppress(OSError):  # another process has made the same models in the meantime
        aside.rename(folder)
