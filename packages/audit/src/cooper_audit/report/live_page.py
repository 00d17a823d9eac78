"""The report as a page that only this machine can open. It follows its runs and shows every completion in their
folders."""

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cooper_audit.report.report import embedded_json, report_data, report_page
from cooper_audit.run.run_record import read_groups, read_runs
from cooper_base.errors import InputError
from cooper_base.files.folder_lock import holder_of

HERE = "127.0.0.1"
WAIT_S = 30.0
"""Seconds for a client to send a request, or to read a reply."""
_NUMBER = re.compile(r"[0-9]{1,9}")


def serve_report(directories: Sequence[Path], port: int, on_open: Callable[[str], None]) -> None:
    """Serve the report of these runs at 127.0.0.1 until the process is interrupted.

    With `port` 0 the system chooses a free port; `on_open` is called with the address. Raises InputError for a folder
    without a run and for a port that is in use.
    """
    report = FollowedReport(directories)
    report.data()
    try:
        server = ThreadingHTTPServer((HERE, port), partial(_Page, report))
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; choose another port, or 0 for any free one") from error
    with server:
        on_open(f"http://{HERE}:{server.server_port}/")
        server.serve_forever()


class FollowedReport:
    """The contents of the report of runs that may still be training, read again after their folders have changed."""

    def __init__(self, directories: Sequence[Path]):
        self._directories = list(directories)
        self._lock = threading.Lock()
        self._version, self._data = "", dict[str, Any]()

    def data(self) -> dict[str, Any]:
        """The data of the page's scripts, with the `version` of the record that it was read from."""
        with self._lock:
            if (version := self.version()) != self._version:
                runs = read_runs(self._directories)
                self._data, self._version = {**report_data(runs), "version": version}, version
            return self._data

    def version(self) -> str:
        """A text that changes whenever there is something new to show."""
        files = [folder / name for folder in self._directories for name in ("metrics.jsonl", "events.jsonl")]
        changes = [(state.st_size, state.st_mtime_ns) for file in files if file.exists() for state in [file.stat()]]
        return f"{changes} {[holder_of(folder) is not None for folder in self._directories]}"

    def groups(self, run: int, step: int) -> list[dict[str, Any]]:
        """All groups of a step of a run, with all their completions; none if the step is not on record."""
        return read_groups(self._directories[run] / "rollouts" / f"{step:06d}.jsonl")


class _Page(BaseHTTPRequestHandler):
    """Routes: `/` is the page, `/data?VERSION` what is new since that version, `/rollouts/RUN/STEP` all groups of a
    step."""

    timeout = WAIT_S
    disable_nagle_algorithm = True  # or a reply's second packet waits for the browser's acknowledgement of the first

    def __init__(self, report: FollowedReport, *connection: Any):
        self._report = report
        super().__init__(*connection)

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").split(":")[0]
        if host not in (
            HERE,
            "localhost",
        ):  # a request under another site's name, whose script could then read this machine's runs
            return self._answer(403, "this page answers to 127.0.0.1 alone")
        try:
            address = urlsplit(self.path)
        except ValueError:  # no address
            return self._answer(404, "no such page")
        try:
            match address.path.strip("/").split("/"):
                case [""]:
                    self._answer(200, report_page(self._report.data(), live=True), "text/html")
                case ["data"] if unquote(address.query) == self._report.version():
                    self._answer(204, "")
                case ["data"]:
                    self._answer(200, embedded_json(self._report.data()), "application/json")
                case ["rollouts", run, step] if _NUMBER.fullmatch(run) and _NUMBER.fullmatch(step):
                    self._answer(200, embedded_json(self._report.groups(int(run), int(step))), "application/json")
                case _:
                    self._answer(404, "no such page")
        except (InputError, IndexError, OSError) as error:  # a damaged record, or a run's folder that is gone
            self._answer(404, str(error))

    def _answer(self, status: int, text: str, kind: str = "text/plain") -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        with suppress(ConnectionError, TimeoutError):  # the browser has left the page
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing, so that the terminal shows the address and no list of requests."""
