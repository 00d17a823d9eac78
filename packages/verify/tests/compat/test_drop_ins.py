"""The drop-ins take what their callers pass, return what those return, and work where Math-Verify does not."""

import asyncio
import importlib
import inspect
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from types import ModuleType

import math_verify
import pytest
import sympy

from cooper_base.data.problem import Problem
from cooper_verify import compat
from cooper_verify.compat import (
    accuracy_reward,
    compute_score,
    correct_answer,
    default_compute_score,
    math_metric,
    parse,
    verify,
)
from cooper_verify.rules.kinds.maths import RuleVerifier

HALF = "So it is \\boxed{\\frac{1}{2}}."


def message(content: str | None) -> list[dict]:
    return [{"role": "assistant", "content": content}]


@pytest.mark.parametrize("name", ["parse", "verify", "math_metric"])
def test_arguments_have_math_verifys_names_and_order(name: str):
    ours, theirs = (list(inspect.signature(getattr(module, name)).parameters) for module in (compat, math_verify))
    assert ours == theirs


@pytest.mark.parametrize("name", ["LatexExtractionConfig", "ExprExtractionConfig", "StringExtractionConfig"])
def test_configs_have_math_verifys_fields(name: str):
    ours, theirs = (list(inspect.signature(getattr(module, name)).parameters) for module in (compat, math_verify))
    assert ours == theirs


@pytest.mark.parametrize(
    ("gold", "target", "equal"),
    [
        ("1/2", HALF, True),
        ("$\\frac{1}{3}$", HALF, False),
        ("We add. So the total is \\boxed{0.5}.", HALF, True),
        ("0.5", "<think>It is \\boxed{0.5}</think> I cannot tell.", False),
        ("B", "Answer: (B)", True),
    ],
)
def test_what_parse_returns_is_verified(gold: str, target: str, equal: bool):
    parsed_gold, parsed_target = (
        parse(text, extraction_config=[compat.LatexExtractionConfig(boxed_match_priority=0)], parsing_timeout=None)
        for text in (gold, target)
    )
    assert verify(parsed_gold, parsed_target, timeout_seconds=None) is equal
    assert verify(parsed_gold + parse("7"), parsed_target) is equal  # lists of several parses are joined by callers


def test_a_parse_is_a_list_of_one_answer_that_prints_as_it_is_written():
    (parsed,) = parse(HALF)
    assert str(parsed) == "\\frac{1}{2}"
    assert pickle.loads(pickle.dumps(parsed)) == parsed


@pytest.mark.parametrize("nothing", ["", "  ", None, "...", "<think>so it is \\boxed{3}"])
def test_where_there_is_no_answer_the_parse_is_empty_and_equals_nothing(nothing: str | None):
    assert parse(nothing) == []
    assert not verify(parse(nothing), parse(nothing))


@pytest.mark.parametrize(
    ("gold", "target", "equal"),
    [
        (sympy.Rational(1, 2), 0.5, True),
        (sympy.Symbol("x") + 1, "1+x", True),
        ([sympy.Integer(3), "three"], "3", True),
        (2, "3", False),
        (object(), "3", False),
        ("2", None, False),
    ],
)
def test_values_that_nothing_parsed_are_compared(gold: object, target: object, equal: bool):
    assert verify(gold, target) is equal


def test_a_metric_scores_each_prediction_against_all_references():
    score = math_metric(pred_extraction_target=(compat.ExprExtractionConfig(),))
    assert score(["1/2", "3"], [HALF, "\\boxed{4}"]) == (1.0, (["1/2", "3"], ["\\frac{1}{2}", "4"]))
    assert math_metric(aggregation_function=min)(["1/2"], [HALF, "\\boxed{4}"])[0] == 0.0
    assert score([""], [HALF])[0] == 0.0
    assert score(["1/2"], [])[0] == 0.0


def test_verls_callers_by_position_and_by_name():
    assert compute_score(HALF, "0.5", 0) == 1.0
    assert compute_score("\\boxed{2}", "0.5") == 0.0
    assert compute_score(data_source="gsm8k", solution_str=HALF, ground_truth="1/2", extra_info={"index": 3}) == 1.0
    assert default_compute_score("aime24", HALF, 0.5, None, sandbox_fusion_url=None) == 1.0
    assert compute_score(None, None) == 0.0


@pytest.mark.slow  # a process of its own reads mathematics
def test_a_verdict_that_takes_too_long_has_the_score_that_the_caller_chose(monkeypatch: pytest.MonkeyPatch):
    from cooper_verify.compat import process_rule
    from cooper_verify.rules.kinds.maths import RuleVerifier

    with RuleVerifier(timeout_s=0.2) as impatient:
        monkeypatch.setattr(process_rule, "_rule", impatient)
        powers = " + ".join(f"{n}^{{600000}}" for n in range(3, 100))  # each is computed in no time, all of them not
        assert compute_score(rf"\boxed{{{powers}}}", "12", timeout_score=-0.5) == -0.5


