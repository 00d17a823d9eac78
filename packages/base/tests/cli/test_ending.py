"""A command ends with its own exit code, whatever code of the user's in its process does."""

import subprocess
import sys

import pytest

COMMAND = """
import os, sys, threading, time
import cooper_base.cli.ending as ending
from cooper_base.cli.ending import own_ending

ending.PATIENCE_S = 0.2


def users():
    {users}


with own_ending():
    users()
    sys.exit({code})
"""
HANGS = "threading.Thread(target=time.sleep, args=(600,), name='a watchdog').start()"
POOL = "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(time.sleep, 600)"
IN_A_THREAD = "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(9)"


def ended(users: str, code: str = "") -> tuple[int, str]:
    script = COMMAND.format(users=users, code=code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("status", "code"), [(0, 1), (3, 3)])
def test_an_exit_that_skips_everything_is_told_and_never_a_success(status, code):
    said = f"<string>:10, in users: called os._exit({status}), which ends the whole command; raise an exception instead"
    returned, stderr = ended(f"os._exit({status})")
    assert (returned, " ".join(stderr.split())) == (code, f"error: {said}")


def test_so_is_one_of_another_thread_and_of_a_library():
    returned, stderr = ended(IN_A_THREAD)
    assert returned == 1
    assert "called os._exit(0)" in stderr


def test_what_is_forked_ends_as_it_likes():
    assert ended("os.fork() or os._exit(0)\n    print(os.waitstatus_to_exitcode(os.wait()[1]), file=sys.stderr)") == (
        0,
        "0\n",
    )


@pytest.mark.parametrize("users", [HANGS, POOL], ids=["thread", "pool"])
@pytest.mark.parametrize(("given", "code"), [("", 0), ("3", 3), ("'why'", 1)])
def test_threads_are_not_waited_for_and_the_exit_code_is_the_commands(users, given, code):
    returned, stderr = ended(users, given)
    assert returned == code
    assert "ends without 1 threads that still run 0.2 s behind it: " in stderr
    assert ("a watchdog" in stderr) == (users == HANGS)


def test_a_thread_that_ends_in_time_is_waited_for():
    assert ended("threading.Thread(target=lambda: (time.sleep(0.05), print('done', file=sys.stderr))).start()") == (
        0,
        "done\n",
    )


def test_whoever_calls_it_and_goes_on_is_left_alone():
    script = COMMAND.format(users=HANGS, code="").replace("    sys.exit()\n", "    pass\n")
    script += "\ntime.sleep(1)\nprint(os._exit is ending._exit, flush=True)\nos._exit(7)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "True\n", "")
