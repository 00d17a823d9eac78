"""The command line: one module per command."""

import signal
from typing import Any


def start() -> None:
    """Run the `cooper` command so that interrupts, however many, never end in a traceback.

    The first interrupt lets the command finish cleanly, and the next one ends the process as the system does. Before
    the command begins and after it has ended there is nothing to finish.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from cooper_base.cli.main import app

    interrupted = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal interrupted
        if interrupted:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        app()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