def test_trls_callers_pass_texts_or_messages_and_either_column():
    logged: dict[str, list] = {}
    completions = [message(HALF), HALF, message("\\boxed{2}"), message(None), HALF]
    rewards = accuracy_reward(
        completions, solution=["1/2", "0.5", "3", "3", ""], log_extra=logged.__setitem__, prompts=["?"] * 5
    )
    assert rewards == [1.0, 1.0, 0.0, 0.0, None]
    assert logged["verdict"][:3] == ["correct", "correct", "wrong"]
    assert accuracy_reward([HALF], answer=["1/2"]) == [1.0]
    assert accuracy_reward([HALF]) == [None]
    assert accuracy_reward([], []) == []


def test_a_rubrics_function_does_not_hold_the_loop():
    async def rubric() -> list[float]:
        pairs = [(message(HALF), "1/2"), (HALF, "2"), (message("Answer: B"), "B")]
        return await asyncio.gather(*(correct_answer(completion=c, answer=a, state={}, info={}) for c, a in pairs))

    assert asyncio.run(rubric()) == [1.0, 0.0, 1.0]


def _equal(pair: tuple[str, str]) -> bool:
    return verify(parse(pair[0]), parse(pair[1]))


NUMBERS = [(f"{n}/2", f"So \\boxed{{{n / 2 + n % 2}}}") for n in range(1, 7)]
FORMULAS = [(f"x+{n}", f"So \\boxed{{{n + n % 2}+x}}") for n in range(1, 7)]
EXPECTED = [False, True] * 3


def test_in_threads():
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(_equal, FORMULAS)) == EXPECTED


@pytest.mark.parametrize(
    ("method", "pairs"),
    [
        ("fork", NUMBERS),
        pytest.param("fork", FORMULAS, marks=pytest.mark.slow),
        pytest.param("spawn", NUMBERS, marks=pytest.mark.slow),
    ],
)
def test_in_processes_and_still_in_the_parent(method: str, pairs: list[tuple[str, str]]):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    assert _equal(pairs[0]) is EXPECTED[0]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as processes:
        assert list(processes.map(_equal, pairs)) == EXPECTED
    assert _equal(pairs[1]) is EXPECTED[1]


def test_a_fault_of_ours_scores_nothing_and_is_logged(monkeypatch: pytest.MonkeyPatch, caplog):
    from cooper_verify.compat import process_rule
    from cooper_verify.rules.kinds.maths import RuleVerifier

    with RuleVerifier() as broken:
        monkeypatch.setattr(process_rule, "_rule", broken)
        monkeypatch.setattr(sys, "executable", "/nowhere/python")  # no process can start
        monkeypatch.setattr("cooper_verify.rules.processes.child._PAUSE_S", 0.0)
        assert compute_score(r"So \boxed{\sin(x)^2+\cos(x)^2+x}", "x+1") == 0.0
    assert "no verdicts on 1 answers" in caplog.text


# TRL's own callers, with ours in the place of Math-Verify.


@pytest.fixture
def trl_rewards(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("trl", reason="TRL is not installed")
    module = importlib.import_module("trl.rewards.accuracy_rewards")
    for name in ("parse", "verify", "LatexExtractionConfig"):
        monkeypatch.setattr(module, name, getattr(compat, name))
    return module


@pytest.mark.slow  # TRL is slow to import
def test_trls_rewards_run_on_ours(trl_rewards: ModuleType):
    completions = [message(HALF), message("\\boxed{2}"), message(HALF)]
    solutions = ["0.5", "$3$", ""]
    assert trl_rewards.accuracy_reward(completions, solutions) == [1.0, 0.0, None]
    thoughts = [message(f"<think>a guess</think>{text[0]['content']}") for text in completions]
    assert trl_rewards.reasoning_accuracy_reward(thoughts, solutions) == [1.0, 0.0, None]
    assert trl_rewards.reasoning_accuracy_reward(completions[:1], solutions[:1]) == [0.0]
    scaled = trl_rewards.get_cosine_scaled_reward(max_len=100)
    assert scaled(completions, solutions, [[1] * 50] * 3) == [pytest.approx(0.75), pytest.approx(-0.75), None]


@pytest.mark.slow
def test_trls_reward_in_a_thread(trl_rewards: ModuleType):
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(trl_rewards.accuracy_reward, [message(HALF)], ["1/2"]).result() == [1.0]


REFERENCES = ["SO_4^{2-}", r"\begin{cases}x & x>0\\0 & x\le 0\end{cases}", "17 R 3", "3 $", "C > B > A", "2x\\,dx"]
REFERENCES += [r"\begin{vmatrix}1 & 2\\3 & 4\end{vmatrix}", "fifty percent", r"\{1,234\}", "A$5"]


def test_trl_reads_references_as_the_rule_does():
    with RuleVerifier() as rule:
        faults = rule.faults([(Problem("", "", reference), reference) for reference in REFERENCES])
    boxed = [rf"\boxed{{{reference}}}" for reference in REFERENCES]
    assert faults == [None] * len(REFERENCES)
    assert accuracy_reward(boxed, solution=REFERENCES) == [1.0] * len(REFERENCES)
