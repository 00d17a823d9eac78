"""What an answer says that the question does not ask for, and what it says that the question asks for: each answer in
places where people write it."""

import pytest

from cooper_verify.rules.verdicts.fast_path import fast_reading
from cooper_verify.rules.verdicts.symbolic import maths_verdict

# question, reference, answers that say what is asked for, answers that say something else
ASKED = [
    (
        "How many apples does Sam have in total?",
        "12",
        ["Sam has 12 apples.", "He now has 12 apples."],
        [
            *["He needs 12 apples.", "He sold 12 apples.", "He gave 12 apples away.", "He could have 12 apples."],
            *["He had 12 apples.", "He has as many as 12 apples.", "He has 12 too few apples."],
            "He has 12 of the apples.",
        ],
    ),
    (
        "Tom has 4 marbles more than Ann. How many marbles does Ann have?",
        "8",
        ["Ann has 8 marbles."],
        ["Ann and Tom have 8 marbles.", "Ann gives Tom 8 marbles.", "Tom has 8 marbles."],
    ),
    (
        "Her ducks lay 16 eggs a day. She eats 4 of them and sells the others. How many eggs does she sell?",
        "12",
        ["She sells 12 eggs.", "She sold 12 eggs.", "She has 12 eggs to sell."],
        ["She eats 12 eggs.", "She bakes 12 eggs.", "She bought 12 eggs.", "Her ducks could earn 12 eggs."],
    ),
    (
        "How much does the school pay for the tickets?",
        "40",
        ["The school pays $40.", "It spends $40.", "It would cost $40.", "They need $40.", "It has to collect $40."],
        ["The school earns $40.", "It collected $40."],
    ),
    ("Find the coordinates of C.", "(3,-4)", [r"\boxed{C(3,-4)}"], [r"\boxed{D(3,-4)}"]),
    (
        "How many marbles do Tom and Ann have together?",
        "8",
        ["Tom and Ann have 8 marbles.", "Ann and Tom have 8 marbles together."],
        ["Tom has 8 marbles."],
    ),
    (
        "How much does Lee earn per week?",
        r"\$480",
        ["Lee earns $480 per week.", "$480 a week", r"\boxed{\$480\text{ per week}}", r"\boxed{\$480/\text{week}}"],
        ["Lee spends $480 per week.", "$480 per month", r"\boxed{\$480/\text{day}}"],
    ),
    (
        r"Find $\angle ACB$.",
        r"50^\circ",
        [r"\boxed{\angle ACB=50^\circ}", r"\boxed{\angle BCA=50^\circ}", "The measure of angle ACB is 50 degrees."],
        [r"\boxed{\angle ABC=50^\circ}", "The measure of angle ABC is 50 degrees."],
    ),
    ("What is the pH of the solution?", "4.7", ["pH = 4.7"], ["pOH = 4.7"]),
    ("Find the maximum value of f.", "5", [r"\boxed{f_{\max}=5}"], [r"\boxed{f_{\min}=5}"]),
    ("Find the vertex of the parabola.", "(-1, 4)", ["The vertex is (-1, 4)."], ["The focus is (-1, 4)."]),
    (
        "Find the ratio of the area of triangle ABC to the area of triangle DEF.",
        "4:9",
        [r"\boxed{4:9}"],
        ["[DEF]:[ABC] = 4:9", "1 cm : 50 km"],
    ),
    (
        "What is the probability of getting at least two heads?",
        r"\frac12",
        ["The probability of getting at least two heads is 1/2."],
        ["The probability of getting at most two heads is 1/2."],
    ),
    (
        "Find the sum of the first five terms.",
        "31",
        ["The sum of the first five terms is 31."],
        ["The sum of the first six terms is 31.", "The first five terms are 31."],
    ),
    (
        r"Evaluate $\lim_{x\to 0}\frac{\sin x}{x}$.",
        "1",
        [r"\boxed{\lim_{x\to 0}\frac{\sin x}{x}=1}"],
        [r"\boxed{\lim_{x\to 1}\frac{\sin x}{x}=1}", r"\boxed{\lim_{x\to 0}\frac{x}{\sin x}=1}"],
    ),
    ("Find the acceleration in terms of g.", r"\frac{g}{4}", [r"\boxed{\frac14 g}", r"\boxed{0.25g}"], [r"\boxed{4g}"]),
    ("Wie viel wiegt der Sack?", "2,5 kg", ["Der Sack wiegt 2,5 kg.", r"\boxed{2{,}5\text{ kg}}"], ["25 kg", "2,5 g"]),
    (
        "甲、乙两数之和是多少？",
        "56",
        ["甲、乙两数之和是56。"],
        ["两数之差是56。", "甲数是56。", "两数之和的一半是56。"],
    ),
    ("Which is best? A) x B) y C) z", "B", ["The best answer is B."], ["The best answer is not B."]),
]


