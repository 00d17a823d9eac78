"""A verifier that nothing can stall or crash."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import comb
from pathlib import Path

import pytest

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_rl.reward.context import StepContext
from cooper_rl.reward.kinds.plain import RuleReward
from cooper_rl.reward.scored import verdict_metrics
from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.kinds.maths import RuleVerifier

_POWERS = [f"{n}^{{600000}}" for n in range(3, 100)]
STALLS = [rf"\boxed{{{' + '.join(_POWERS)}}}", f"answer: {' * '.join(_POWERS)} - 1"]
"""Each power is computed in no time, all of them not."""


def _product(factors: int, last: int = 0) -> str:
    """Half a megabyte a factor, all of them in memory."""
    return r"\boxed{" + r"2^{4000000} \cdot " * factors + f"2^{{{4000000 + last}}}}}"


DEEP = ("2x+14", r"\boxed{2(x+" + "{" * 20 + "7" + "}" * 20 + ")}")
SLOW_BUT_RIGHT = ("2x+2", r"\boxed{2(x+1)}")
SLOWER_BUT_RIGHT = ("(x+1)^{32}", rf"\boxed{{{'+'.join(f'{comb(32, n)}x^{{{n}}}' for n in range(33))}}}")
"""About half a second of CPU time."""


@pytest.fixture(scope="module")
def verifier():
    with RuleVerifier(timeout_s=5) as verifier:
        yield verifier


def _worker_pid(verifier: RuleVerifier) -> int:
    process = verifier._processes[0]._process
    assert process is not None
    return process.pid


def test_inputs_that_stall_math_verify_time_out_and_the_next_one_is_answered():
    with RuleVerifier(timeout_s=0.7) as verifier:
        for bomb in STALLS:
            assert verifier.verify("12", bomb) == "timeout"
            assert 0.35 < verifier.cpu_s_of("12", bomb) < 3.5  # a busy machine counts its ticks unevenly
        assert verifier.verify("2y+2", r"\boxed{2(y+1)}") == "correct"
        assert verifier.counts["timeout"] == verifier.counts["killed"] == len(STALLS)


def test_answers_that_stall_or_eat_memory_cost_their_neighbours_nothing():
    """They share a process, which dies with them."""
    right = [(f"2x+{2 * n}", rf"\boxed{{2(x+{n})}}") for n in range(1, 5)]
    pairs = [right[0], ("12", STALLS[0]), right[1], ("12", STALLS[1]), right[2], DEEP, right[3]]
    with RuleVerifier(timeout_s=0.7) as verifier:
        verdicts = verifier.verify_many(pairs)
        assert verdicts == ["correct", "timeout", "correct", "timeout", "correct", "correct", "correct"]
        assert verifier.counts["killed"] == 2
        assert verifier.counts["answered"] == 5


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_deep_answer_spares_the_fork_that_has_learned():
    with RuleVerifier() as verifier:
        verifier.verify(*SLOW_BUT_RIGHT)
        pid = _worker_pid(verifier)
        forks = Path(f"/proc/{pid}/task/{pid}/children")
        before = forks.read_text()
        assert verifier.verify(*DEEP) == verifier.verify("2y+2", r"\boxed{2(y+1)}") == "correct"
        assert forks.read_text() == before != ""


@pytest.mark.slow
def test_a_right_answer_that_is_slow_on_a_busy_machine_is_right():
    """The machine does something else for longer than the answer may take."""
    with RuleVerifier(timeout_s=2, expressions=True) as verifier, ThreadPoolExecutor(1) as thread:
        verifier.verify(*SLOW_BUT_RIGHT)
        asked = thread.submit(verifier.verify, *SLOWER_BUT_RIGHT)
        time.sleep(0.1)
        os.killpg(_worker_pid(verifier), signal.SIGSTOP)
        time.sleep(3)
        os.killpg(_worker_pid(verifier), signal.SIGCONT)
        assert asked.result() == "correct"
        assert 0.05 < verifier.cpu_s_of(*SLOWER_BUT_RIGHT) < 2


@pytest.mark.slow
def test_a_process_that_does_nothing_is_replaced_and_asked_again():
    with RuleVerifier(wall_s=5) as verifier:
        verifier.verify(*SLOW_BUT_RIGHT)
        os.killpg(_worker_pid(verifier), signal.SIGSTOP)
        assert verifier.verify("2y+2", r"\boxed{2(y+1)}") == "correct"
        assert verifier.counts["lost"] == 1


def test_a_process_that_dies_is_replaced_and_asked_again():
    with RuleVerifier() as verifier:
        assert verifier.verify(*SLOW_BUT_RIGHT) == "correct"
        first = _worker_pid(verifier)
        os.kill(first, signal.SIGKILL)
        assert verifier.verify("2y+2", r"\boxed{2(y+1)}") == "correct"
        assert _worker_pid(verifier) != first
        assert verifier.counts["lost"] == 1


DIES = """
import os, pathlib, signal
left = pathlib.Path(__file__).with_name("deaths")
count = int(left.read_text())
if count:
    left.write_text(str(count - 1))
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""What Python imports as it starts: it kills the process as often as the file beside it says."""


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_starts_is_started_again_a_few_times(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(DIES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "deaths").write_text("2")
    with RuleVerifier() as verifier:
        assert verifier.verify(*SLOW_BUT_RIGHT) == "correct"
    (tmp_path / "deaths").write_text("99")
    with RuleVerifier() as verifier, pytest.raises(InputError, match=r"did not start, 4 times \(exit code -9\)"):
        verifier.verify(*SLOW_BUT_RIGHT)


@pytest.mark.skipif(sys.platform != "linux", reason="address-space limits are a Linux matter")
def test_an_answer_that_eats_memory_is_a_timeout_not_a_wrong_answer():
    with RuleVerifier(timeout_s=20, memory_mib=200) as verifier:
        assert verifier.verify("12", _product(24)) == "timeout"
        assert verifier.verify(*SLOW_BUT_RIGHT) == "correct"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address-space limits are a Linux matter")
def test_memory_that_earlier_answers_took_does_not_count():
    with RuleVerifier(timeout_s=20, memory_mib=400, cache_size=0) as verifier:
        for _ in range(3):
            assert [verifier.verify("12", _product(8, last=n)) for n in (0, 1, 2)] == ["wrong"] * 3


def test_stalled_processes_do_not_outlive_the_verifier():
    verifier = RuleVerifier(timeout_s=30)
    verifier.verify(*SLOW_BUT_RIGHT)
    pid = _worker_pid(verifier)
    del verifier
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_many_threads_share_a_verifier(verifier):
    pairs = [("12", f"answer: {n}") for n in range(20)] + [
        (f"2x+{2 * (n % 5)}", rf"\boxed{{2(x+{n % 7})}}") for n in range(40)
    ]
    expected = ["correct" if n == 12 else "wrong" for n in range(20)]
    expected += ["correct" if n % 5 == n % 7 else "wrong" for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda pair: verifier.verify(*pair), pairs)) == expected
    assert verifier.verify_many(pairs) == expected


def test_two_workers_keep_the_order():
    pairs = [("2x+2", r"\boxed{2(x+1)}"), ("12", "answer: 12"), ("x+2", r"\boxed{1+x}"), ("12", "")]
    with RuleVerifier(workers=2) as verifier:
        assert verifier.verify_many(pairs) == ["correct", "correct", "wrong", "unparsed"]


def test_the_cache_is_bounded_and_spares_the_second_question():
    with RuleVerifier(cache_size=2) as verifier:
        for n in (1, 2, 3, 3, 1):
            verifier.verify(f"2x+{2 * n}", rf"\boxed{{2(x+{n})}}")
        assert verifier.counts["cached"] == 1
        assert verifier.counts["answered"] == 4


def test_completions_that_end_in_the_same_answer_cost_one_question():
    texts = [
        r"So \boxed{2(x+1)}.",
        r"First x, then 1: \boxed{2(x+1)}",
        r"\boxed{2(x+1)}. Actually no, \boxed{x}",
        r"\boxed{2(x+1)}, wait, no",
    ]
    with RuleVerifier() as verifier:
        assert verifier.verify_many([("2x+2", text) for text in texts]) == [
            "correct",
            "correct",
            "unparsed",
            "unparsed",
        ]
        assert (verifier.counts["answered"], verifier.counts["cached"]) == (1, 1)
        assert verifier.cpu_s_of("2x+2", texts[0]) == verifier.cpu_s_of("2x+2", texts[1]) > 0


def test_a_reference_answer_must_verify_against_itself(verifier):
    good = [
        "12",
        "1,234",
        r"\frac{3}{4}",
        "[1, 2)",
        "A",
        "3 or -3",
        "work\n#### 50",
        r"\boxed{7}",
        "1e-05",
        "Mrs. Hilt",
    ]
    bad = ["", "  ", "}"]
    assert [verifier.fault(Problem("p", "?", answer), reference_text(answer)) for answer in good] == [None] * len(good)
    assert all(verifier.fault(Problem("p", "?", answer), answer) for answer in bad)


def test_the_rule_reward_pays_only_correct_answers(verifier, make_group):
    groups = [make_group("12", "answer: 12", "answer: 13", "hm"), make_group("3", "", "answer: 3", r"\boxed{3}")]
    context = StepContext(groups, verifier)
    scores = RuleReward().score(context)
    assert scores.rewards.rows() == [[1, 0, 0], [0, 1, 1]]
    assert scores.parts["rule"].rows() == scores.rewards.rows()
    shares = {"rule/accuracy": 0.5, "rule/wrong": 1 / 6, "rule/unparsed": 2 / 6, "rule/timeout": 0}
    assert verdict_metrics(context.verdicts) == pytest.approx(shares)


def test_a_script_without_a_main_guard_can_verify(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from cooper_verify import RuleVerifier\nprint(RuleVerifier().verify('x+1', r'\\boxed{1+x}'))\n")
    (tmp_path / "sympy.py").write_text("raise SystemExit('a file of the user shadows a library')\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "correct\n", done.stderr


def test_async_code_awaits_verdicts_while_its_loop_keeps_running():
    async def main() -> tuple[Sequence[str], int]:
        with RuleVerifier(workers=2, timeout_s=0.7) as verifier:
            beats = 0

            async def beat() -> None:
                nonlocal beats
                while True:
                    await asyncio.sleep(0.02)
                    beats += 1

            heart = asyncio.create_task(beat())
            pairs = [("12", STALLS[0]), ("12", "answer: 12"), ("2x+2", r"\boxed{2(x+1)}")]
            verdicts = await asyncio.gather(*(verifier.verify_async(*pair) for pair in pairs))
            heart.cancel()
            return verdicts, beats

    verdicts, beats = asyncio.run(main())
    assert verdicts == ["timeout", "correct", "correct"]
    assert beats > 10


@pytest.mark.slow
def test_processes_started_by_spawn_have_their_own_verifiers():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_verdict_in_a_process, ["1+x", "2+x"]) == ["correct", "wrong"]


def _verdict_in_a_process(answer: str) -> str:
    with RuleVerifier() as verifier:
        return verifier.verify("x+1", rf"\boxed{{{answer}}}")


def test_the_verifier_process_stays_light():
    code = (
        "import sys, cooper_verify.rules.processes.worker, cooper_verify.rules.kinds.maths\n"
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
