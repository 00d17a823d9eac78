"""The loop that runs the user's `async def` functions."""

import subprocess
import sys

import pytest

from cooper_base.config.user_functions import EventLoop

COLLECTED = """
import gc
from concurrent.futures import thread
from cooper_base.config.user_functions import EventLoop

async def nothing():
    return "ran"

loop = EventLoop()
print(loop.run(nothing))
with thread._global_shutdown_lock:  # any executor holds it for a moment, and a collection may start just then
    del loop
    gc.collect()
print("collected")
"""


def test_a_loop_may_be_collected_while_an_executor_is_at_work():
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["ran", "collected"], done.stderr


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3)])
def test_what_a_coroutine_raises_is_raised_and_the_loop_goes_on(error):
    async def fails():
        raise error

    async def works():
        return 1

    loop = EventLoop()
    with pytest.raises(type(error)) as caught:
        loop.run(fails)
    assert caught.value is error
    assert loop.run(works) == 1
