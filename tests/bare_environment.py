"""Empty environments into which a package is installed from its wheel, with or without an extra."""

import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from repository import ROOT

CPU_INDEX = "https://download.pytorch.org/whl/cpu"


class Environment:
    """An environment with one package, whose dependencies come from the index and the lower packages from a folder."""

    def __init__(self, package: str, wheels: Path, folder: Path, extra: str = "") -> None:
        venv.create(folder, with_pip=False)
        self.programs = folder / "bin"
        self.home = next((folder / "lib").glob("python*")) / "site-packages"
        self.folder = folder / "work"
        self.folder.mkdir()
        constraints = ["--constraint", str(ROOT / "constraints.txt")]
        if package in ("rl", "lab"):
            version = re.search(r"^torch==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
            assert version is not None
            self._install("--no-deps", "--retries", "1", "--index-url", CPU_INDEX, version[0])
        name = f"cooper-{package}[{extra}]" if extra else f"cooper-{package}"
        self._install(*constraints, "--find-links", str(wheels), name)

    def _install(self, *arguments: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.programs / "python"), "install", "--quiet"]
        done = subprocess.run([*pip, *arguments], capture_output=True, text=True)
        if re.search(
            r"Could not fetch URL|Temporary failure|NewConnectionError|No matching distribution found for (?!cooper)",
            done.stderr,
        ):
            pytest.skip(f"the package index is not reachable: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr

    def run(self, *command: str, status: int = 0) -> tuple[str, float]:
        """What a command prints, and its wall seconds."""
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        path = {"PATH": f"{self.programs}:{os.environ['PATH']}"}
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, env=alone | path, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr, seconds

    def python(self, code: str) -> tuple[str, float]:
        return self.run("python", "-c", code)

    @property
    def megabytes(self) -> float:
        return sum(file.lstat().st_size for file in self.home.rglob("*") if file.is_file()) / 2**20
