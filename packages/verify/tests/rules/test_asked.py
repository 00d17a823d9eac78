"""What an answer says of its value, in every place, with a question that asks for it and one that asks for another.

A rate, a difference, an opposite, a name, a part or a condition is read where nobody knows what was asked for.
"""

import pytest

from cooper_verify.rules.asked.question import asked_part
from cooper_verify.rules.verdicts.fast_path import fast_reading
from cooper_verify.rules.verdicts.symbolic import maths_verdict

WEEK, DAY = "How many eggs does he sell in a week?", "How many eggs does he sell per day?"
TOTAL = "Tom sells the same number of eggs each day. How many eggs does he sell in total, if he works 5 days?"
PLACES = [r"He sells \boxed{{12}} eggs {}.", "He sells 12 eggs {}.", "The answer is 12 eggs {}.", "12 eggs {}"]
PLACES += [r"\boxed{{12\text{{ eggs {}}}}}", "#### 12 eggs {}", '{{"answer": "12 eggs {}"}}', "**Answer:** 12 eggs {}"]
OF_A_DAY = ["per day", "a day", "each day", "every day", "/day"]


@pytest.mark.parametrize("place", PLACES)
def test_a_rate_is_paid_where_the_question_asks_for_it(place: str):
    texts = [place.format(rate) for rate in OF_A_DAY]
    assert [text for text in texts if maths_verdict("12", text, question=DAY) == "wrong"] == []
    assert [text for text in texts if maths_verdict("12", text, question=WEEK) == "correct"] == []
    assert [text for text in texts if maths_verdict("12", text, question=TOTAL) == "correct"] == []
    assert maths_verdict("12", texts[0], question=DAY) == maths_verdict("12", texts[0]) == "correct"


@pytest.mark.parametrize("thing", ["box", "child", "shirt", "page", "bus", "game"])
def test_a_share_is_no_total(thing: str):
    asked, total = f"How many stickers are there for each {thing}?", "How many stickers are there altogether?"
    for text in (rf"There are \boxed{{12}} stickers per {thing}.", rf"Each {thing} gets \boxed{{12}} stickers."):
        assert maths_verdict("12", text, question=asked) == "correct"
        assert maths_verdict("12", text, question=total) == "unparsed"


UNITS = [
    "mph",
    "km/h",
    r"\text{ km/h}",
    r"\ \frac{\text{km}}{\text{h}}",
    r"\ \text{km}\,\text{h}^{-1}",
    " miles per hour",
]


@pytest.mark.parametrize("unit", UNITS)
def test_a_speed_is_no_distance(unit: str):
    text = rf"\boxed{{60{unit}}}"
    assert maths_verdict("60", text, question="What is the average speed of the train?") == "correct"
    assert maths_verdict("60", text, question="How far does the train go?") == "unparsed"
    assert maths_verdict("60 km", text, question="How far does the train go?") != "correct"


def test_a_time_is_the_one_for_which_the_question_asks():
    for time, same in [
        ("a week", "7 days"),
        ("7 days", "one week"),
        ("two years", "24 months"),
        ("3 hours", "3 hours"),
    ]:
        text = rf"He sells \boxed{{12}} eggs in {time}."
        assert maths_verdict("12", text, question=f"How many eggs does he sell in {same}?") == "correct"
        assert maths_verdict("12", text, question="How many eggs does he sell?") == "correct"
        assert maths_verdict("12", text, question="How many eggs does he sell in 5 days?") == "unparsed"


DIFFERENCES = {
    "Tom has {} more apples than Ann.": "apples does Tom have",
    "The rope is {} cm longer than the stick.": "cm long is the rope",
    "Ann is {} years older.": "years old is Ann",
    "It costs {} dollars less than the hat.": "dollars does the coat cost",
    "He picked another {} apples.": "apples has he picked in total",
}


@pytest.mark.parametrize("sentence", DIFFERENCES)
def test_a_difference_is_paid_where_the_question_asks_for_one(sentence: str):
    for value in (r"\boxed{12}", "12"):
        text = sentence.format(value)
        asked = maths_verdict("12", text, question=f"By how much, or how many {DIFFERENCES[sentence]} more than Ann?")
        assert asked in ("correct", "unparsed")
        assert maths_verdict("12", text, question=f"How many {DIFFERENCES[sentence]}?") == "unparsed"


@pytest.mark.parametrize("sign", [r"\approx ", "\u2248", r"\simeq ", "about ", "roughly ", "approximately ", "around "])
def test_an_estimate_is_no_exact_value_unless_the_question_asks_for_one(sign: str):
    for text in (rf"{sign}\boxed{{12}}", rf"So it is {sign}$\boxed{{12}}$."):
        assert maths_verdict("12", text, question="How many apples are there?") == "unparsed"
        assert maths_verdict("12", text) == "unparsed"
        assert maths_verdict("12", text, question="How many is it to the nearest ten?") == "correct"
        assert maths_verdict("12.34", text.replace("12", "12.34")) == "correct"


