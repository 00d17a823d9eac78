"""`cooper watch --web`: a page of this machine alone that follows a run and finds among all of its completions."""

import itertools
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import quote

import pytest

from cooper_audit.report import report_completions
from runs.browser import BROWSER, DRIVER, MISSING, browser
from runs.recorded_run import completion, group, write_run

WORDS = "word " * 300
WATCH = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts in the background ignore it
from cooper_base.cli.main import app
app()"""


def metrics(steps):
    return [
        {"step": step, "reward/mean": step / 100, "rule/accuracy": 0.5, "time/step": 1.0} for step in range(steps + 1)
    ]


def groups(step):
    """Long enough for a report to hold a sample only. Few completions, because each is read for its answer."""
    return [group(f"{step}/{n}", *(completion(f"{step} {n} {i} {WORDS}", i / 2) for i in range(3))) for n in range(12)]


@contextmanager
def watched(folder) -> Iterator[int]:
    command = [sys.executable, "-c", WATCH, "watch", str(folder), "--web"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("open http://127.0.0.1:"), line
        yield int(line.split(":")[2].split("/")[0])
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def ask(port, path, host="127.0.0.1"):
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", metrics(30), groups)


@pytest.mark.slow
def test_it_answers_what_is_new_and_nothing_else(run):
    with watched(run) as port:
        status, page = ask(port, "/")
        assert status == 200
        assert "connect-src 'self'" in page
        status, text = ask(port, "/data?none")
        data = json.loads(text)
        assert (status, data["runs"][0]["last"]["reward/mean"]) == (200, 0.3)
        version = data["version"].replace(" ", "%20")
        assert ask(port, f"/data?{version}") == (204, "")
        write_run(run, metrics(31), groups)
        assert json.loads(ask(port, f"/data?{version}")[1])["runs"][0]["recorded_steps"] == 31
        whole = json.loads(ask(port, "/rollouts/0/17")[1])
        assert [len(one["completions"]) for one in whole] == [3] * 12
        for path in ("/rollouts/1/17", "/rollouts/0/..%2f..%2fconfig", "/config.yaml", "/../config.yaml", "/a/b/c"):
            assert ask(port, path)[0] == 404
        for run_of, step in itertools.product(("", "9" * 5000, "0", "-1", "+0", "\N{SUPERSCRIPT TWO}"), repeat=2):
            assert ask(port, quote(f"/rollouts/{run_of}/{step}"))[0] == (404 if (run_of, step) != ("0", "0") else 200)
        assert ask(port, "http://[")[0] == 404
        assert ask(port, "/data", host="elsewhere.example")[0] == 403
        (run / "metrics.jsonl").write_text("{\n")
        assert "metrics.jsonl:1: not JSON" in ask(port, "/data?none")[1]
        shutil.rmtree(run)
        assert "no run here" in ask(port, "/data?none")[1]


def test_a_taken_port_is_named(tmp_path):
    run = write_run(tmp_path / "run", metrics(2))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-c", WATCH, "watch", str(run), "--web", "--port", str(taken.getsockname()[1])]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert f"--port {command[-1]}: Address already in use" in refused.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)
def test_the_page_follows_and_finds_among_all_completions(run, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    assert sum(path.stat().st_size for path in (run / "rollouts").iterdir()) > report_completions.PAGE_BYTES / 2
    with browser(tmp_path / "profile") as driver, watched(run) as port:
        wait = WebDriverWait(driver, 60)

        def shows(selector, words):
            wait.until(lambda _: words in " ".join(one.text for one in driver.find_elements("css selector", selector)))

        def find(name, value):
            box = driver.find_element("id", f"find-{name}")
            script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
            driver.execute_script(script, box, value)

        driver.get(f"http://127.0.0.1:{port}/#run=run&step=14&problem=14/11&completion=2")
        shows(".aimed", "14 11 2 word")
        shows("#live", "30 of 20")
        find("words", "13 11 2")
        shows("#find-count", "1 of 1,080 completions")
        shows("#find-items .said", "13 11 2 word")

        driver.execute_script("window.searched = report.runs[0]")
        write_run(run, metrics(31), groups)
        shows("#live", "31 of 20")
        asked = "const done = arguments[0]; groupsAt(window.searched, 14).then((found) => done(found.length))"
        assert driver.execute_async_script(asked) == 12, "a search goes on while the page takes in a new step"
        assert driver.find_element("id", "rollout-step").get_attribute("value") == "14"
        assert "13 11 2" in driver.find_element("css selector", "#find-items .said").text
        find("words", "31 11 2")
        shows("#find-count", "1 of 1,116 completions")
        find("words", "")
        find("low", "0.85")
        shows("#find-count", "372 of 1,116 completions")
        assert [one["message"] for one in driver.get_log("browser") if one["level"] == "SEVERE"] == []
