"""What other installed packages add, by entry points: commands, kinds of parts, and sources of problems.

The groups are `cooper_rl.commands` (`arena`), `cooper_rl.verifyrm` (commands of `cooper verifyrm`), `cooper_rl.kinds`
(`shaping.rank`: the noun of the parts, then the kind) `cooper_rl.problems` (the name that `problems.source` gives: a
function of split, count and seed), and `cooper_rl.benchmarks` (for `cooper verifyrm bench --benchmark`).
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cooper_rl.errors import InputError


@cache
def added(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, sorted. Loading one imports its module."""
    return {one.name: one for one in sorted(entry_points(group=f"cooper_rl.{group}"), key=lambda one: one.name)}


def load_added(group: str, name: str) -> Any:
    """The object behind one entry point. Raises InputError if no installed package adds it."""
    if name not in added(group):
        raise InputError(f"{name}: no installed package adds it to cooper_rl.{group}; reinstall cooper-rl")
    return added(group)[name].load()
