"""A pattern that takes more than linear time stalls no process but the one that reads texts."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from cooper_base.data.problem import Problem
from cooper_base.data.text import boxed
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.maths import MathsRule, RuleVerifier
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.rules.other_answers import are_different, stated_answers
from cooper_verify.rules.processes import guard
from cooper_verify.rules.processes.child import cpu_budget
from cooper_verify.rules.rule import RULES as KINDS
from cooper_verify.rules.rule import ComputedConfig, RuleConfig
from planted import EXPONENTIAL, STALLS, planted
from slow_members import first_fast


@pytest.fixture
def pattern(tmp_path, monkeypatch) -> Iterator[None]:
    """The process that reads texts has a pattern which takes exponential time on `STALLS`."""
    (tmp_path / "sitecustomize.py").write_text(planted(EXPONENTIAL))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    guard._guard.close()
    yield
    guard._guard.close()


def _process() -> psutil.Process:
    """The process that reads texts."""
    guard.guarded(int, [(1,)], 0)
    process = guard._guard._process
    assert process is not None
    return psutil.Process(process.pid)


SLOW_TO_IMPORT = """
import time
from typing import Literal
from cooper_verify.rules.rule import ComputedConfig

until = time.process_time() + 0.7
while time.process_time() < until:
    pass

class Slow(ComputedConfig):
    kind: Literal["slow_to_import:Slow"] = "slow_to_import:Slow"

    def verdict(self, problem, text):
        return "correct" if problem.answer in text else "wrong"
"""
"""A rule whose module takes longer to import than a text may take."""


@pytest.mark.slow
def test_what_a_rule_takes_to_import_is_not_on_the_first_text(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(SLOW_TO_IMPORT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    guard._guard.close()
    settings = KINDS.read({"kind": "slow_to_import:Slow"})
    assert isinstance(settings, ComputedConfig)
    rule = settings.build()
    problem = Problem("p", "Which?", "12")
    assert rule.verify_problems([(problem, "12"), (problem, "13")]) == ["correct", "wrong"]
    assert rule.faults([(problem, "12")]) == [None]
    guard._guard.close()


RULES: dict[str, tuple[RuleConfig, str, str]] = {
    "maths": (MathsRule(), "12", "13"),
    "exact": (ExactRule(), "Tokyo", "Kyoto"),
    "choice": (ChoiceRule(), "B", "C"),
    "numeric": (NumericRule(), "2.5", "2.7"),
}


@pytest.mark.parametrize("kind", first_fast(RULES))
def test_a_text_that_stalls_a_pattern_is_a_timeout_and_its_neighbours_have_their_verdicts(pattern, kind):
    settings, right, wrong = RULES[kind]
    problem = Problem("p", "Which?", right)
    texts = [boxed(right), STALLS, boxed(wrong), boxed(right)]
    with settings.build() as rule:
        assert rule.verify_problems([(problem, text) for text in texts]) == ["correct", "timeout", "wrong", "correct"]


@pytest.mark.parametrize("kind", first_fast(["exact", "maths"]))
def test_a_reference_that_stalls_a_pattern_does_not_verify(pattern, kind):
    assert "timeout" in (RULES[kind][0].build().fault(Problem("p", "Which?", STALLS), STALLS) or "")


def test_what_completions_state_is_read_there_too(pattern):
    assert stated_answers([r"\boxed{12}", STALLS]) == [("12",), ()]
    assert are_different("12", "13")


def test_other_threads_go_on_meanwhile(pattern):
    _process()
    with RuleVerifier() as verifier, ThreadPoolExecutor(1) as thread:
        stalled = thread.submit(verifier.verify, "12", STALLS)
        longest, last = 0.0, time.monotonic()
        while not stalled.done():
            time.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert stalled.result() == "timeout"
        assert longest < 0.8


def test_a_process_that_is_killed_from_outside_is_replaced_and_asked_again():
    first = _process()
    first.kill()
    with RuleVerifier() as verifier:
        assert verifier.verify_many([("12", r"\boxed{12}"), ("12", r"\boxed{13}")]) == ["correct", "wrong"]
    assert _process().pid != first.pid


def test_all_rules_and_threads_share_one_process():
    pid = _process().pid
    problem = Problem("p", "Which?", "B")
    with RuleVerifier() as one, ChoiceRule().build() as other, ThreadPoolExecutor(8) as threads:
        pairs = [(str(number), boxed(str(number + number % 2))) for number in range(400)]
        expected = ["wrong" if number % 2 else "correct" for number in range(400)]
        verdicts = [threads.submit(one.verify_many, pairs) for _ in range(8)]
        choices = threads.submit(other.verify_problems, [(problem, boxed(letter)) for letter in "ABCD" * 100])
        assert [verdict.result() for verdict in verdicts] == [expected] * 8
        assert choices.result() == ["wrong", "correct", "wrong", "wrong"] * 100
    assert _process().pid == pid


def test_an_interrupted_question_leaves_no_reply_for_the_next(pattern):
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    _process()
    before = signal.signal(signal.SIGINT, interrupt)
    with RuleVerifier() as verifier:
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            verifier.verify_many([("12", STALLS)] * 2 + [("12", r"\boxed{12}")])
        signal.signal(signal.SIGINT, before)
        assert verifier.verify("12", r"\boxed{13}") == "wrong"


def test_an_error_in_the_process_is_an_error_here():
    with pytest.raises(RuntimeError, match="invalid literal for int"):
        guard.guarded(int, [("x",)], 0)


IN_A_FORK = r"""
import os
from cooper_rl import RuleVerifier
verifier = RuleVerifier()
assert verifier.verify("12", r"\boxed{12}") == "correct"
child = os.fork()
for number in range(100):
    assert verifier.verify(str(number), rf"\boxed{{{number}}}") == "correct"
    assert verifier.verify(str(number), r"\boxed{999}") == "wrong"
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_a_process_of_its_own():
    subprocess.run([sys.executable, "-c", IN_A_FORK], check=True)