PARTS = ["of Bob's 10", "if each costs 2", "times Bob's age", "without the 3 red ones", "on top of the 5", "for 7 days"]
PARTS += ["before the 3 are sold", "fewer than Bob's 20", "per 3", "plus the 5", "in each of 3 boxes"]


@pytest.mark.parametrize("part", PARTS)
def test_figures_and_clauses_of_the_question_make_another_value_of_a_bare_one(part: str):
    question = "Bob's 10 apples, of which 3 are red and each costs 2, are 5 more than Bob's age. He has 20 after 7 days"
    question += ", when the 3 red ones are sold from 3 boxes. What is the sum in 5 days?"
    for text in (rf"\boxed{{12}} {part}", rf"The answer is \boxed{{12}} {part}.", f"The answer is 12 {part}."):
        assert maths_verdict("12", text, question=question) != "correct"


def test_a_phrase_for_which_the_question_asks_changes_nothing():
    for asked, behind in {
        "How many of the 20 apples are red?": "of the 20 apples",
        "What do 6 apples cost if each costs 2?": "if each costs 2",
        "How old is she in 7 years?": "in 7 years",
        "Find f(n) for n = 5.": "for n = 5",
    }.items():
        assert maths_verdict("12", rf"\boxed{{12}} {behind}", question=asked) == "correct"
    digging = "How many hours does it take to dig 30 small holes?"
    assert maths_verdict("4", r"It takes \boxed{4} hours to dig 30 small holes.", question=digging) == "correct"


OPPOSITES = [("loss", "profit"), ("maximum", "minimum"), ("larger number", "smaller number"), ("decrease", "increase")]


@pytest.mark.parametrize(("one", "other"), [*OPPOSITES, *(pair[::-1] for pair in OPPOSITES)])
def test_the_opposite_of_what_is_asked_for_is_not_paid(one: str, other: str):
    for text in (rf"The {one} is \boxed{{12}}.", f"The {one} is 12."):
        assert maths_verdict("12", text, question=f"What is the {one}?") == "correct"
        assert maths_verdict("12", text, question=f"What is the {other}?") == "unparsed"


NAMES = {
    "Find $f(3)$.": (["f(3)"], ["f(2)", "f(3) + 1", "f^{-1}(3)", "f'(3)"]),
    "What is $f^{-1}(4)$?": (["f^{-1}(4)"], ["f(4)", "f^{-1}(3)"]),
    "Let $f(x) = x^3$. Find $f'(x)$.": (["f'(x)", "f'(t)"], ["f(x)", "f^{-1}(x)"]),
    "If x + y = 3, what is the value of $y$?": (["y"], ["x", "2y", "y^2", "x + y", "y - 1"]),
    "Find $x + y$.": (["x+y", "y + x", "a + b"], ["x", "y", "2(x+y)", "x - y", r"\frac{x+y}{2}"]),
    r"Compute $\frac{a}{b}$.": ([r"\frac{a}{b}", "a/b"], [r"\frac{b}{a}", "a", "b"]),
    "Find the length of AB.": (["AB", r"\overline{AB}", "|AB|", "s"], ["AB^2", "2AB", "BC", "CD", "AB + BC"]),
    "What is the area?": (["A", r"\pi r^2", "a_1"], []),
    "Find a formula.": (["a_n", "S"], []),
}


@pytest.mark.parametrize("question", NAMES)
def test_the_value_of_another_name_or_formula_is_not_paid(question: str):
    asked, others = NAMES[question]
    for place in (r"$%s = \boxed{12}$", r"So $%s = 12$.", r"\boxed{%s = 12}"):
        texts = [place % name for name in others]
        assert [text for text in texts if maths_verdict("12", text, question=question) == "correct"] == []
    boxed = [f"${name} = \\boxed{{12}}$" for name in asked]
    assert [text for text in boxed if maths_verdict("12", text, question=question) != "correct"] == []
    for text in ("The value of $f(3)$ is %s.", "The length of AB is %s."):
        other = text.replace("3", "2").replace("AB", "CD")
        for value in ("12", r"\boxed{12}"):
            question = "Find $f(3)$." if "f(" in text else "Find the length of AB."
            assert maths_verdict("12", text % value, question=question) == "correct"
            assert maths_verdict("12", other % value, question=question) == "unparsed"


def test_a_unit_that_is_not_asked_for_is_no_wrong_answer_to_a_bare_number():
    for number, converted in ((r"4.5 \times 10^{12}", r"4.5\times10^{9}"), ("3000", "3")):
        for text in (number, converted):
            question = "What is the distance in metres?"
            assert maths_verdict(number, rf"\boxed{{{text}\text{{ km}}}}", question=question) == "unparsed"
        assert maths_verdict(number, rf"\boxed{{{number}\text{{ m}}}}", question=question) == "correct"


