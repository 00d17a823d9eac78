"""A process with a learner on the CPU uses the memory of freed tensors again instead of asking the system for more."""

import os
import platform
import subprocess
import sys

import pytest

from cooper_rl.engines.local.device import keep_freed_memory

PASSES = """
import resource, torch
from cooper_rl.engines.local.device import keep_freed_memory

def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

kept = keep_freed_memory()
print(kept, min(new_pages() for _ in range(20)))  # where a tensor begins decides whether it fits the last one's place
"""


def fewest_new_pages() -> tuple[str, int]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", PASSES]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=True)
    kept, pages = done.stdout.split()
    return kept, int(pages)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="not the GNU C library")
def test_freed_memory_is_used_again_unless_the_user_has_set_the_library(monkeypatch):
    # Asked in a process of its own, because it changes the allocator. Older versions refuse thresholds above 32 MiB.
    threshold = "import ctypes; print(ctypes.CDLL(None).mallopt(-3, 2**31 - 1))"
    if subprocess.check_output([sys.executable, "-c", threshold], text=True).strip() == "0":
        pytest.skip("this version of the GNU C library refuses the threshold")
    kept, pages = fewest_new_pages()
    assert (kept, pages < 100) == ("True", True)  # 32 MiB are 8,192 pages
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    assert not keep_freed_memory.__wrapped__()
