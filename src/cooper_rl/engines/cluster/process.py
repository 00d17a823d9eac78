"""What every process of a run does first."""

import logging
import os
import sys

from cooper_rl.engines.local.device import set_threads


def begin_process(log: str, threads: int, path: list[str]) -> None:
    """Send all that this process prints and logs to the file `log`; `path` is the driver's `sys.path`."""
    sys.path.extend(place for place in path if place not in sys.path)  # a loss may be a user's own
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
    set_threads(threads)
