"""The laws of the rule: forms of one value are never `wrong`, and its neighbours are never `correct`."""

from collections import Counter

import pytest
from benchmarks.verdicts import answer_words
from benchmarks.verdicts.answer_forms import PLACES, TYPES, Pair, breaks, judged, shares

from cooper_verify.rules.values.table import TABLE
from cooper_verify.rules.verdicts.symbolic import maths_verdict

LEAST = {"boxed": 0.98, "stated": 0.95, "last sentence": 0.90, "bare": 0.90}


@pytest.fixture(scope="module")
def sample() -> list[tuple[Pair, str]]:
    return judged(1_500, seed=0)


def test_forms_of_a_value_are_never_wrong_and_neighbours_never_correct(sample: list[tuple[Pair, str]]):
    assert [(pair, verdict) for pair, verdict in sample if breaks(pair, verdict)] == []


def test_nearly_all_forms_of_each_type_are_read_in_every_place(sample: list[tuple[Pair, str]]):
    assert {kind for kind, _ in shares(sample)} == {*TYPES}
    for place, least in LEAST.items():
        same = [verdict for pair, verdict in sample if pair.is_same and pair.place == place]
        assert Counter(same)["correct"] >= least * len(same), place
    assert {*LEAST} == {*PLACES}


@pytest.mark.slow
def test_the_laws_hold_for_a_hundred_thousand_pairs():
    assert [(pair, verdict) for pair, verdict in judged(100_000, seed=1) if breaks(pair, verdict)] == []


def test_no_word_unit_or_name_beside_a_value_is_paid():
    """In ten languages and several scripts: words, units with random exponents, names in random order."""
    assert answer_words.paid(250, seed=0) == []


@pytest.mark.slow
def test_none_of_a_hundred_thousand_words_units_and_names_is_paid():
    assert answer_words.paid(100_000, seed=1) == []


def test_types_compare_in_both_directions():
    assert {(other, one) for one, other in TABLE} == {*TABLE}


def test_a_reference_and_an_answer_may_change_places():
    same = [("0.5", r"\frac12"), ("x=3", "3"), ("(1,3]", r"1 < x \le 3"), ("5:8", r"\frac58"), ("y=2x", "2x")]
    other = [("3", "2x=3"), ("1,3", "(1,3)"), (r"\{1,3\}", "(1,3)"), ("5 km", "5 miles"), ("2,2,3", "2,3")]
    for pairs, is_right in ((same, True), (other, False)):
        for one, two in pairs:
            for reference, answer in ((one, two), (two, one)):
                assert (maths_verdict(reference, rf"\boxed{{{answer}}}") == "correct") is is_right
