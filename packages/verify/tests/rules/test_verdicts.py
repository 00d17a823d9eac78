"""What counts as the final answer, and when it is right. The fast path and the slow path must agree."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cooper_verify.rules.answer.extraction import extract_answer
from cooper_verify.rules.verdicts.fast_path import fast_verdict
from cooper_verify.rules.verdicts.symbolic import maths_verdict

CASES = {
    "correct": [
        ("12", "5 + 7 it is, answer: twelve"),
        ("3/2", "answer: 1 1/2"),
        ("12", r"\boxed{12}"),
        ("12", "answer: 12"),
        ("12", "5 + 7 = 12\n#### 12"),
        ("12", "5 + 7 = 12\n##### 12"),
        ("12", "So we are left with 12."),
        ("12", "A: 12"),
        ("12", "The final answer is $12$. I hope it is correct."),
        ("12", "**Answer: 12**"),
        ("12", "**Final Answer:** 12"),
        ("12", 'So\n```json\n{"answer": "12"}\n```'),
        ("12", "The answer is:\n\\[\n12\n\\]"),
        ("12", "The answer to this question is the number of cats, which is 12."),
        ("50", "The answer is James is out $50."),
        ("7200", "The answer to this question is Derrick makes $7200 in June."),
        ("12", "answer: $12.00"),
        ("12", "answer: x = 12"),
        ("12", r"\boxed{x=12}"),
        ("12", r"\boxed{\boxed{12}}"),
        ("43", "12\n43"),
        ("40", r"\boxed{40.0\%}"),
        ("40", "The answer is 40%."),
        ("0.4", r"\boxed{40\%}"),
        ("1234", "answer: 1,234 apples"),
        ("1,234", "answer: 1234"),
        ("1234", r"\boxed{1{,}234}"),
        ("1234", r"\boxed{1\,234}"),
        ("1234567", "answer: 1,234,567"),
        ("-12", "answer: - 12"),
        ("-12", "answer: \u221212"),
        ("3/4", "answer: 0.75"),
        ("3/4", r"\boxed{\dfrac{6}{8}}"),
        ("3/2", r"\boxed{1\frac{1}{2}}"),
        ("1/3", "answer: 0.333333"),
        ("75%", r"\boxed{75\%}"),
        ("50%", "answer: 50 percent"),
        ("12 apples", r"\boxed{12}"),
        ("$12", "answer: 12 dollars"),
        ("9 (apples)", "answer: 9"),
        ("work\n#### 50", "answer: 50"),
        (r"so $\boxed{50}$.", "answer: 50"),
        (r"2\sqrt{2}", r"\boxed{\sqrt{8}}"),
        (r"\frac{x+1}{2}", r"the answer is $\frac{1+x}{2}$."),
        ("(1,2)", r"\boxed{(1,2)}"),
        ("[1,2)", r"\boxed{[1,2)}"),
        (r"(-\infty, 3)", r"the answer is $(-\infty,3)$"),
        ("x=3", r"\boxed{3}"),
        ("A", "The answer is (A)"),
        ("A", r"\boxed{\text{A}}"),
        ("yes", "answer: Yes"),
        ("3, 4", r"\boxed{3} and \boxed{4}"),
        ("3, 4", "The answer is 4 and 3"),
        ("12", r"First we get \boxed{3}. Then \boxed{12}."),
        ("12", "answer: 13 apples. No, I forgot one child. answer: 12 apples"),
        ("3", r"\boxed{3}. So the answer is 3"),
    ],
    "wrong": [
        ("12", "answer: minus 12"),
        ("1/2", r"\boxed{1 1/2}"),
        ("40", r"\boxed{0.4}"),
        ("40", r"\boxed{45\%}"),
        ("43", "21 and 43"),
        ("43", "43, 21 or 7"),
        ("12", "answer: 13"),
        ("12", "answer: -12"),
        ("12", r"We have \boxed{12}. Wait. It is \boxed{3}"),
        ("[1,2)", r"\boxed{(1,2]}"),
        ("A", "The answer is B."),
        ("3", "The answer is 3 or 4"),
        ("12", "the answer is $12 or $13"),
        ("3", "answer: 3, 4, 5"),
        ("3", "answer: 3 apples and 5 pears"),
        ("3", r"\boxed{3} or \boxed{4}"),
        ("3", r"\boxed{3} or 4"),
        ("20", r"\boxed{20} or -20"),
        ("3", r"$\boxed{3}$ and also $\boxed{4}$"),
        ("3", "\\boxed{3}\n\\boxed{4}\n\\boxed{5}"),
        ("3", r"\boxed{3, 4}"),
        ("3", r"\boxed{3}. The answer is 4"),
        ("11", r"\boxed{-16}. The answer is 11 or"),
    ],
    "unparsed": [
        ("1.234", "answer: 1,234"),  # in many countries both are 1234
        ("1/3", "answer: 0.333"),  # rounded: a reader must know to how many places
        ("12", ""),
        ("12", "  \n"),
        ("12", "answer:"),
        ("12", r"\boxed{}"),
        ("12", r"\boxed{12"),
        ("12", r"5 + 7 = 12 \boxed{ed"),  # the box was begun, so the formula is not the answer
        ("12", r"The answer is 12. \boxed{"),
        ("12", r"\boxed{12}. Let me check: \boxed{13"),
        ("12", r"12 \fbox{x \boxed{ y"),
        ("12", "I do not know"),
        ("12", "answer: 24/2"),
        ("12", "answer: 12 thousand"),
        ("3", "answer: 3 over 4"),
        ("4", "answer: 3 over 4"),
        ("12", "answer: 1 2"),
        ("3", "answer: 1 2"),
        ("", "answer: 1"),
    ],
}


QUESTION = (
    "How many apples, cats, nuts, cups and pears has James, who is out, what percent is it, and what does Derrick make"
    " in June?"
)
"""What the answers speak of."""


@pytest.mark.parametrize(
    ("answer", "completion", "expected"), [(*case, verdict) for verdict, cases in CASES.items() for case in cases]
)
def test_the_verdict_table(answer, completion, expected):
    assert maths_verdict(answer, completion, question=QUESTION) == expected
    assert fast_verdict(answer, completion, question=QUESTION) in (expected, None)


def test_the_usual_endings_take_the_fast_path():
    endings = ("answer: 1,234 apples", r"so \boxed{1234}.", "#### 1234", "The answer is $1,234.")
    assert [fast_verdict("1234", ending, question=QUESTION) for ending in endings] == ["correct"] * 4
    assert fast_verdict("3/4", "answer: 0.75") == "correct"
    assert fast_verdict("3/4", "answer: 3/5 cups", question=QUESTION) == "wrong"


def test_a_statement_after_a_box_that_was_not_closed_is_the_answer():
    assert maths_verdict("12", "so \\boxed{12 apples\n#### 12") == "correct"
    assert maths_verdict("12", "so \\boxed{13\nThe answer is \\boxed{12}") == "correct"


def test_the_end_of_a_very_long_completion_is_what_counts():
    assert maths_verdict("12", r"\boxed{3} " + "and on it goes. " * 100_000 + "answer: 12") == "correct"


def test_hostile_text_is_read_in_almost_no_time():
    hostile = ["\\boxed{" * 3000, "answer is " * 3000, "{" * 10_000 + "boxed", "1," * 9000, "answer: " + "a " * 4000]
    hostile += [
        "A, " * 3000,
        "answer: " + " " * 9000 + "^",
        r"\boxed{" + " " * 7000 + "}",
        r"\text{" * 3000,
        "A or\n" * 3000,
    ]
    started = time.process_time()
    for text in hostile:
        extract_answer(text)
        for answer in ("12", "Tokyo", "B", "B) apple"):
            fast_verdict(answer, text)
    assert time.process_time() - started < 0.5


number = st.one_of(
    st.integers(-(10**7), 10**7).map(str),
    st.integers(0, 10**7).map("{:,}".format),
    st.decimals(-1000, 1000, places=3).map("{:f}".format),
    st.tuples(st.integers(-99, 99), st.integers(1, 99)).map("{0[0]}/{0[1]}".format),
)


@given(number, number, st.sampled_from([r"\boxed{%s}", "answer: %s", "answer: %s apples", "The answer is $%s."]))
@settings(max_examples=80, deadline=None)
def test_fast_and_slow_agree_on_numbers(one, other, ending):
    for found in (one, other):
        fast = fast_verdict(one, ending % found, question=QUESTION)
        assert fast in (None, maths_verdict(one, ending % found, question=QUESTION))
    assert maths_verdict(one, ending % one, question=QUESTION) == "correct"


@pytest.mark.parametrize("reference", ["0/1", "4/2", "99/1", "-6/3"])
def test_a_reference_that_is_not_reduced_is_its_own_answer(reference):
    for answer in ("{}", "{} apples", "{} meters"):
        assert maths_verdict(reference, f"answer: {answer.format(reference)}", question=QUESTION) == "correct"
    assert maths_verdict("2", "answer: 4/2 apples") == "unparsed"  # a calculation that is not done


def test_several_numbers_are_wrong_at_once():
    several = (r"\boxed{3, 4}", "answer: 16 or 17 nuts", "answer: 1.5 apples and 1/2 or 3")
    assert [fast_verdict("4", text, question=QUESTION) for text in several] == ["wrong"] * 3
    assert fast_verdict("4", r"\boxed{4, 4}") == "unparsed"
