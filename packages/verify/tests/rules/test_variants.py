"""Who says the same in another way is not accused, and who says another thing still is."""

import pytest

from cooper_verify.rules.verdicts.symbolic import maths_verdict
from cooper_verify.rules.verdicts.texts import exact_verdict

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
        ("KL", "LK"),
        ("AC", "CA"),
    ],
    "other languages": [
        *[("5 January 2024", "5. Januar 2024"), ("5 January 2024", "5 janvier 2024"), ("Monday", "lundi")],
        *[("March 5, 2024", "5 de marzo de 2024"), ("2024-01-05", "2024年1月5日"), ("yes", "oui"), ("no", "nein")],
    ],
    "none": [("none", "0"), ("0", "none"), ("0", "no solutions"), ("infinitely many", r"\infty")],
    "figures": [
        *[("12:30", "half past twelve"), ("9:15", "a quarter past nine"), ("World War II", "World War 2")],
        *[("CO2", "carbon dioxide"), ("FF_{16}", "255"), ("100_2", "4_{10}")],
        *[("1/4", "one in four"), ("January 5", "1/5"), ("January 2024", "01/2024"), ("5", "fifth"), ("4", "IV")],
        *[("14:30", "14h30"), ("3 pm", "15h"), ("12 squared", "144"), ("at least 5", r"x \ge 5")],
        *[("0.5", "1/2 (50%)"), ("1/2", "0.5 or 50%")],
        *[("11_2", "3"), ("1234.5", "1.234,5"), ("5'6\"", "5 feet 6 inches"), ("1 hour 30 minutes", "1:30")],
    ],
    "arrangements": [
        *[("John: 3, Mary: 4", "John 3, Mary 4"), ("5 to 2", "5:2"), ("9:00", "9 o'clock"), ("0:45", "45 minutes")],
        *[("3:30 pm", "3.30 pm"), ("March 2020", "2020-03"), ("Friday the 13th", "Friday, 13th"), ("R2-D2", "R2D2")],
        *[("Quadrant III", "3rd quadrant"), ("Symphony No. 9", "9th Symphony"), ("Figure 3", "Fig. 3")],
        *[("World War II", "Second World War"), ("USA", "United States of America"), ("A-B-C", "A, B, C")],
    ],
    "other names": [
        *[("München", "Munich"), ("NaCl", "sodium chloride"), ("CH3COOH", "C2H4O2"), ("yes", "yeah")],
        *[("False", "not true"), ("Cannot be determined", "not enough information"), ("diverges", r"\infty")],
        *[("neither", "neither even nor odd"), ("12", "XII"), (r"\lfloor x \rfloor", "[x]")],
    ],
    "things": [("5 red balls", "5 blue balls"), (r"\vec a\times\vec b", r"\vec a\cdot\vec b")],
    "case": [("CO2", "Co2"), ("AaBb", "AaBB"), ("Tt x Tt", "TT x tt")],
    "separators": [
        *[("82,5", "82.5"), ("0,5", r"\frac12"), ("1000", "1.000"), ("1 1/2", "1-1/2")],
        *[(r"\{2,345\}", "2,345"), ("12, 13", "(a) 12 (b) 13")],
        *[("1234567", "1.234.567"), ("1234", "1'234"), ("(1.5, 2.5)", "(1,5; 2,5)")],
    ],
    "decimal commas": [
        *[
            ("2.5 km", "2,5 km"),
            ("€5", "5,00 €"),
            ("2.40", "2,40 €"),
            ("2.40", r"2,40\text{ Euro}"),
            ("3.75", "€ 3,75"),
        ],
        *[("1.5 m", r"1,5\text{ m}"), ("-0.5", "-0,5 m")],
    ],
    "rounded": [
        *[("5 km", "3.1 miles"), ("5 kg", "11 lb"), ("273 K", "0 °C"), ("2 atm", "1520 mmHg"), ("0.33", r"\frac13")],
        *[("3.14", "3.1416"), ("5 C/s", "5 A"), (r"\sin^2(n\pi)", "0")],
        *[(r"12\pi", "12 * 3.14"), (r"\arctan 2", r"63.43^\circ"), ("0.1 M", "0.1 mol/L"), ("5 C", "5 coulombs")],
    ],
    "formulas": [
        ("y = Ce^{2x}", "y = Ae^{2x}"),
        ("n!", r"\Gamma(n+1)"),
        (r"\frac{\pi^2}{6}", r"\zeta(2)"),
        ("x^3 + C", "x^3 + K"),
        (r"\frac12\sin^2 x + C", r"-\frac14\cos 2x + C"),
        ("y = C_1e^x + C_2e^{-x}", "y = C_1e^{-x} + C_2e^x"),
        ("O(n)", "O(N)"),
        ("4", "f(2)"),
    ],
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
    *[("21st century", "twenty-first century"), ("500 AD", "AD 500"), ("Windows 95", "Windows ninety-five")],
    *[("Ca(OH)2", "Ca(OH)_2"), ("Ca(OH)_2", r"\text{Ca(OH)}_2"), ("Na+", r"\text{Na}^+"), ("Fe^{3+}", "Fe3+")],
    *[("2H2 + O2 -> 2H2O", r"2H_2 + O_2 \rightarrow 2H_2O"), ("McDonald", "mcdonald"), ("150 min", "2h30m")],
    *[("1,000, 2,000", "1000 and 2000"), ("(1,000, 2,000)", "(1000, 2000)"), ("1234567", "12,34,567")],
    *[
        ("5 μm", "5e-6 m"),
        (r"\frac13", r".\overline{3}"),
        ("17:00", "17 Uhr"),
        ("14.30 Uhr", "14:30"),
        ("15:00", "15点"),
    ],
    *[("5 December 2024", "5. Dezember 2024"), (r"\pm 1, \pm 2", "-2, -1, 1, 2"), ("5 м/с^2", "5 m/s^2")],
    *[(r"3 \times 10^8 \text{ m/s}", r"3\cdot 10^{5}\text{ km/s}"), ("5 m/s^2", "5 metres per second per second")],
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
    *[("3:30 pm", "3:30 am"), ("John: 3, Mary: 4", "John: 4, Mary: 3"), ("Figure 3", "Table 3"), ("H2O", "HO2")],
    *[("Fe3+", "Fe2+"), ("NaCl", "KCl"), ("True", "not true"), ("San José", "San Juan"), ("82,5", "83.5")],
    *[("17 Uhr", "16 Uhr"), ("17 Uhr", "5 Uhr 17"), ("5. Januar 2024", "5. Juni 2024"), ("5 м/с", "5 м/с^2")],
    *[(r"\pm 1, \pm 2", r"\pm 1"), ("x^2 + C", "x^3 + C"), ("O(n)", "O(N^2)")],
    *[("5 km", "3 miles"), ("5e-6 m", "5e-6 km"), ("150 min", "2h 31min"), ("1234567", "12,34,568")],
    *[
        ("12", "x"),
        ("0.33", r"\frac14"),
        ("y = Ce^{2x}", "y = Ae^{-2x}"),
        ("undefined", "0"),
        ("no solution", "5"),
        ("0", "1"),
        ("3:4", "5"),
    ],
]
PLACES = [r"\boxed{%s}", "Therefore the answer is %s.", "#### %s"]


