"""Work spread over processes, one per core."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

POLL_S = 0.5


def run_in_processes(
    function: Callable[[Job], Result], jobs: Sequence[Job], workers: int, on_poll: Callable[[], None]
) -> list[Result]:
    """`function(job)` for every job, in order of the list; returns the results.

    `on_poll` is called twice a second. The first job that fails ends all others that have not begun, and its error is
    raised once those under way are done. An interrupt does the same.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=workers, mp_context=spawn) as pool:
        running: list[Future[Result]] = [pool.submit(function, job) for job in jobs]
        try:
            pending: set[Future[Result]] = set(running)
            while pending and not any(map(_has_failed, running)):
                _, pending = wait(running, POLL_S, FIRST_EXCEPTION)
                on_poll()
        finally:
            pool.shutdown(cancel_futures=True)
    for future in filter(_has_failed, running):
        future.result()
    return [future.result() for future in running]


def _has_failed(future: Future) -> bool:
    return future.done() and not future.cancelled() and future.exception() is not None