def test_another_time_another_thing_and_another_order_are_not_paid():
    left = "Ann had 30 eggs and uses 12. How many eggs does she have left?"
    other = [
        *[("How old will Ben be?", f"Ben {verb} 12 years old.") for verb in ("was", "is now", "will be 3 and was")],
        *[(left, f"Ann {verb} 12 eggs.") for verb in ("had", "sold", "gives away", "ate", "used", "lost")],
        ("How many boxes are needed for 75 eggs?", "You need 12 eggs."),
        ("How many litres does it use for 250 km?", r"\boxed{12} km"),
        ("How many litres does it use for 250 km?", r"It uses \boxed{12} litres per 100 km."),
        ("What is the probability of a head?", "The probability of no heads is 12."),
        ("How many numbers are even?", "The number of numbers that are not even is 12."),
        ("What is the ratio of boys to girls?", "The ratio of girls to boys is 12."),
        ("How old is Ben?", r"Ben is \boxed{12} months old."),
        ("How old is Ben?", "Ben is 12 days old."),
        ("How much change does he get?", "He pays 12 dollars."),
        ("What is the probability that none is red?", "The probability that at least one is red is 12."),
        ("What is it?", r"1 - \boxed{12}"),
    ]
    right = [
        ("How old will Ben be?", "Ben will be 12 years old."),
        *[(left, text) for text in ("Ann has 12 eggs left.", "Ann had 12 eggs left.", "She is left with 12 eggs.")],
        ("How many boxes are needed for 75 eggs?", "You need 12 boxes."),
        ("How many of the 75 eggs are broken?", "12 eggs are broken."),
        ("How many litres does it use per 100 km?", r"It uses \boxed{12} litres per 100 km."),
        ("What is the probability of no heads?", "The probability of no heads is 12."),
        ("What is the ratio of boys to girls?", "The ratio of boys to girls is 12."),
        ("What is the ratio of Ann's speed to Bo's?", "The ratio of the speed of Ann to that of Bo is 12."),
        ("How much change does the cashier give back?", "The cashier gives back 12 dollars."),
        ("What is the ratio of the area of A to the area of B?", "The ratio of the area of A to the area of B is 12."),
        ("How many are left?", "12 eggs are left."),
        ("How many weeks is that, if a day costs 3 hours?", r"\boxed{12} weeks"),
    ]
    assert [case for case in other if maths_verdict("12", case[1], question=case[0]) == "correct"] == []
    assert [case for case in right if maths_verdict("12", case[1], question=case[0]) != "correct"] == []


def test_what_is_asked_for_begins_at_the_question_word_and_has_no_conditions():
    assert asked_part("He has 3 a day. If he sells 5, how many are left in a week?") == "how many are left in a week?"
    assert asked_part("How many, if he eats one each day, are left?") == "how many, are left?"
    assert asked_part("He has 3 apples.") == ""


def test_a_preposition_is_read_behind_its_verb_alone():
    for question, text in {
        "How much money did Bailey start with?": r"Bailey started with \boxed{12} dollars.",
        "How many people did he lose to?": r"He lost to \boxed{12} people.",
        "What is the multiple of 4?": r"The multiple of 4 is \boxed{12}.",
    }.items():
        assert maths_verdict("12", text, question=question) == "correct"
    for text in (r"With \boxed{12} dollars.", r"to \boxed{12} people", r"It is a multiple of \boxed{12}."):
        assert (
            maths_verdict("12", text, question="What is the multiple of 4? To how many people, with what?") != "correct"
        )


def test_another_quantity_than_the_one_that_is_asked_for_is_not_paid():
    for one, other in (("area", "perimeter"), ("radius", "diameter"), ("remainder", "quotient"), ("height", "width")):
        text = rf"The {one} is \boxed{{12}}."
        assert maths_verdict("12", text, question=f"Find the {one} if the {other} is 5.") == "correct"
        assert maths_verdict("12", text, question=f"Find the {other}.") == "unparsed"


PARTS_STATED = [
    "half",
    "Half of it",
    "a third of them",
    "10%",
    r"10\% of the eggs",
    "2/3 of it",
    r"$\frac{2}{3}$ of his eggs",
]


@pytest.mark.parametrize("part", PARTS_STATED)
def test_a_part_is_paid_where_the_question_asks_for_it(part: str):
    given = "Tom sold half, a third, 2/3 or 10% of his eggs. "
    for text in (rf"{part} is \boxed{{12}}.", f"So {part} is 12.", f"{part} are 12"):
        assert maths_verdict("12", text) == "unparsed"
        assert maths_verdict("12", text, question=f"{given}How many eggs had he?") == "unparsed"
    asked = part if "frac" in part else part.replace("\\", "")
    text = rf"{part} is \boxed{{12}}."
    assert maths_verdict("12", text, question=f"Tom has eggs. How many of them are {asked}?") == "correct"
    assert maths_verdict("12", r"10% of 120 is \boxed{12}.") == "correct"  # a calculation


