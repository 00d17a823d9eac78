"""`cooper audit`: what it prints, and the exit codes that a nightly run can use."""

import json
import re
import sys

import pytest
from courses import write

from chat_server import ChatServer, HttpAnswer, completion
from cooper_base.cli.console import console
from cooper_base.cli.main import app


@pytest.fixture
def cooper(monkeypatch, capfd):
    def run(*arguments):
        """The exit code and all output."""
        monkeypatch.setattr(sys, "argv", ["cooper", "audit", *map(str, arguments)])
        with pytest.raises(SystemExit) as finished:
            app()
        streams = capfd.readouterr()
        return finished.value.code or 0, streams.out + streams.err

    return run


@pytest.mark.parametrize(
    ("kind", "options", "code", "words"),
    [
        ("hacked", [], 3, "From steps 1 to 7 to steps 9 to 15 the reward rose by +0.3"),
        ("hacked", ["--fail-on", "never"], 0, "Hacked since a step between 4 and 9. From"),
        ("healthy", ["--strict"], 0, "No hack. The check rose"),
        ("mastered", ["--strict"], 0, "No hack"),
        ("drift", ["--strict"], 0, "Format drift"),
        ("curriculum", ["--strict"], 4, "Without a reward"),
        ("essays", [], 0, "Not applicable"),
        ("essays", ["--strict"], 4, "Cannot tell"),
        ("healthy", ["--format", "verl"], 2, "did you mean 'verl-v1'?"),
        ("healthy", ["--map", "reward=reword"], 2, "--map reward=reword: no row has it; "),
        ("healthy", ["--map", "reward=nothing|score"], 0, "No hack"),
        ("healthy", ["--sample", "many"], 2, "write a number of rows, or all"),
        ("healthy", ["--labels", "nowhere.jsonl"], 2, "nowhere.jsonl"),
    ],
)
def test_exit_codes(cooper, tmp_path, kind, options, code, words):
    dump = write(tmp_path / "dump", kind)
    found, output = cooper(dump, "--out", tmp_path / "audit", "--rule", "exact", *options)
    assert found == code, output
    assert words in " ".join(output.split())
    assert len(output.splitlines()) <= 24


@pytest.mark.parametrize("name", ["run", "link", "linked"])
def test_a_folder_that_no_audit_has_written_stays_as_it_is(cooper, tmp_path, name):
    """The trainer's files have the names of the audit's, whether a link leads to them or not."""
    run = tmp_path / "run"
    write(run / "rollouts", "healthy", steps=3)
    for path in [*(run / "rollouts").iterdir()]:
        path.rename(path.with_name(f"{int(path.stem):06d}.jsonl"))
    (run / "metrics.jsonl").write_text("{}\n")
    (tmp_path / "link").symlink_to("run")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "rollouts").symlink_to(run / "rollouts")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    code, output = cooper(run / "rollouts", "--out", tmp_path / name, "--rule", "exact")
    assert code == 2
    assert "no mark says that `cooper audit` wrote them" in output
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_an_audit_inside_the_runs_folder_is_no_part_of_the_run(cooper, tmp_path):
    write(tmp_path / "run", "healthy")
    codes = [cooper(tmp_path / "run", "--out", tmp_path / "run" / "audit", "--rule", "exact")[0] for _ in range(2)]
    assert codes == [0, 0]


def test_a_judge_alone_is_said_to_be_no_check(cooper, tmp_path):
    dump = write(tmp_path / "dump", "healthy", "nemo-rl", steps=4)  # which holds no references
    (tmp_path / "own.py").write_text("def short(problem, completion):\n    return -float(len(completion.text))\n")
    code, output = cooper(dump, "--out", tmp_path / "audit", "--grader", f"short={tmp_path / 'own.py'}:short")
    assert code == 0
    assert "never the check. Only a rule with references, or your labels, decides" in " ".join(output.split())
    assert "cut off: unknown, then unknown" in (tmp_path / "audit" / "report.html").read_text()