ENDS = r"""
import sys, time
from cooper_verify.rules.processes import guard
guard.guarded(int, [(1,)], 0)
print(guard._guard._process.pid, flush=True)
time.sleep(60)
"""


def test_it_ends_with_its_parent_even_if_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", ENDS], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    process = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    psutil.wait_procs([process], timeout=20)
    assert not process.is_running()


def test_a_spent_budget_leaves_timeouts_and_nothing_behind():
    slow, fast = ("x^2+2x", r"\boxed{x(x+2)}"), ("12", r"\boxed{12}")
    with RuleVerifier() as verifier:
        with cpu_budget(0.0) as budget:
            assert budget.is_spent
            assert verifier.verify_many([slow, fast]) == ["timeout", "timeout"]
        assert verifier.verify_many([slow, fast]) == ["correct", "correct"]
        with cpu_budget(60.0) as budget:
            assert verifier.verify_many([slow, fast]) == ["correct", "correct"]
            assert not budget.is_spent


CHILDREN_UNSEEN = """
import os, signal, sys
from cooper_verify.rules.processes import guard
from cooper_verify.rules.kinds.maths import RuleVerifier
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as some servers and notebooks do
eats_memory = r"\\boxed{" + r"2^{4000000} \\cdot " * 24 + "2}"
with RuleVerifier(memory_mib=200) as verifier:
    print(verifier.verify("12", r"\\boxed{12}"))
    process = guard._guard._process
    os.kill(process.pid, signal.SIGKILL)
    process.stdout.read()  # it is dead
    print(verifier.verify("13", r"\\boxed{13}"))
    print(verifier.verify("2x+2", r"\\boxed{2(x+1)}"), verifier.verify("12", eats_memory))
    print(verifier.verify("2x+3", r"\\boxed{2(x+3/2)}"))
"""


def test_a_program_that_ignores_its_children_has_the_same_verdicts():
    command = [sys.executable, "-c", CHILDREN_UNSEEN]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.stderr.count("Traceback") == 0, ended.stderr
    assert ended.stdout.split() == ["correct", "correct", "correct", "timeout", "correct"]
