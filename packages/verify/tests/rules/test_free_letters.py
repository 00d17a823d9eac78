"""Letters that may be any number: of whole turns, and constants of integration."""

import pytest

from cooper_verify.rules.verdicts.symbolic import maths_verdict

WHOLE = r"k\in\mathbb{Z}"
TURNS = [
    rf"x=\frac{{\pi}}{{4}}+k\pi, {WHOLE}",
    rf"x=\frac{{\pi}}{{4}}+k\pi \text{{ for }} {WHOLE}",
    rf"\{{\frac{{\pi}}{{4}}+k\pi \mid {WHOLE}\}}",
    r"\frac{\pi}{4}+n\pi \text{ where } n \text{ is any integer}",
    rf"x=\frac{{5\pi}}{{4}}+k\pi, {WHOLE}",
    rf"x=-\frac{{3\pi}}{{4}}-k\pi, {WHOLE}",
    rf"x=\frac{{(4k+1)\pi}}{{4}}, {WHOLE}",
]
OTHER_TURNS = [
    r"\frac{\pi}{4}",
    rf"x=-\frac{{\pi}}{{4}}+k\pi, {WHOLE}",
    rf"x=\frac{{\pi}}{{4}}+2k\pi, {WHOLE}",
    rf"x=\frac{{\pi}}{{4}}+\frac{{k\pi}}{{2}}, {WHOLE}",
    r"x=\frac{\pi}{4}+k\pi, k\in\mathbb{N}",
    rf"x=\frac{{\pi}}{{4}}+k, {WHOLE}",
]


@pytest.mark.parametrize("reference", [text for text in TURNS if "any" not in text])
def test_the_same_turns_are_equal_from_whichever_one_they_are_counted(reference: str):
    for question in ("", "Solve the equation."):
        verdicts = [maths_verdict(reference, rf"\boxed{{{text}}}", question=question) for text in TURNS]
        assert verdicts == ["correct"] * len(TURNS)
        verdicts = [maths_verdict(reference, rf"\boxed{{{text}}}", question=question) for text in OTHER_TURNS]
        assert "correct" not in verdicts


@pytest.mark.parametrize("text", [r"-2\pi k", r"2\pi k+2\pi", r"2\pi n", r"4\pi-2\pi k"])
def test_a_letter_of_the_question_is_no_number_of_turns(text: str):
    question = "A circle has radius k. What is its circumference?"
    assert maths_verdict(r"2\pi k", rf"\boxed{{{text}}}", question=question) != "correct"
    assert maths_verdict(r"2\pi k", r"\boxed{2k\pi}", question=question) == "correct"


@pytest.mark.parametrize("letter", ["c", "K", "C"])
def test_a_constant_of_integration_may_have_another_letter(letter: str):
    assert maths_verdict("x^2+C", rf"\boxed{{x^2+{letter}}}", question="Find the integral of 2x.") == "correct"
    for text in (f"{letter}x^2", f"x^2+{letter}x", f"2x^2+{letter}", "x^2+y", "x^2"):
        assert maths_verdict("x^2+C", rf"\boxed{{{text}}}", question="Find the integral of 2x.") != "correct"
    given = maths_verdict("n+C", r"\boxed{n+K}", question="The fixed cost is C. What is the whole cost of n?")
    assert given != "correct"


def test_intervals_that_are_counted_from_another_one_on_are_not_wrong():
    reference = rf"(k\pi, k\pi+\frac{{\pi}}{{2}}), {WHOLE}"
    assert maths_verdict(reference, rf"\boxed{{{reference}}}") == "correct"
    for start, end, verdict in ((r"\pi", r"\frac{3\pi}{2}", "unparsed"), ("0", r"\frac{3\pi}{2}", "unparsed")):
        text = rf"\boxed{{(k\pi+{start}, k\pi+{end}), {WHOLE}}}"
        assert maths_verdict(reference, text, question="Where does it rise?") == verdict