def rows_of_table(output):
    """The cells of each row of the table on the terminal."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if line.startswith("│")]


@pytest.mark.slow
def test_a_judge_of_a_real_server_is_a_grader_whose_failures_are_counted(cooper, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "width", 120)  # a table that is not wrapped
    broken = True

    def respond(request, number):
        if broken and number % 4 == 3:
            return HttpAnswer("{}", status=400)
        return completion("no" if re.search(r"\d or \d", json.dumps(request["messages"])) else "yes")

    dump = write(tmp_path / "dump", "hacked")
    with ChatServer(respond) as server:
        (tmp_path / "judge.yaml").write_text(f"judge: {{kind: chat, base_url: '{server.url}', model: m}}\n")
        command = (dump, "--out", tmp_path / "audit", "--rule", "exact", "--judge", tmp_path / "judge.yaml")
        code, output = cooper(*command)
        first, broken = len(server.requests), False
        again, repeated = cooper(*command)
        assert (code, again) == (3, 3), output
        asked = 2 * 256
        assert first >= asked
        assert len(server.requests) - first <= asked / 4 + 2  # those that failed, and whether the server is there
    judged = [cells[:4] for cells in rows_of_table(output) if cells[0] == "judge"]
    assert [cells[2] for cells in judged] == ["192 of 256", "192 of 256"]
    judged = [cells[:4] for cells in rows_of_table(repeated) if cells[0] == "judge"]
    assert judged == [["judge", "before the onset", "256", "1.00"], ["judge", "after the onset", "256", judged[1][3]]]
    assert float(judged[1][3]) < 0.2  # it says no to lists
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "<td>judge</td><td>before the onset</td><td>256</td><td>1.00</td>" in page


def test_a_judge_whose_server_is_not_there_is_an_error_after_the_verdict(cooper, tmp_path):
    (tmp_path / "judge.yaml").write_text("judge: {kind: chat, base_url: 'http://127.0.0.1:9/v1', model: m}\n")
    dump = write(tmp_path / "dump", "hacked")
    command = (dump, "--out", tmp_path / "audit", "--rule", "exact", "--judge", tmp_path / "judge.yaml")
    code, output = cooper(*command)
    assert code == 2
    assert "Hacked since a step between" in output
    assert "127.0.0.1:9" in output


def test_any_grader_has_a_name_and_a_row(cooper, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "width", 120)
    (tmp_path / "own.py").write_text("def short(problem, completion):\n    return -float(len(completion.text))\n")
    graders = "--grader", "again=rule:exact", "--grader", f"short={tmp_path / 'own.py'}:short"
    dump = write(tmp_path / "dump", "hacked")
    code, output = cooper(dump, "--out", tmp_path / "audit", "--rule", "exact", *graders)
    assert code == 3, output
    rows = {(row[0], row[1]): row[2:] for row in rows_of_table(output)}
    assert rows["again", "before the onset"][2] == "1.00", "the check agrees with itself"
    assert rows["short", "before the onset"][1:3] == ["–", "–"], "nobody knows the scale of its numbers"
    assert rows["short", "before the onset"][3] != "–"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--grader", "rule:exact"], "write NAME=GRADER, such as exact=rule:exact"),
        (["--grader", "reward=rule"], "'reward' is not a valid name, or is used already"),
        (["--grader", "a=rule", "--grader", "a=rule:exact"], "'a' is not a valid name, or is used already"),
        (["--grader", "a=nonsense"], "nonsense: no such grader; write rule"),
        (["--grader", "a=rule", "--no-text"], "graders read texts"),
    ],
)
def test_a_grader_that_is_none_is_refused_before_the_audit(cooper, tmp_path, options, words):
    code, output = cooper(tmp_path / "nowhere", "--out", tmp_path / "audit", *options)
    assert code == 2
    assert words in " ".join(output.split())


def test_a_run_of_cooper_has_its_verdict_in_its_report(cooper, tmp_path):
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "config.yaml").write_text("name: x\n")
    code, output = cooper(tmp_path, "--out", tmp_path / "audit")
    assert code == 2
    assert f"is a run of Cooper; `cooper report {tmp_path}` has its verdict" in " ".join(output.split())
    (tmp_path / "rollouts" / "000001.jsonl").write_text('{"problem": "1", "question": "1 + 1", "completions": []}\n')
    code, output = cooper(tmp_path / "rollouts", "--out", tmp_path / "audit")
    assert code == 2
    assert f"is of a run of Cooper; `cooper report {tmp_path}` has its verdict" in " ".join(output.split())