def test_who_owes_is_not_owed():
    for text in (r"Tom owes \boxed{12} dollars.", "Tom owes 12 dollars.", r"Tom will owe \boxed{12} dollars."):
        for question in ("How much does Tom owe?", "How much must Tom pay?", "How much is owed by Tom?"):
            assert maths_verdict("12", text, question=question) == "correct"
        for question in ("How much is Tom owed?", "How much is owed to Tom?", "How much money does Tom have?"):
            assert maths_verdict("12", text, question=question) == "unparsed"
    assert maths_verdict("12", r"Tom is owed \boxed{12} dollars.", question="How much does Tom owe?") == "unparsed"


@pytest.mark.parametrize("between", [" and so ", ". Then ", " so ", " ...\n", ", "])
def test_of_values_with_names_the_one_that_is_asked_for_is_paid(between: str):
    text = rf"$a=\boxed{{3}}${between}$b=\boxed{{12}}$"
    for question in ("What is b?", "Find $b$ if $a + b = 15$.", "If a = 3, find the value of b."):
        assert maths_verdict("12", text, question=question) == "correct"
    for question in ("", "What is a?", "Find a and b.", "Find a+b.", "Find $a + 2b$.", r"Compute $\frac{a}{b}$."):
        assert maths_verdict("12", text, question=question) != "correct"
    assert maths_verdict("12", text) == "unparsed"


UNITS_OF = {
    "minutes": "hours",
    "cents": "dollars",
    "cm": "meters",
    "kilometers": "miles",
    "grams": "kg",
    "boys": "girls",
}


@pytest.mark.parametrize("unit", UNITS_OF)
def test_a_value_has_the_unit_for_which_the_question_asks(unit: str):
    given = f"There are 10 {unit} and 5 {UNITS_OF[unit]} here. "
    for text in (rf"\boxed{{12}} {unit}", f"The answer is 12 {unit}.", rf"\boxed{{12\text{{ {unit}}}}}"):
        for asked, expected in ((unit, "correct"), (UNITS_OF[unit], "unparsed")):
            assert maths_verdict("12", text, question=f"{given}How many {asked} does it take?") == expected
        assert maths_verdict("12", text, question="How long, or how much, is it?") == maths_verdict("12", text)
    converted = {"minutes": "0.2 hours", "cents": "0.12 dollars", "cm": "0.12 meters"}.get(unit)
    if converted:
        assert maths_verdict(converted, rf"\boxed{{12}} {unit}", question=f"How many {UNITS_OF[unit]}?") == "correct"


@pytest.mark.parametrize("fragment", ["by", "with", "such as", "to", "from", "and", "a multiple of", "the square of"])
@pytest.mark.parametrize("place", ["{} 12", "The answer is {} 12.", r"{} \boxed{{12}}", "So it is {} 12."])
def test_a_fragment_states_no_value(fragment: str, place: str):
    question = "What is the square of the number, a multiple of 4, and with which, such as 3, is it to be multiplied?"
    assert maths_verdict("12", place.format(fragment), question=question) != "correct"


@pytest.mark.parametrize("end", ["and", "or", "to", "of", "by", "plus", "max"])
def test_a_phrase_that_is_cut_off_says_more_than_its_value(end: str):
    for text in (rf"\boxed{{12}} {end}", f"The answer is 12 {end}."):
        assert maths_verdict("12", text) != "correct"


def verdict_without_question(completion: str) -> str | None:
    return fast_reading("", "4", completion, False).verdict


def test_the_docstrings_of_a_program_are_the_question_again():
    program = '```python\ndef f():\n    """{}"""\n    return 4\n```\n'
    text = (
        program.format("How long does it take Zoltan to glaze 30 small urns?")
        + r"It takes Zoltan \boxed{4} hours to glaze"
    )
    assert verdict_without_question(text + " 30 small urns.") == "correct"
    assert verdict_without_question(text + " 40 small urns.") == "unparsed"
    assert verdict_without_question(text.split("```\n")[1] + " 30 small urns.") == "unparsed"


QUANTITIES = {"length": "cm", "perimeter": "m", "area": "cm^2", "volume": "m^3", "mass": "kg", "speed": "m/s"}
QUANTITIES |= {"time": "minutes", "temperature": "K", "price": "dollars"}


@pytest.mark.parametrize("asked", QUANTITIES)
def test_a_quantity_is_not_paid_in_units_of_another(asked: str):
    question = f"What is the {asked} of the figure?"
    for unit in QUANTITIES.values():
        for text in (
            rf"\boxed{{12}}\text{{ {unit}}}",
            rf"\boxed{{12\ \mathrm{{{unit}}}}}",
            f"The answer is 12 {unit}.",
        ):
            is_length = {unit, QUANTITIES[asked]} <= {"cm", "m"}
            if unit == "dollars" and asked != "price":
                continue  # of money, which is no dimension, this is not known
            expected = "correct" if unit == QUANTITIES[asked] or is_length else "unparsed"
            assert maths_verdict("12", text, question=question) == expected
            assert maths_verdict("12", text) == "correct"


