"""The kinds of holes: a file here, or `kind: package.module:Class`."""

from cooper_rl.config.registry import Kinds

HOLES = Kinds("hole", "cooper_rl.arena.holes", ["about", "where", "hack", "is_hack", "taught", "rule"])