@pytest.mark.parametrize(("question", "reference", "right", "others"), ASKED)
def test_what_is_asked_for_is_paid_and_nothing_else(question: str, reference: str, right: list[str], others: list[str]):
    def verdict(text: str) -> str | None:
        return fast_reading(question, reference, text, False).verdict

    assert [text for text in right if verdict(text) != "correct"] == []
    assert [text for text in others if verdict(text) == "correct"] == []


ORDERED = ["Write the first five terms of the sequence.", "List the five numbers in ascending order."]


@pytest.mark.parametrize("question", ORDERED)
def test_a_sequence_has_an_order(question: str):
    assert maths_verdict("1, 1, 2, 3, 5", r"\boxed{1,1,2,3,5}", question=question) == "correct"
    for answer in ("5,3,2,1,1", "1,2,1,3,5"):
        assert maths_verdict("1, 1, 2, 3, 5", rf"\boxed{{{answer}}}", question=question) == "unparsed"
        assert maths_verdict("1, 1, 2, 3, 5", rf"\boxed{{{answer}}}", question="Find all values.") == "correct"


@pytest.mark.parametrize("sign", ["\u2260", "\u221a", "<", r"\boxed{3} \neq", "log"])
def test_a_sign_or_a_function_beside_a_box_is_read(sign: str):
    assert maths_verdict("12", rf"x {sign} \boxed{{12}}") != "correct"


@pytest.mark.parametrize("function", ["sqrt", "ln(2)", "sin 3"])
def test_a_function_behind_a_box_is_read(function: str):
    assert maths_verdict("12", rf"\boxed{{12}} {function}") != "correct"


@pytest.mark.parametrize("answer", ["A, C or D", r"\boxed{A, C, \neg D}", "A, C, not D"])
def test_a_letter_that_is_denied_or_one_of_two_is_no_choice(answer: str):
    assert maths_verdict("A, C, D", answer) != "correct"


OPENINGS = [
    *["In short, ", "In other words, ", "To summarize, ", "By symmetry, ", "With this in mind, ", "Doing the math, "],
    *["Based on the calculations above, ", "According to the formula, ", "It can be shown that ", "Adding these up, "],
]
OTHER_OPENINGS = [
    *["In the second case, ", "Contrary to the formula, ", "Without substitution, ", "It can't be shown that "],
    *["According to Tom, ", "By adding half of it, ", "Doubling it all, "],
]


@pytest.mark.parametrize("statement", ["the answer is 12.", "our final answer is 12.", r"the answer is \(12\)."])
def test_how_an_answer_was_found_is_read_in_front_of_it_and_no_other_clause(statement: str):
    assert [one for one in OPENINGS if maths_verdict("12", one + statement) != "correct"] == []
    assert [one for one in OTHER_OPENINGS if maths_verdict("12", one + statement) == "correct"] == []


LEFT = "Ann has 20 apples and gives 8 to Ben. How many apples does Ann have left?"
STEPS = ["So we get 12.", "This gives 12.", "Thus we then have 12.", "Simplifying gives 12."]
DEEDS = [
    "Ann gives 12.",
    "So they gave 12.",
    "So Ben gets 12.",
    "Ann sells 12.",
    "So we lose 12.",
    "Ben, who gives 12.",
]


def test_a_step_of_the_reasoning_is_no_deed():
    assert [step for step in STEPS if maths_verdict("12", step, question=LEFT) != "correct"] == []
    assert [deed for deed in DEEDS if maths_verdict("12", deed, question=LEFT) == "correct"] == []
    king = "The king has 20 coins and gives 8 to Ben. How many coins does the king have left?"
    for deed in ("The king gives 12.", "The king, which gives joy, sells 12."):
        assert maths_verdict("12", deed, question=king) != "correct"
    ours = "We owe 20 dollars and get 8. How many dollars do we owe?"
    assert maths_verdict("12", "So we get 12.", question=ours) != "correct"


def test_a_sign_between_spaces_makes_the_answer_a_part_and_a_slip_does_not():
    assert maths_verdict("16", "6+10=16+ answer: 16", question="6 + 10 = ?") == "correct"
    for part in ("2 + the answer is 16.", "So 2 times the answer is 16.", "x * the answer is 16."):
        assert maths_verdict("16", part) != "correct"
