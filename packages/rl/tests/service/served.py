"""`cooper serve` in a process of its own, with a real socket, that a test can stop, kill and start again."""

import os
import random
import re
import runpy
import signal
import socket
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

from cooper_base.cli.main import app
from cooper_rl.service.client import RewardClient
from forks import FORKS


class Served:
    """A server of `settings` that works in `folder`; entering starts it, leaving kills it.

    A server that is started again listens where it did before. A script is run first in each of its processes.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], script: str = "") -> None:
        self.folder = folder
        self.log = folder / "log"
        folder.mkdir(parents=True, exist_ok=True)
        serve = {"port": _free_port(), "folder": str(folder / "served")} | settings.get("serve", {})
        (folder / "serve.yaml").write_text(yaml.safe_dump({**settings, "serve": serve}), encoding="utf-8")
        (folder / "sitecustomize.py").write_text(script, encoding="utf-8")
        self.process: BaseProcess | None = None
        self.url = ""

    def start(self) -> Self:
        """Start, or start again; returns when requests are answered."""
        self.log.unlink(missing_ok=True)
        self.process = FORKS.Process(target=_run, args=(str(self.folder / "serve.yaml"), str(self.log)))
        self.process.start()
        while not (found := re.search(r"serving on (http\S+)", self.output())):
            if not self.process.is_alive():
                raise RuntimeError(self.output())
            time.sleep(0.01)
        self.url = found[1]
        return self

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid

    def output(self) -> str:
        """What the process has said."""
        return self.log.read_text() if self.log.exists() else ""

    def end(self, number: signal.Signals = signal.SIGTERM) -> int | None:
        """Send a signal and wait for the end; returns the exit code."""
        assert self.process is not None
        if self.process.is_alive():
            os.kill(self.pid, number)
        self.process.join()
        return self.process.exitcode

    def client(self, **options: Any) -> RewardClient:
        """A client of this server."""
        given: dict[str, Any] = {"timeout_s": 20.0, "early_s": 0.5} | options
        return RewardClient(self.url, **given)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """One request, sent once."""
        return httpx.post(self.url + path, json=body, timeout=180, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """One question, asked once."""
        return httpx.get(self.url + path, timeout=180, **options)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.end(signal.SIGKILL)


def _free_port() -> int:
    """Below the ports that systems hand out by themselves, so that it stays free while the server is down.

    Not from the global random state: trainers seed it, and then parallel test processes draw the same ports.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def _run(config: str, log: str) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = ["cooper", "serve", config]
    folder = str(Path(log).parent)
    os.environ |= {"COOPER_TEST_TOKEN": "secret", "COOPER_TEST_FOLDER": folder}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    runpy.run_path(f"{folder}/sitecustomize.py")
    app()
