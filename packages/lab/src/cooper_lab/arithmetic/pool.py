"""Work spread over processes, one per core."""

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from cooper_rl import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")

POLL_S = 0.5


def run_in_processes(
    function: Callable[[Job], Result], jobs: Sequence[Job], workers: int, on_poll: Callable[[], None]
) -> list[Result]:
    """`function(job)` for every job, in order of the list; returns the results.

    `on_poll` is called twice a second. The first job that fails ends all others that have not begun, and its error is
    raised once those under way are done. An interrupt does the same. If this process ends in any other way, a kill
    among them, its workers end within a second.

    Raises InputError for a job that a worker cannot import, and if a worker is killed.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=workers, mp_context=spawn, initializer=_end_with_parent) as pool:
        running: list[Future[Result]] = [pool.submit(_call, pickle.dumps((function, job))) for job in jobs]
        try:
            pending: set[Future[Result]] = set(running)
            while pending and not any(map(_has_failed, running)):
                _, pending = wait(running, POLL_S, FIRST_EXCEPTION)
                on_poll()
        finally:
            pool.shutdown(cancel_futures=True)
    try:
        for future in filter(_has_failed, running):
            future.result()
    except BrokenProcessPool as error:
        raise InputError(
            "a worker was killed, perhaps because memory ran out (fewer at once need less); the same command continues"
        ) from error
    return [future.result() for future in running]


def _end_with_parent() -> None:
    """End this worker when its parent has ended in any way: the system then closes the pipe between the two."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)  # not `sys.exit`, which ends this thread only

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def _call(pickled: bytes) -> Any:
    """Call a function with its job. Both are unpickled here, because a job that the pool itself cannot unpickle kills
    the worker."""
    try:
        function, job = pickle.loads(pickled)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{error}, in a worker process; put it into a module that is installed, on PYTHONPATH or in the "
            "working folder"
        ) from error
    return function(job)


def _has_failed(future: Future) -> bool:
    return future.done() and not future.cancelled() and future.exception() is not None
