"""Stops a run cleanly on SIGINT and SIGTERM."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

logger = logging.getLogger(__name__)


@contextmanager
def stop_on_signal(request_stop: Callable[[], None]) -> Iterator[None]:
    """The first signal calls `request_stop`; a second one goes to the handlers that were there before.

    Does nothing outside the main thread, where Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore_handlers() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def on_signal(number: int, frame: Any) -> None:
        restore_handlers()  # before the warning, because a second signal may come while it is written
        request_stop()
        logger.warning("stopping after this step; interrupt again to stop at once")

    for number in previous:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        restore_handlers()
