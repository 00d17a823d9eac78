"""A `vllm serve` in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

STARTS_WITHIN_S = 400


class VllmServer:
    """Serves a folder's model at `url`, as docs/vllm.md says; what it prints goes to a file."""

    def __init__(self, folder: Path, log: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._folder, self._log = folder, log
        self.start()

    def start(self) -> None:
        """Start it and return; `wait` waits until it serves."""
        arguments = [
            *("--model", str(self._folder), "--host", "127.0.0.1", "--port", str(self._port)),
            *("--dtype", "float32", "--enforce-eager", "--kv-cache-memory-bytes", "100000000"),
            *("--logprobs-mode", "processed_logprobs", "--generation-config", "vllm", "--enable-scale-out"),
            *("--weight-transfer-config", '{"backend": "gloo"}'),
            "--no-enable-chunked-prefill",
            *("--worker-extension-cls", "cooper_rl.engines.scale.vllm.weight_sync.Extension"),
        ]
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "VLLM_SERVER_DEV_MODE": "1", "HF_HUB_OFFLINE": "1"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Until it answers."""
        end = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < end and self._process.poll() is None:
            try:
                httpx.get(f"{self.url}/health").raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(1)
        raise AssertionError(self._log.read_text()[-4000:])

    def kill(self) -> None:
        """End it and the processes it started, with no time for anything."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