@pytest.mark.parametrize("unit", ["kg", "m", "minutes", "dollars", "radians", r"\%", "%"])
def test_things_are_not_counted_in_units(unit: str):
    for thing in ("apples", "stamps", "revolutions"):
        question = f"How many {thing} are there?"
        for text in (rf"\boxed{{12}} {unit}", rf"\boxed{{12 {unit}}}", f"The answer is 12 {unit}."):
            assert maths_verdict("12", text, question=question) != "correct"
        assert maths_verdict("12", rf"\boxed{{12}} {thing}", question=question) == "correct"
    assert maths_verdict("12", r"\boxed{12\%}", question="What percentage of the apples is red?") == "correct"


@pytest.mark.parametrize(
    ("one", "other"), [("boys", "girls"), ("dogs", "cats"), ("girls", "students"), ("apples", "pears")]
)
def test_other_things_than_those_that_are_asked_for_are_not_paid(one: str, other: str):
    for text in (r"There are \boxed{12} %s.", "There are 12 %s.", r"\boxed{12 \text{ %s}}"):
        assert maths_verdict("12", text % one, question=f"How many {one} are there?") == "correct"
        assert maths_verdict("12", text % other, question=f"How many {one} are there?") == "unparsed"
        assert maths_verdict("12", text % "items", question=f"How many {one} and {other} are there?") == "correct"


@pytest.mark.parametrize(("name", "other"), [("Tom", "Jane"), ("Mary", "John"), ("Anna", "Peter")])
def test_what_another_person_has_is_not_paid(name: str, other: str):
    given = f"{name} has twice as many apples as {other}. "
    for text in ("%s has 12 apples.", r"So %s has \boxed{12} apples.", "%s now has 12 apples."):
        for asked in (f"How many apples does {name} have?", f"{given}How many apples did {name} eat?"):
            assert maths_verdict("12", text % name, question=asked) == "correct"
            assert maths_verdict("12", text % other, question=asked) == "unparsed"
        assert maths_verdict("12", text % other, question="How many apples are there?") == "correct"
        assert maths_verdict("12", text % f"{name}'s sister", question=f"How many does {name} have?") == "unparsed"
        assert (
            maths_verdict("12", text % f"{name}'s sister", question=f"How many does {name}'s sister have?") == "correct"
        )
        both = f"How many apples do {name} and {other} have?"
        assert maths_verdict("12", text % name, question=both) == "unparsed"
        assert maths_verdict("12", (text % f"{name} and {other}").replace("has", "have"), question=both) == "correct"
        more = f"How many more than {other} does {name} have?"
        assert maths_verdict("12", rf"{name} has \boxed{{12}} more than {other}.", question=more) == "correct"


