"""The end of a command, which code of the user's in its process can neither fake nor hold up.

A training run calls rewards, rules, environments and callbacks in its own process, because they get whole answers, keep
state and may hold models. Commands that only grade run such code in another process (`cooper_verify.graders.apart`).
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from cooper_base.cli.console import say
from cooper_base.packages import package_folders

PATIENCE_S = 30.0
"""Seconds that threads have behind the end of a command, such as those of a library that still sends something."""
_exit = os._exit


@contextmanager
def own_ending() -> Iterator[None]:
    """A command that runs in this context ends with its own exit code.

    An `os._exit` that is not Cooper's says where it was called, and its code is never 0: a script would take the
    command for done. Threads that still run `PATIENCE_S` behind the end are not waited for. What is forked ends as it
    likes.
    """
    process, code = os.getpid(), 0

    def told(status: int) -> NoReturn:
        frame = sys._getframe(1)
        file, function = frame.f_code.co_filename, frame.f_code.co_qualname
        if os.getpid() == process and not file.startswith(package_folders()):
            why = f"called os._exit({status}), which ends the whole command; raise an exception instead"
            say(f"{file}:{frame.f_lineno}, in {function}: {why}", "error: ", "bold red")
            status = status or 1
        _exit(status)

    os._exit = told
    try:
        yield
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
    except BaseException:
        code = 1
        raise
    finally:
        os._exit = _exit
        threading.Thread(target=_leave, args=(code,), daemon=True, name="end of the command").start()


def _leave(code: int) -> None:
    time.sleep(PATIENCE_S)
    main = threading.main_thread()
    ending = getattr(threading, "_SHUTTING_DOWN", not main.is_alive())  # the latter comes behind what pools wait for
    if not ending:  # whoever called `app` goes on
        return
    if names := sorted(thread.name for thread in threading.enumerate() if not thread.daemon and thread is not main):
        say(f"ends without {len(names)} threads that still run {PATIENCE_S:g} s behind it: {', '.join(names[:5])}")
        sys.stdout.flush()
        _exit(code)
