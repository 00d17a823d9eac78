"""The kinds of holes: the classes of the files here, or `kind: package.module:Class`."""

from typing import Any, cast

from cooper_base.config.base import Kinds
from cooper_lab.arena.hole import Hole

HOLES = Kinds("hole", "cooper_lab.arena.holes", ["about", "where", "hack", "is_hack", "taught", "rule"])


def read_hole(settings: dict[str, Any]) -> Hole:
    """A hole from its settings, with `kind`. Raises ValueError for settings that do not fit."""
    return cast(Hole, HOLES.read(settings))
