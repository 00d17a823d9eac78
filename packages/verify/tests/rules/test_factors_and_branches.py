"""Letters that are factors and no unit, values that depend on the domain, sentences about the value of another."""

import time

import pytest

from cooper_verify.rules.verdicts.symbolic import maths_verdict

FACTORS = [
    (r"\frac{3}{2}kT", [r"\frac{3kT}{2}", "1.5kT"], [r"\frac{3}{2}", r"\frac{5}{2}kT", r"\frac{3}{2}kT^2"]),
    (r"\frac{1}{2}kA^2", [r"\frac{kA^2}{2}"], [r"\frac12", r"\frac{1}{2}kA", r"\frac{1}{2}mA^2"]),
    (r"\rho hg", [r"\rho gh"], [r"\rho", r"\rho g", r"\rho h"]),
    (r"\frac{1}{2}", [r"\frac12\text{ kg}", "0.5kg"], [r"\frac{1}{2}kT", r"\frac{1}{2}mV^2"]),
    ("5mg", [r"5\text{ mg}", "0.005 g", "5"], ["6mg", "5 kg", "5g"]),
    (r"8\sqrt{3}", [r"8\sqrt{3}cm", r"8\sqrt{3}\text{ kg}"], [r"8\sqrt{3}kT"]),
    ("C_n^3", [r"\binom{n}{3}", r"\frac{n(n-1)(n-2)}{6}"], [r"\binom{n}{2}", r"\frac{n(n-1)(n-2)}{3}"]),
    ("C_{2n}^{n}", [r"\frac{(2n)!}{n!n!}"], [r"\frac{(2n)!}{n!}", r"\binom{2n}{n+1}"]),
    ("C_1^n", ["C_1^n"], [r"\binom{1}{n}", "C_2^n"]),
    ("f(x)=x^2", ["f(t)=t^2"], ["f(y)=x^2", "f(t)=x^2"]),
    ("g(x,y)=xy", ["g(a,b)=ba"], ["g(a,b)=ay", "g(y,z)=xy"]),
    ("A, B", ["B, A"], ["A, A", "A, B, B", "AABB"]),
    ("B", ["(B)"], ["BB"]),
    ("12", ["12 a day", "12 apples a day"], ["12 a zorp", "12 a mais", "12 a testa"]),
]


@pytest.mark.parametrize(("reference", "forms", "neighbours"), FACTORS)
def test_letters_are_what_they_multiply(reference: str, forms: list[str], neighbours: list[str]):
    assert [form for form in forms if maths_verdict(reference, rf"\boxed{{{form}}}") != "correct"] == []
    assert [other for other in neighbours if maths_verdict(reference, rf"\boxed{{{other}}}") == "correct"] == []


DOMAINS = [
    (r"\arcsin x", [r"\frac{\pi}{2}-\arccos x", r"\arctan\frac{x}{\sqrt{1-x^2}}"], [r"\arccos x", r"\arcsin 2x"]),
    (r"2\arctan x", [r"\arctan\frac{2x}{1-x^2}", r"\arcsin\frac{2x}{1+x^2}"], [r"\arctan 2x"]),
    (r"\arctan\frac1x", [r"\frac{\pi}{2}-\arctan x"], [r"\frac{\pi}{2}+\arctan x", r"\cot x"]),
    (r"\lceil n/2\rceil", [r"\lfloor (n+1)/2\rfloor"], [r"\lfloor n/2\rfloor", r"\frac{n}{2}"]),
    ("2mg", ["2gm"], ["3gm"]),
    ("£5", ["500p"], ["500x"]),
    ("C_1e^{2x}+C_2", ["C_2e^{2x}+C_1"], ["C_2e^{3x}+C_1", "C_1e^{2x}-C_2"]),
    ("not prime", [r"\text{composite}", r"\text{non-prime}"], [r"\text{not composite}"]),
    ("composite", [r"\text{not prime}"], [r"\text{not composite}", r"\text{prime}"]),
    ("zero", [r"\text{none}"], [r"\text{does not exist}", "1"]),
]


@pytest.mark.parametrize(("reference", "unclear", "others"), DOMAINS)
def test_what_depends_on_the_domain_is_not_wrong(reference: str, unclear: list[str], others: list[str]):
    assert {maths_verdict(reference, rf"\boxed{{{text}}}") for text in unclear} <= {"correct", "unparsed"}
    assert {maths_verdict(reference, rf"\boxed{{{text}}}") for text in others} == {"wrong"}


STATES = [
    "It can be computed as 12.",
    "The answer is x = 12.",
    r"So the answer to this is the difference between $2^5$ and $20$ is 12.",
    r"So we are done. \boxed{12}",
    r"Thus... \boxed{12}",
]
STATES_ANOTHER = [
    *["2 times the answer is 12.", "x plus the answer is 12.", "3 + the answer is 12."],
    *["The digits in the answer are 12.", "The answer is x, where 2x is 12.", "The answer is A if x is 12."],
    *["The answer can be 12.", "So the area can only be 12.", r"\boxed{12}'", r"x = .\boxed{12}", r"$.\boxed{12}$"],
]


def test_a_value_of_something_else_is_not_the_answer():
    question = "What is the difference between 2^5 and 20?"
    assert [text for text in STATES if maths_verdict("12", text, question=question) != "correct"] == []
    assert [text for text in STATES_ANOTHER if maths_verdict("12", text, question=question) == "correct"] == []


def _set(count: int) -> str:
    return r"\{" + ", ".join(f"x^{{{power}}}" for power in range(count)) + r"\}"


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        (_set(300), _set(299), "wrong"),
        ("e^{" * 12 + "x" + "}" * 12, "e^{" * 12 + "y" + "}" * 12, "unparsed"),
        ("C_{100000}^{50000}", r"\frac{100000!}{(50000!)^2}", "unparsed"),
        ("(1+i)^{1000}", "2^{500}", "unparsed"),
    ],
)
def test_what_is_large_takes_no_time(reference: str, answer: str, verdict: str):
    started = time.process_time()
    assert maths_verdict(reference, rf"\boxed{{{answer}}}") == verdict
    assert time.process_time() - started < 3
