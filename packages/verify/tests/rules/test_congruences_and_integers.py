"""Congruences, sets of whole numbers, derivatives and points with their names."""

import pytest

from cooper_verify.rules.verdicts.symbolic import maths_verdict


def verdict(reference: str, answer: str, question: str = "") -> str:
    return maths_verdict(reference, rf"\boxed{{{answer}}}", question=question)


@pytest.mark.parametrize("modulus", [5, 7, 12])
@pytest.mark.parametrize("rest", [1, 3, 4])
def test_congruences_are_compared_as_sets_of_numbers(modulus: int, rest: int):
    reference = rf"x \equiv {rest} \pmod{{{modulus}}}"
    for answer in (
        rf"x\equiv{rest}\pmod {modulus}",
        rf"x \equiv {rest - modulus} \mod {modulus}",
        rf"x\equiv{rest}, {rest + modulus}\pmod{{{2 * modulus}}}",
        rf"{rest} \pmod {modulus}",
        rf"x = {modulus}k + {rest}",
        rf"x = {rest} + {modulus}n, n\in\mathbb{{Z}}",
    ):
        assert verdict(reference, answer) == "correct", answer
    for answer in (
        rf"x\equiv{rest + 1}\pmod{{{modulus}}}",
        rf"x\equiv{rest}\pmod{{{2 * modulus}}}",
        rf"x\equiv{rest}, {rest + 1}\pmod{{{modulus}}}",
        rf"y\equiv{rest}\pmod{{{modulus}}}",
        rf"x = {modulus}k + {rest + 1}",
        rf"2x\equiv{rest}\pmod{{{modulus}}}",
    ):
        assert verdict(reference, answer) != "correct", answer


def test_two_sequences_are_formulas_and_no_congruences():
    assert verdict("a = 3n+1", "a = 1+3n") == "correct"
    assert verdict("a = 3n+1", "a = 3n+4") == "wrong"


def test_whole_numbers_by_a_condition():
    reference = r"\{n\in\mathbb{Z}: 2\le n<6\}"
    for answer in (r"\{2,3,4,5\}", r"1<n\le5, n\in\mathbb{Z}", r"\{n\in\mathbb{Z}\mid 1<n<6\}", "2, 3, 4, 5"):
        assert verdict(reference, answer) == "correct", answer
    for answer in (
        "[2,6)",
        r"\{2,3,4\}",
        r"\{n\in\mathbb{Z}: 2<n<6\}",
        r"\{2,2,3,4,5\}",
        r"\{n\in\mathbb{R}: 2\le n<6\}",
    ):
        assert verdict(reference, answer) != "correct", answer


def test_a_derivative_is_the_name_of_its_value():
    reference = r"\frac{dy}{dx}=\frac{2x}{y}"
    for answer in (r"\frac{2x}{y}", r"y'=\frac{2x}{y}", r"\frac{\mathrm{d}y}{\mathrm{d}x}=\frac{2x}{y}"):
        assert verdict(reference, answer) == "correct", answer
    for answer in (
        r"\frac{dx}{dy}=\frac{2x}{y}",
        r"y=\frac{2x}{y}",
        r"y''=\frac{2x}{y}",
        r"\frac{dy}{dx}=\frac{y}{2x}",
    ):
        assert verdict(reference, answer) != "correct", answer


@pytest.mark.parametrize(("name", "other"), [("C", "D"), ("P", "Q"), ("V", "F")])
def test_a_point_has_a_name_in_front(name: str, other: str):
    question = f"Find the coordinates of point {name}."
    assert verdict("(3,-4)", f"{name}(3,-4)", question) == "correct"
    for answer in (f"{other}(3,-4)", f"{other}=(3,-4)", f"{name}'(3,-4)", f"{name}(-4,3)"):
        assert verdict("(3,-4)", answer, question) != "correct", answer


def test_all_numbers_but_some():
    for answer in (r"\text{all real numbers except 2}", r"x\in\mathbb{R}, x\ne 2", r"\mathbb{R}\setminus\{2\}"):
        assert verdict(r"x\neq 2", answer) == "correct", answer
    for answer in (r"\text{all real numbers except -2}", r"\text{all real numbers}", r"\text{all integers except 2}"):
        assert verdict(r"x\neq 2", answer) != "correct", answer


def test_an_interval_with_rounded_ends_is_not_wrong():
    assert verdict(r"(\frac{3}{5},\frac{8}{3}]", "(0.6,2.6667]") == "unparsed"
    assert verdict(r"(\frac{3}{5},\frac{8}{3}]", "(0.6,2.7]") == "wrong"