FUNCTIONS = [r"\sin x", r"\cos x", r"\sin 2x", r"\tan\theta", r"\log_2 x", r"\log_3 x", r"\ln x", "|z|"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_value_of_a_function_is_paid_where_the_question_asks_for_it(function: str):
    for place in (r"\boxed{%s = 12}", r"$%s = \boxed{12}$", r"So $%s = 12$."):
        for other in FUNCTIONS:
            for question in (f"Find ${other}$.", f"What is ${other}$ if $y = 3$?"):
                expected = "correct" if function == other else "unparsed"
                assert maths_verdict("12", place % function, question=question) == expected
        assert maths_verdict("12", place % function, question="Find $x$ and $y$.") == "unparsed"
    assert maths_verdict(f"{function} = 12", rf"\boxed{{{function} = 12}}") == "correct"
    assert maths_verdict(f"{function} = 12", r"\boxed{12}") != "correct"


@pytest.mark.parametrize("noun", ["floor", "row", "term", "page"])
def test_an_ordinal_is_paid_where_the_question_asks_for_a_place(noun: str):
    texts = [
        rf"\boxed{{12}}th {noun}",
        rf"\boxed{{12\text{{th {noun}}}}}",
        f"The answer is the 12th {noun}.",
        f"12th {noun}",
    ]
    texts += [r"\boxed{12^{\text{th}}}", rf"\boxed{{12^{{th}}}} {noun}"]
    for text in texts:
        assert maths_verdict("12", text, question=f"On which {noun} is it?") == "correct"
        assert maths_verdict("12", text, question=f"How many {noun}s are there?") == "unparsed"
        assert maths_verdict("13", text, question=f"On which {noun} is it?") != "correct"


@pytest.mark.parametrize("modulus", [r"\pmod 7", r"\pmod{7}", r"\mod 7", "(mod 7)", r"\pmod{ 7 }"])
def test_a_modulus_behind_a_box_says_no_more_than_the_question(modulus: str):
    text = rf"$100 \equiv \boxed{{2}} {modulus}$."
    for question, verdict in (
        ("What is the remainder of 100 by 7?", "correct"),
        ("", "correct"),
        ("What is the remainder of 100 by 49?", "unparsed"),
    ):
        assert maths_verdict("2", text, question=question) == verdict
    others = [
        text.replace(r"\equiv", r"\not\equiv"),
        text.replace(r"\equiv", r"\equiv -"),
        text.replace("$.", " + 1$."),
    ]
    others += [r"$100 \equiv 2 \pmod{\boxed{7}}$", rf"\boxed{{2}} {modulus}", rf"\boxed{{2 {modulus}}}"]
    assert [other for other in others[:3] if maths_verdict("2", other) == "correct"] == []
    assert [other for other in others[3:] if maths_verdict("7", other, question="What is it?") == "correct"] in (
        [],
        others[3:4],
    )


@pytest.mark.parametrize("scale", ["million", "thousand", "billion", "dozen"])
def test_a_word_of_scale_is_that_for_which_the_question_asks(scale: str):
    for text in (rf"\boxed{{12\text{{ {scale}}}}}", rf"\boxed{{12}} {scale}", f"The answer is 12 {scale}."):
        for asked in (f"How many {scale} eggs are sold?", f"What is the number of eggs, in {scale}s?"):
            assert maths_verdict("12", text, question=asked) == "correct"
        other = "million" if scale != "million" else "billion"
        for asked in ("How many eggs are sold?", f"How many {other} eggs are sold?"):
            assert maths_verdict("12", text, question=asked) != "correct"


STATISTICS = ["mean", "median", "sum", "product", "gcd", "lcm", "x-intercept", "y-intercept", "interest", "principal"]


@pytest.mark.parametrize("one", STATISTICS)
def test_of_values_with_common_names_the_one_that_is_asked_for_is_paid(one: str):
    for other in STATISTICS:
        text, question = rf"The {one} is \boxed{{12}}.", f"What is the {other}?"
        assert (maths_verdict("12", text, question=question) == "correct") is (one == other)


SENTENCES = [r"\text{There are } 12 \text{ eggs}", r"\text{12 eggs in total}", r"\text{The answer is 12.}"]
SENTENCES += [r"\text{Answer: } 12", r"\text{She has } 12 \text{ eggs left}", r"12 \text{ eggs altogether}"]
NO_SENTENCES = [r"\text{There are } 12 \text{ more eggs}", r"\text{not } 12", r"\text{half of } 12", r"\text{Page } 12"]
NO_SENTENCES += [r"\text{Is it } 12?", r"\text{It may be } 12", r"\text{12 eggs a day}", r"\text{I guess } 12"]
NO_SENTENCES += [
    r"\text{She has } 12 \text{ or } 13",
    r"\text{Ann has 12, Bob has 5}",
    r"\text{fewer than } 12 \text{ eggs}",
]


def test_a_box_may_hold_a_sentence():
    question = "How many eggs are there?"
    assert [
        text for text in SENTENCES if maths_verdict("12", rf"\boxed{{{text}}}", question=question) != "correct"
    ] == []
    paid = [text for text in NO_SENTENCES if maths_verdict("12", rf"\boxed{{{text}}}", question=question) == "correct"]
    assert paid == []


LABELS = [
    "So it is in {} 12.",
    "The answer is {} 12.",
    "This is {} 12.",
    "{} 12",
    r"\boxed{{\text{{{} }}12}}",
    r"The last is {} \boxed{{12}}",
]


def test_a_value_without_figures_has_no_number_that_a_noun_could_give_it():
    for text in (r"The room is \boxed{x} and \boxed{12}", r"room \boxed{\pi} or \boxed{12}"):
        assert maths_verdict("12", text, question="How many rooms are there?") == "wrong"


@pytest.mark.parametrize("noun", ["room", "floor", "player", "locker", "track", "step", "question", "line"])
def test_a_noun_in_front_of_a_value_numbers_things(noun: str):
    count, place = f"How many {noun}s are there? Each {noun} has 3 doors.", f"In which {noun} does Ann sit?"
    texts = [text.format(noun) for text in LABELS]
    assert [text for text in texts if maths_verdict("12", text, question=count) == "correct"] == []
    assert maths_verdict("12", f"The answer is {noun} 12.", question=place) == "correct"
    for text in (f"There are 12 {noun}s.", f"Number of {noun}s: 12"):
        assert maths_verdict("12", text, question=count) == "correct"
    given = r"Tom should give the driver $\boxed{12}$ dollars."
    assert maths_verdict("12", given, question="How many dollars should Tom give the driver?") == "correct"


OF_WHAT = [
    ("What is the radius of the circle?", "r = 12", "d = 12"),
    ("What is the diameter of the circle?", "The diameter is 12.", "The square of the diameter is 12."),
    ("What is the diameter of the circle?", "d = 12", "r = 12"),
    ("There are red and blue marbles. How many blue marbles are there?", "12 blue marbles", "12 red marbles"),
    ("How old is Ben now?", "Ben is 12 years old.", "Ben will be 12."),
    ("How old is Ben now?", "Ben is 12.", "In 3 years Ben is 12."),
    ("Where do they meet?", "They meet at 12.", "They meet left of 12."),
    ("Quanti libri ha letto Marco?", "Marco ha letto 12 libri.", "Marco ha letto 12 pagine."),
    ("\u00bfCu\u00e1ntos libros ley\u00f3 Ana?", "Ana ley\u00f3 12 libros.", "Ana ley\u00f3 12 p\u00e1ginas."),
    ("Wie viele B\u00fccher hat Eva gelesen?", "Eva hat 12 B\u00fccher gelesen.", "Eva hat 12 Seiten gelesen."),
    (
        "\u0421\u043a\u043e\u043b\u044c\u043a\u043e \u044f\u0431\u043b\u043e\u043a \u0443 \u0422\u043e\u043c\u0430?",
        "12 \u044f\u0431\u043b\u043e\u043a\u0430",
        "12 \u043a\u043d\u0438\u0433",
    ),
    ("What is the value of x?", "The value of x is 12.", "The value of y is 12."),
    ("What is x?", "So x is 12.", "So y is 12."),
    ("Find m.", "m is 12.", "m+1 equals 12"),
    ("What is a+b+c?", "The sum of a, b, and c is 12.", "So a + b is 12."),
    ("What is AB + B?", "The value of $AB + B$ is $\\boxed{12}$.", "The value of $A + B$ is $\\boxed{12}$."),
    ("\u00bfCu\u00e1l es el valor de x?", "El valor de x es 12.", "El valor de y es 12."),
    ("Bestimme y.", "y ist \\boxed{12}.", "x ist \\boxed{12}."),
    ("How many pens are in the 4 boxes?", "4 x 3 = 12 pens", "4 x 3 = 12 boxes"),
    ("How many red cars are there?", "There are 12 red cars.", "There are 12 blue cars."),
    ("How much taller is Ann than Bob, in cm?", "Ann is 12 cm taller.", "Ann is 12 cm tall."),
    ("How many cookies are left?", "There are 12 cookies left.", "There were 12 cookies."),
    ("On which floor does she live?", "She lives on the 12th floor.", "She lives above the 12th floor."),
    ("What is the price in dollars?", "The price is $12.", "The price is Rs. 12."),
    ("What does it cost in euros?", r"\boxed{€12}", r"\boxed{\$12}"),
    ("How many cents is that?", "That is 12¢.", "That is $12."),
    ("What is 3 times 4?", "It is 12.", r"\boxed{12}\%"),
    ("What is 20% of 60?", "20% of 60 is 12.", "It is 12%."),
    ("The interest rate is r. Find r.", "r = 12%", "s = 12%"),
    ("By what percentage did it rise?", "It rose by 12%.", "It rose by $12."),
    ("By what percentage did the price increase?", "The price increased by 12%.", "The price increased to 12%."),
    ("How much does Tom earn per week?", "He earns 12 per week.", "He earns 12 per week per person."),
    ("What is its acceleration?", r"\boxed{12} m/s^2", r"\boxed{12} m/s"),
    ("What is the molarity?", r"\boxed{12\text{ M}}", r"\boxed{12\text{ mol}}"),
    ("What is the probability of at least two heads?", "P = 12", "The probability of exactly two heads is 12."),
    ("Find the sum of the first 20 even numbers.", "The sum is 12.", "The sum of the first 21 even numbers is 12."),
    ("Find the sum of the terms.", "The sum of the terms is 12.", "The sum of the squares is 12."),
    ("How many odd numbers are there?", "The number of odd numbers is 12.", "The number of even numbers is 12."),
    ("What is the probability that no bulb is broken?", "It is 12.", "The probability that a bulb is broken is 12."),
    ("How many boys are there?", "The number of boys is 12.", "The number of girls is 12."),
    ("How many boys are there?", "Boys: 12", "Girls: 12"),
    ("How many students are in the class?", "There are 12 students.", "There are 12 classes."),
    ("How many dozens of eggs are needed?", "12 dozen eggs", "12 eggs"),
    ("How many pairs of shoes has she?", "12 pairs", "12 shoes"),
    ("How many cups of flour are needed?", "12 cups", "12 spoons"),
    ("How many apples does Tom have now?", "Tom has 12 apples now.", "Tom bought 12."),
    ("What is the sale price?", "The sale price is 12 dollars.", "You save 12 dollars."),
    ("What is the sale price?", "The sale price is 12 dollars.", "The 20% discount is 12 dollars."),
    ("How many passengers got on?", "12 passengers got on.", "12 passengers got off."),
    ("How many passengers got on?", "12 passengers got on.", "12 passengers stayed on the bus."),
    ("How many litres are left after the leak?", "12 litres are left.", "12 litres leaked out."),
    ("How much does the party cost?", "It costs 12 dollars.", "They have 12 dollars left."),
    ("What is the distance?", "The distance is 12 miles.", "She still has 12 miles to go."),
    ("In how many years will the father be twice as old?", "in 12 years", "The son will be 12."),
    ("How many pens does she have left?", "She has 12 pens left.", "Her brother has 12 pens left."),
    ("A right triangle has a leg of 5. Find the hypotenuse.", "The hypotenuse is 12.", "The shorter leg is 12."),
    ("What is the total cost, with tax?", "The total cost is 12 dollars.", "The deposit is 12 dollars."),
    ("How many books does Ann have?", "Ann has 12 books.", "They have 12 books together."),
    ("How many books do Ann and Tom have together?", "They have 12 books together.", "Ann has 12 books."),
    ("Wie viele \u00c4pfel hat Peter jetzt?", "Peter hat jetzt 12 \u00c4pfel.", "Peter hatte 12 \u00c4pfel."),
    ("Wie viele \u00c4pfel hat Peter jetzt?", "Peter hat jetzt 12 \u00c4pfel.", "Anna hat jetzt 12 \u00c4pfel."),
    ("Quanti anni ha Luca?", "Luca ha 12 anni.", "Luca ha 12 mesi."),
    ("\u00bfCu\u00e1ntos kil\u00f3metros recorre?", "Recorre 12 km.", "Recorre 12 millas."),
    ("Combien de litres reste-t-il ?", "Il reste 12 litres.", "Il reste 12 m\u00e8tres."),
    ("Find the number ABCD with 4 ABCD = DCBA.", r"\boxed{ABCD = 12}", r"\boxed{DCBA = 12}"),
    ("Find the number AB.", r"\overline{AB} = 12", "BA = 12"),
    ("Find the length of the segment AB.", "BA = 12", "AC = 12"),
    ("Find z.", "z = 12", r"\bar{z} = 12"),
    ("What is the slope of the tangent at x = 3?", "The slope is 12.", "x = 12"),
    ("What is the bearing of B from A?", "The bearing of B from A is 12.", "The bearing of A from B is 12."),
]


@pytest.mark.parametrize(("question", "right", "other"), OF_WHAT)
def test_what_the_value_is_of_is_what_the_question_asks_for(question: str, right: str, other: str):
    assert maths_verdict("12", right, question=question) == "correct"
    assert maths_verdict("12", other, question=question) != "correct"


@pytest.mark.parametrize("verb", [" is", ":", " of the list is"])
def test_boxes_with_names_in_words_are_in_their_order(verb: str):
    question = "What are the mean and the median of the list, in this order?"
    for first, second in (("3", "2"), ("2", "3")):
        text = rf"The mean{verb} \boxed{{{first}}} and the median{verb} \boxed{{{second}}}."
        assert (maths_verdict("3, 2", text, question=question) == "correct") is (first == "3")
    assert maths_verdict("2", r"x is \boxed{2} and y is \boxed{3}.", question="Find x.") == "correct"


def test_an_ordinal_is_a_number_where_the_question_asks_for_a_place():
    for text in (r"\boxed{15}", r"\boxed{\text{15th}}", r"\boxed{\text{15th day}}"):
        assert maths_verdict("15th Day", text, question="On which day did he get it?") == "correct"
        assert maths_verdict("15th Day", text.replace("5", "4"), question="On which day did he get it?") != "correct"
    assert maths_verdict("15th Day", r"\boxed{15}", question="How many days did it take?") != "correct"


@pytest.mark.parametrize("place", [r"\boxed{%s = 2:3:4}", "%s = 2:3:4", "So %s = 2:3:4."])
def test_a_ratio_has_the_order_for_which_the_question_asks(place: str):
    question = "In what ratio do A, B and C share the profit?"
    paid = [
        names
        for names in ("A:B:C", "C:B:A", "B:A:C")
        if maths_verdict("2:3:4", place % names, question=question) == "correct"
    ]
    assert paid == [] or paid == ["A:B:C"]
    assert maths_verdict("2:3:4", r"\boxed{A:B:C = 2:3:4}", question=question) == "correct"


def test_names_of_a_point_are_those_of_the_question():
    question = "Solve x + y = 5, x - y = 1 for x and y."
    for text in ("x = 3, y = 2", "y = 2, x = 3", r"\boxed{x = 3, y = 2}"):
        assert maths_verdict("(3, 2)", text, question=question) == "correct"
    for text in ("x = 3, z = 2", "y = 3, x = 2"):
        assert maths_verdict("(3, 2)", text, question=question) != "correct"