@pytest.mark.parametrize("kind", SAME)
def test_nobody_who_says_the_same_is_accused(kind):
    pairs = [turned for pair in SAME[kind] for turned in (pair, pair[::-1])]
    verdicts = {pair: {maths_verdict(pair[0], place % pair[1]) for place in PLACES} for pair in pairs}
    assert {pair: found for pair, found in verdicts.items() if found - {"correct", "unparsed"}} == {}


@pytest.mark.parametrize(("reference", "answer"), [("24", "12 doubled"), ("1/3", "0.3 recurring"), ("AB", "A/B")])
def test_words_and_signs_that_are_not_read_accuse_nobody(reference, answer):
    assert {maths_verdict(reference, place % answer) for place in PLACES} == {"unparsed"}


DOUBTFUL = ["things", "case", "separators", "rounded"]


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_what_may_be_another_thing_is_not_paid(kind):
    verdicts = {pair: {maths_verdict(pair[0], place % pair[1]) for place in PLACES} for pair in SAME[kind]}
    assert {pair: found for pair, found in verdicts.items() if "correct" in found} == {}


def test_a_comma_before_one_or_two_figures_with_a_unit_is_a_point_in_an_answer():
    others = [("240", "2,40 €"), ("2", "2,40 €"), ("2.04", "2,40 €"), ("2.4 km", "2,4 m"), ("1.25", "1,250 €")]
    for place in PLACES:
        pairs = SAME["decimal commas"]
        assert [pair for pair in pairs if maths_verdict(pair[0], place % pair[1]) != "correct"] == []
        assert [pair for pair in others if maths_verdict(pair[0], place % pair[1]) == "correct"] == []


def test_letters_are_a_set_and_measures_are_converted():
    verdicts = {pair: {maths_verdict(pair[0], place % pair[1]) for place in PLACES} for pair in EQUAL}
    assert {pair: found for pair, found in verdicts.items() if found != {"correct"}} == {}


@pytest.mark.parametrize("formula", ["Ca(OH)2", "Mg(OH)2", "Al(OH)3"])
def test_the_case_of_an_element_counts_beside_a_group(formula):
    for place in PLACES:
        assert maths_verdict(formula, place % formula) == "correct"
        for other in (formula.upper(), formula.lower(), formula.replace("O", "o")):
            assert maths_verdict(formula, place % other) != "correct"


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
