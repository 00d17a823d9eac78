"""Several processes, one reward model: rows are gathered in the first, which works for all."""

from collections.abc import Callable
from typing import Any, TypeVar

from cooper_rl.errors import InputError

T = TypeVar("T")


def gathered(rows: list[T], processes: int) -> list[T]:
    """The rows of all processes, in the order of their ranks. Every process must call it."""
    if processes == 1:
        return rows
    from accelerate.utils import gather_object  # noqa: PLC0415 - slow to import, and not for one process

    return gather_object(rows)


def on_first(work: Callable[[], T], rank: int, processes: int) -> T:
    """What `work` returns in the first process, in all of them.

    An error there is raised in all, or the others would wait for a result for ever. Every process must call it.
    """
    if processes == 1:
        return work()
    from accelerate.utils import broadcast_object_list  # noqa: PLC0415

    shared: list[Any] = [None, "the first process has ended"]
    try:
        if rank == 0:
            try:
                shared = [work(), None]
            except Exception as error:
                shared = [None, f"{type(error).__name__}: {error}"]
                raise
    finally:
        broadcast_object_list(shared)
    if shared[1] is not None:
        raise InputError(f"the process that owns the reward has failed: {shared[1]}")
    return shared[0]
