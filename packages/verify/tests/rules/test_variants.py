"""Who says the same in another way is not accused, and who says another thing still is."""

import pytest

from cooper_verify.rules.kinds.exact import exact_verdict
from cooper_verify.rules.symbolic import maths_verdict

SAME = {
    "abbreviations": [
        *[("Monday", "Mon."), ("January", "Jan"), ("United States", "U.S."), ("north", "N"), ("kilogram", "kg")],
        *[("northeast", "NE"), ("Mount Everest", "Mt. Everest"), ("Saint Petersburg", "St. Petersburg")],
        *[("World War II", "WWII"), ("Bank of England", "BoE"), ("helium", "He")],
    ],
    "other spellings": [
        *[("gray", "grey"), ("color", "colour"), ("center", "centre"), ("Tokyo", "Tokio"), ("isosceles", "isoceles")],
        *[("triangle", "triangular"), ("Pythagorean theorem", "the Pythagoras theorem")],
    ],
    "truth": [("True", "yes"), ("yes", "true"), ("no", "false"), ("False", "incorrect"), ("yes", "Right")],
    "more and fewer words": [
        *[("Isaac Newton", "Newton"), ("right triangle", "right-angled triangle"), (r"\overline{AB}", "AB")],
        *[(r"\angle ABC", "ABC"), ("Britain", "Great Britain")],
    ],
    "letters": [
        ("CBAD", "C, B, A, D"),
        ("C, A", "A, C"),
        ("A, C", "A or C"),
        ("AB", "A/B"),
        ("KL", "LK"),
        ("AC", "CA"),
    ],
    "none": [("none", "0"), ("0", "none"), ("0", "no solutions"), ("infinitely many", r"\infty")],
    "figures": [
        *[("12:30", "half past twelve"), ("9:15", "a quarter past nine"), ("World War II", "World War 2")],
        *[("I, II", "1, 2"), ("CO2", "carbon dioxide"), ("FF_{16}", "255"), ("100_2", "4_{10}")],
        *[("11_2", "3"), ("1234.5", "1.234,5"), ("5'6\"", "5 feet 6 inches"), ("1 hour 30 minutes", "1:30")],
    ],
    "formulas": [("n!", r"\Gamma(n+1)"), (r"\frac{\pi^2}{6}", r"\zeta(2)"), ("x^3 + C", "x^3 + K"), ("4", "f(2)")],
}
EQUAL = [
    *[
        ("AC", "A, C"),
        ("ABD", "A, B and D"),
        ("A, C", "C, A"),
        (r"\text{B,E,G}", "G, B, E"),
        (r"\text{ACF}", "A, C, F"),
    ],
    *[("first", "1st"), ("2nd", "second"), ("the 3rd", "third")],
    *[("5 ft 10 in", "70 inches"), ("1 hour 30 minutes", "1.5 hours"), ("5 cm^3", "5 mL"), ("1 L", "1000 cm^3")],
    *[("1 ha", "10000 m^2")],
]
OTHER = [
    *[("yes", "no"), ("True", "False"), ("even", "odd"), ("Monday", "Sunday"), ("June", "July"), ("Mary", "Mark")],
    *[("increasing", "decreasing"), ("positive", "not positive"), ("rational", "irrational"), ("median", "mean")],
    *[
        ("Austria", "Australia"),
        ("ellipse", "eclipse"),
        ("positive", "non-negative"),
        ("red, blue", "red"),
        ("Jim", "Jimmy"),
        ("Mrs. Hilt", "Mr. Hilt"),
        ("Mali", "Mail"),
        (">", "<"),
    ],
    *[("Henry VIII", "Henry VII"), ("III", "II"), ("I, III", "I, II"), ("World War 2", "World War 1")],
    *[
        ("12:30", "12:45"),
        ("2024-01-05", "2024-01-06"),
        ("44 BC", "44 AD"),
        ("9 am", "9"),
        ("11:30", "11"),
        ("6th", "7th"),
        ("first", "2nd"),
    ],
    *[("A, C", "A, B"), ("AC", "A, C, D"), ("C > B > A", "A > B > C"), ("C > B > A", "A, B, C"), ("H2O", "H2O2")],
    *[("5 ft 10 in", "71 in"), ("5 cm^3", "6 mL"), ("1 ha", "1000 m^2"), ("5 L", "5 kg"), ("11_2", "10")],
    *[("2(x+1)", "2(x-1)"), (r"2\sin(x)", r"3\sin(x)"), ("x^3+C", "x^2+C"), (r"a(b+c)", "ab+a")],
    *[("undefined", "0"), ("no solution", "5"), ("0", "1"), ("3:4", "5")],
]
PLACES = [r"\boxed{%s}", "Therefore the answer is %s.", "#### %s"]


@pytest.mark.parametrize("kind", SAME)
def test_nobody_who_says_the_same_is_accused(kind):
    verdicts = {pair: {maths_verdict(pair[0], place % pair[1]) for place in PLACES} for pair in SAME[kind]}
    assert {pair: found for pair, found in verdicts.items() if found - {"correct", "unparsed"}} == {}


def test_letters_are_a_set_and_measures_are_converted():
    verdicts = {pair: {maths_verdict(pair[0], place % pair[1]) for place in PLACES} for pair in EQUAL}
    assert {pair: found for pair, found in verdicts.items() if found != {"correct"}} == {}


@pytest.mark.parametrize("place", PLACES)
def test_who_says_another_thing_is_accused_as_before(place):
    verdicts = {pair: maths_verdict(pair[0], place % pair[1]) for pair in OTHER}
    assert {pair: found for pair, found in verdicts.items() if found == "correct"} == {}
    if "boxed" in place:
        assert {pair: found for pair, found in verdicts.items() if found != "wrong"} == {}


def test_signs_and_underscores_alone_name_nothing():
    answers = [("(^_^)", "(-_-)"), ("(^_^)", "cat"), ("cat", "(-_-)")]
    assert [exact_verdict(reference, rf"\boxed{{{text}}}") for reference, text in answers] == ["unparsed"] * 3


def test_letters_stand_apart_on_one_side_alone():
    assert exact_verdict("wxyz", r"\boxed{w, x, y, z}") == "unparsed"
    assert exact_verdict("opq rst", r"\boxed{op qr st}") == "wrong"
