"""A grader in a process of its own: what the user's code does there does not reach the command."""

import os
import subprocess
import sys
import time
from contextlib import closing

import pytest

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_base.progress import Listener, Progress, listening
from cooper_verify.grader import RAISED, Asked, Opinion
from cooper_verify.graders.apart import GraderApart
from cooper_verify.graders.written import open_grader

GRADERS = """
import os, signal, subprocess, sys, threading, time
from cooper_verify.grader import Grader, Opinion

def right(completion, reference):
    return float(completion == reference)

def prints(completion, reference):
    print("a note")
    os.write(1, b"past Python\\n")
    subprocess.run(["echo", "by another process"])
    return right(completion, reference)

def closes(completion, reference):
    sys.stdout.close()
    return right(completion, reference)

def asks(completion, reference):
    return float(sys.stdin.read() == "")

def threads(completion, reference):
    threading.Thread(target=time.sleep, args=(600,)).start()
    return right(completion, reference)

def forks(completion, reference):
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)

def exits(completion, reference):
    os._exit(0)

def crashes(completion, reference):
    os.kill(os.getpid(), signal.SIGSEGV)

def sleeps(completion, reference):
    time.sleep(600)

def raises(completion, reference):
    if completion == "bad":
        raise ValueError("no \\x1b[31mnumber")
    return right(completion, reference)

def batch(problems, completions):
    return [raises(completion.text, problem.answer) for problem, completion in zip(problems, completions)]

def leaves(completion, reference):
    sys.exit(0)

def sees(problem, completion):
    return float(problem.metadata == {"level": 3, "tags": ["a", None]} and problem.messages == [{"role": "user"}])

class Made:
    def __init__(self, model):
        self.model = model
    def __call__(self, completion, answer):
        return 1.0

class Own(Grader):
    reads_reference = False
    accepts_above = 0.25
    def grade(self, answers):
        return [Opinion("correct" if text == problem.answer else "wrong", 0.5) for problem, text in answers]

class Leaves(Grader):
    def grade(self, answers):
        sys.exit(0)
"""
PROBLEM = Problem("p", "How many?", "7", metadata={"level": 3, "tags": ["a", None]}, messages=[{"role": "user"}])
ANSWERS = [Asked(PROBLEM, text) for text in ("7", "8", "bad", "7")]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own_graders.py"
    path.write_text(GRADERS)
    return path


def scores(file, name, answers=ANSWERS):
    with closing(GraderApart(open_grader, f"{file}:{name}", [])) as grader:
        return [opinion.score for opinion in grader.grade(answers)]


@pytest.mark.parametrize("name", ["right", "prints", "closes", "threads"])
def test_numbers_are_those_of_the_function(file, name, capfd):
    """What it prints goes to standard error, and its threads end with it."""
    assert scores(file, name) == [1.0, 0.0, 0.0, 1.0]
    streams = capfd.readouterr()
    assert streams.out == ""
    printed = ("a note", "past Python", "by another process")
    assert [streams.err.count(text) for text in printed] == [4 * (name == "prints")] * 3


def test_it_sees_the_whole_problem_and_an_empty_standard_input(file):
    assert scores(file, "sees") == [1.0] * 4
    assert scores(file, "asks") == [1.0] * 4


def test_it_says_of_itself_what_it_says_in_this_process(file):
    for written in (f"{file}:Own", f"{file}:right", "rule:exact"):
        here = open_grader(written)
        with closing(here), closing(GraderApart(open_grader, written, [])) as apart:
            assert apart.settings() == here.settings()
            for name in ("name", "accepts_above", "reads_reference", "gives_verdicts", "compares_answers"):
                assert getattr(apart, name) == getattr(here, name)
            assert apart.grade(ANSWERS) == here.grade(ANSWERS)


@pytest.mark.parametrize("name", ["raises", "batch"])
def test_only_the_answer_on_which_it_raises_has_no_score(file, name):
    with closing(GraderApart(open_grader, f"{file}:{name}", [])) as grader:
        opinions = grader.grade(ANSWERS)
    assert [opinion.score for opinion in opinions] == [1.0, 0.0, None, 1.0]
    why = opinions[2].why or ""
    assert opinions[2] == Opinion("silent", None, why)
    assert why.startswith(RAISED + "ValueError: no \\x1b[31mnumber ")
    assert why.endswith(f"own_graders.py:{GRADERS[: GRADERS.index('raise Value')].count(chr(10)) + 1})")


@pytest.mark.parametrize("name", ["leaves", "Leaves"])
def test_an_exit_is_a_fault_of_its_answer(file, name):
    with closing(GraderApart(open_grader, f"{file}:{name}", [])) as grader:
        assert all("called sys.exit(0)" in (opinion.why or "") for opinion in grader.grade(ANSWERS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals and forks")
@pytest.mark.parametrize(
    ("name", "how"), [("exits", "exit code 0"), ("forks", "exit code 0"), ("crashes", "signal SIGSEGV")]
)
def test_the_end_of_its_process_is_an_error(file, name, how):
    with pytest.raises(InputError, match=rf"{name}: ended its process \({how}\) while it scores 4 answers"):
        scores(file, name)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os; os._exit(0)", r"ended its process \(exit code 0\) while it is opened"),
        ("import sys; sys.exit(0)", r"called sys.exit\(0\)"),
        ("1/0", r"raised ZeroDivisionError: division by zero \(broken.py:1\)"),
        ("import nothing_of_this_name", "No module named"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_an_error(tmp_path, source, message):
    (tmp_path / "broken.py").write_text(source)
    with pytest.raises(InputError, match=message):
        scores(tmp_path / "broken.py", "f")


def test_a_class_that_is_made_with_arguments_is_named(file):
    with pytest.raises(InputError, match=r"Made: its objects are made with arguments \(missing .*'model'\); give each"):
        scores(file, "Made")


def test_its_silence_is_told_and_can_be_broken_off(file):
    told = []

    def listen(progress: Progress) -> None:
        told.append(progress.note)
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), listening(Listener(listen)):
        scores(file, "sleeps")
    assert "own_graders.py:sleeps, which " in told[0]
    assert time.monotonic() - start < 60


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_ends_with_its_parent(file):
    """Also while it sleeps."""
    source = "import sys; from cooper_verify.graders.apart import GraderApart; "
    source += "from cooper_verify.graders.written import open_grader; from cooper_verify.grader import Asked; "
    source += "grader = GraderApart(open_grader, sys.argv[1], []); print(grader._process._process.pid, flush=True); "
    source += "grader.grade([Asked.about('q', '7', '7')])"
    command = [sys.executable, "-c", source, f"{file}:sleeps"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.kill()
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{child}") and time.monotonic() < deadline:
        state = open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()[0]  # noqa: SIM115
        if state == "Z":
            break
        time.sleep(0.1)
    else:
        assert not os.path.exists(f"/proc/{child}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("10**400", r"1000.*0000"),
        ("10**5000", "an integer of about 5000 digits"),
        ("1e999", "inf"),
        ("'a'", "'a'"),
        ("1j", "1j"),
    ],
)
def test_a_score_that_no_run_can_pay_is_an_error(tmp_path, value, shown):
    (tmp_path / "big.py").write_text(f"def f(completion, reference):\n    return {value}\n")
    with pytest.raises(InputError, match=f"f: returned {shown} for problem p; return a finite number, or None"):
        scores(tmp_path / "big.py", "f")
