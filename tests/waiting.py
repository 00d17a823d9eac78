"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float) -> bool:
    """Whether the condition has held within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())
