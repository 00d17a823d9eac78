"""Drives the targets with Atheris, which keeps and mutates input that reaches new lines of the project's code.

    python tests/fuzz/coverage_guided.py SECONDS [TARGET …]

Every target gets SECONDS in its own process. Prints the executions of each. If an input broke a promise or took longer
than ten seconds, prints where that input is saved and exits with 1.
"""

import re
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cooper_base.packages import PACKAGES

sys.path.insert(0, str(Path(__file__).parents[1]))


def fuzz(target: str, seconds: str, folder: str) -> None:
    """Fuzz in this process. Never returns, because libFuzzer ends the process."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=[*PACKAGES]):
        from corpus import SEEDS
        from targets import TARGETS
    corpus = Path(folder) / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS[target]):
        (corpus / str(number)).write_bytes(seed)
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=3000", "-max_len=4096"]
    atheris.Setup(
        [sys.argv[0], str(corpus), "-print_final_stats=1", f"-artifact_prefix={folder}/", *limits], TARGETS[target]
    )
    atheris.Fuzz()


def report(target: str, seconds: str) -> bool:
    """Fuzz one target and print the result; returns whether it kept its promise."""
    folder = tempfile.mkdtemp(prefix=f"fuzz-{target}-")
    command = [sys.executable, __file__, "--one", target, seconds, folder]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    units = re.findall(r"number_of_executed_units: (\d+)", done.stderr)
    print(f"{target}: {units[-1] if units else 0} executions", "" if not done.returncode else f"BROKEN, see {folder}")
    if done.returncode:
        print(done.stderr[-4000:])
    return not done.returncode


def main(seconds: str, chosen: list[str]) -> None:
    if find_spec("atheris") is None:
        sys.exit("coverage-guided fuzzing needs Atheris (Linux, Python 3.11 or later): `make fuzz` installs it")
    from targets import TARGETS

    kept = [report(target, seconds) for target in chosen or TARGETS]
    print(f"{len(kept)} targets, {kept.count(False)} findings")
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        fuzz(*sys.argv[2:])
    main(sys.argv[1], sys.argv[2:])
