"""Whatever a text repeats, every entry that reads texts from outside is done with 100,000 characters in a moment."""

import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
from shelf import pairwise_judge, rubric_judge

from cooper_base.data import mappings
from cooper_base.data.problem import Problem
from cooper_base.data.text import fenced, normalise
from cooper_base.data.transcript import outside_turns, rendered, turns_in, turns_of
from cooper_rl.reward.pairs.assistant import unframe
from cooper_verify.clients.chat import ChatReply
from cooper_verify.graders.judgement import parse_reply
from cooper_verify.rules.answer.extraction import TAIL_CHARS, extract_answer, reference_text, text_answer
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.rules.rule import Rule
from cooper_verify.rules.verdicts.fast_path import fast_verdict

SECONDS = 0.1
"""CPU time of one call."""
# fmt: off
PARTS = [
    "{", "}", "(", ")", "[", "$", "\\", "\\\\", "\\(", "\\[", "\\,", "\\ ", "~", "\n", " ", "\t", "!", "! ", "!\n",
    "a", "A ", "1", "1,", "1, ", "1. ", "1 ", "1/", "1/2 ", "- 1", "= 1 ", "+ 1 ", "1 cm ", "1% ", "}2", "^ 2",
    "^{2}", "_1", "-", "--", "\\boxed{", "\\boxed{1}", "\\boxed{1}. ", "\\text{", "\\text{a}", "\\frac{1}{2}",
    "answer: 1\n", "The answer is 1. ", "A:\n", "#", "\"answer\": \"", "A) ", "(A) ", "B. x\n", "A or ", "not A, ",
    "option A ", "yes ", "no, ", "because ", "the ", "January 1 ", "12:30 ", "and ", " , ", ": ", "/", "**", "'",
    "\"", "%", "e\u0301", "\u2600", "\u2600 !", "```\n", "[[A]]", "<tool_call>{}",
    "<tool_call>{\"name\": \"a\"}</tool_call>", "<tool_response>", "<think>", "<think></think>", "<answer>",
    "<answer>1</answer>", "<|im_end|>", "<|im_start|>user\n", "</s>", "MUST:", "1. yes\n", "\\noindent",
]
# fmt: on
ENDS = [("", ""), ("", "x"), ("x", " z\x00")]


def _problem(question: str, answer: str) -> Problem:
    return Problem("p", question, answer)


def _by(rule: Rule) -> dict[str, Callable[[str], object]]:
    listed = "Which? A) 1 B) 2"
    return {
        "question": lambda text: rule.verify_problems([(_problem(text, "B"), "answer: B")]),
        "reference": lambda text: rule.verify_problems([(_problem(listed, text), "answer: B")]),
        "completion": lambda text: rule.verify_problems([(_problem(listed, "B"), text)]),
        "statement": lambda text: rule.verify_problems([(_problem(listed, "B"), f"answer: {text}")]),
        "fault": lambda text: rule.fault(_problem(listed, text), text),
    }


def _last_boxed(text: str) -> None:
    with suppress(mappings.BadValue):
        mappings.last_boxed(text)


ENTRIES: dict[str, Callable[[str], object]] = {
    "number": lambda text: fast_verdict("12", text),
    "factorial": lambda text: fast_verdict("5!", text),
    "box": lambda text: fast_verdict("12", f"\\boxed{{{text}}}"),
    "statement": lambda text: fast_verdict("12", f"The answer is {text}"),
    "words": lambda text: fast_verdict("Tokyo", f"answer: {text}"),
    "letter": lambda text: fast_verdict("B", text),
    "reference": lambda text: fast_verdict(text[-TAIL_CHARS:], r"\boxed{12}"),
    "long reference": lambda text: fast_verdict(text, r"\boxed{12}"),
    "reference in words": lambda text: fast_verdict(text[-TAIL_CHARS:], "The answer is St. Louis. A. b. 5."),
    "both": lambda text: fast_verdict(text[-TAIL_CHARS:], text),
    "unit": lambda text: fast_verdict(f"5 cm{text[:190]}", rf"\boxed{{5 cm{text[:190]}}}"),
    "reference_text": reference_text,
    "extract_answer": extract_answer,
    "text_answer": text_answer,
    **{f"exact: {name}": entry for name, entry in _by(ExactRule().build()).items()},
    **{f"choice: {name}": entry for name, entry in _by(ChoiceRule().build()).items()},
    **{f"numeric: {name}": entry for name, entry in _by(NumericRule().build()).items()},
    "transcript": lambda text: rendered(turns_of([{"role": role, "content": text} for role in ("assistant", "tool")])),
    "turns in a text": lambda text: (turns_in([text, text]), outside_turns(text)),
    "judge": parse_reply,
    "rubric": lambda text: (rubric_judge._CRITERION.findall(text), rubric_judge._GRADE.findall(text)),
    "duel": lambda text: pairwise_judge.read_preference(ChatReply(text)),
    "assistant": lambda text: unframe(text, "plain"),
    "reward model": lambda text: (normalise(text), fenced(text)),
    "solution": _last_boxed,
    "unit of a data set": mappings._without_unit,
    "debris of a data set": mappings._odyssey_answer,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_texts_are_read_in_a_moment(entry: str):
    assert _slow(ENTRIES[entry], 8_000, ENDS[1:2]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_long_texts_are_read_in_a_moment(entry: str):
    assert _slow(ENTRIES[entry], 100_000, ENDS) == {}


def _slow(entry: Callable[[str], object], length: int, ends: list[tuple[str, str]]) -> dict[str, float]:
    """The texts that take longer every time, with the seconds."""
    slow: dict[str, float] = {}
    for part in PARTS:
        for before, after in ends:
            text = before + part * (length // len(part)) + after
            if _seconds(entry, text) > SECONDS and (least := min(_seconds(entry, text) for _ in range(3))) > SECONDS:
                slow[f"{before!r} + {part!r} * n + {after!r}"] = least
    return slow


def _seconds(entry: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    entry(text)
    return time.thread_time() - start


@pytest.mark.parametrize("body", ["!", "? !", "^ 2", "^{2}", "1, ", "}2"])
@pytest.mark.parametrize("form", ["The answer is 5 {} because", r"\boxed{{5 cm{}?}}", "5 cm{}x", r"\boxed{{{}x}}"])
def test_a_short_text_does_not_stall_the_fast_path(body: str, form: str):
    for count in (6, 10, 15, 25, 200):
        text = form.format(body * count)
        assert _seconds(lambda text: (fast_verdict("5 cm", text), fast_verdict(text, text)), text) < SECONDS


@pytest.mark.slow
def test_a_long_reference_is_read_by_a_process_and_can_be_no_answer():
    with RuleVerifier() as verifier:
        pairs = [
            ("{" * 190_000, r"\boxed{5}"),
            ("\n" * 190_000, r"\boxed{5}"),
            ("step\n" * 9000 + r"\boxed{5}", "answer: 5"),
        ]
        assert verifier.verify_many(pairs) == ["unparsed", "unparsed", "correct"]
        assert verifier.counts["answered"] == 3


def test_the_caches_of_the_rules_keep_few_long_texts():
    answers = [f"{n} " + "word " * 30_000 for n in range(12)]  # each left 2 MB behind
    rules = [ExactRule().build(), ChoiceRule().build(), NumericRule().build()]
    tracemalloc.start()
    for answer in answers:
        fast_verdict(answer, "answer: B")
        for rule in rules:
            rule.verify_problems([(_problem(answer, answer), "answer: B")])
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2**20
