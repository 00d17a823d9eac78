"""A process with a learner on the CPU uses the memory of freed tensors again instead of asking the system for more."""

import os
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
new_pages()
print(kept, new_pages())
"""


def second_pass(**environment: str) -> tuple[str, int]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", PASSES]
    done = subprocess.run(command, env=plain | environment, capture_output=True, text=True, check=True)
    kept, pages = done.stdout.split()
    return kept, int(pages)


@pytest.mark.skipif(not keep_freed_memory(), reason="not the GNU C library, or its settings are in the environment")
def test_freed_memory_is_used_again_unless_the_user_has_set_the_library():
    kept, pages = second_pass()
    assert (kept, pages < 100) == ("True", True)  # 32 MiB are 8,192 pages
    assert second_pass(MALLOC_ARENA_MAX="1")[0] == "False"
