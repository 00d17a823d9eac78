"""Notations that people write beside the usual ones, and answers of which nobody can say that they are wrong."""

import time

import pytest

from cooper_verify.rules.verdicts.symbolic import maths_verdict

SAME = [
    *[(r"\frac{7}{3}", r"{7}\over{3}"), ("6.02e23", "6.02 E23"), ("12", "x := 12"), ("12", "twelve (12)")],
    *[("12", name) for name in ("AB = 12", "|AB| = 12", r"\overline{AB} = 12", "S_{ABC} = 12", "pH = 12", "sum = 12")],
    *[("-5", r"\Delta H = -5\text{ kJ}"), ("x=1 or x=2", "x_1 = 1, x_2 = 2"), ("x_1=1, x_2=2", "x = 2, x = 1")],
    *[("(1,3)", "]1,3["), ("[1,3)", "[1;3["), (r"(1,3]\cup(4,\infty)", r"]1,3]\cup]4,\infty[")],
    *[("(5,3)", "y = 3, x = 5"), ("(1,4,6)", "a = 1, c = 6, b = 4"), ("(5,3)", "(y, x) = (3, 5)")],
    *[(r"\ln 5", rf"\log_{base} 5") for base in ("e", "{e}", r"{\mathrm{e}}")],
    *[("2x", r"2\text{x}"), ("3y", r"3\mathrm{y}"), ("x^2+C", r"x^2+\text{C}"), ("x^2+C", r"x^2+\mathrm{C}")],
    *[("forty percent", r"40\%"), ("five dollars", r"\$5"), ("two hours", "120 minutes")],
    *[(r"45^\circ 30'", r"45.5^\circ"), (r"12^\circ 34' 56''", r"12^{\circ}34^{\prime}56^{\prime\prime}")],
    (r"3\hat{i}+4\hat{j}", r"3\hat{\imath}+4\hat{\jmath}"),
    *[("(2,-1,0)", f"(2,-1,0)^{top}") for top in ("T", r"{\top}", r"{\mathsf{T}}", r"\intercal")],
    *[("v_0+at", "at+v_0"), ("e^{it}", "e^{ti}"), (r"\frac12 mv^2", r"\frac{mv^2}{2}"), (r"\frac12 gt^2", "0.5gt^2")],
    *[(r"x=\pm 7", r"\mp 7"), (r"x=\pm 7", r"x_{1,2}=\pm 7"), ("1234567", r"\num{1234567}")],
    *[("(x-2)(x-3)", "x^2-5x+6=(x-2)(x-3)"), (r"\frac{\sqrt{3}}{2}", r"{\sqrt{3}\over 2}")],
    *[("f(x)=2x", r"f(x)=2x \text{ for all real } x"), ("4", r"x=4\text{ only}"), (r"\text{only }x=4", "4")],
    *[("\frac{1}{2}", "0.5"), ("3\times 4 x", "12x"), (r"O(n\log n)", r"\mathcal{O}(n\log n)")],
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\[2pt] 2\end{pmatrix}"),
    *[(r"(2,\frac{\pi}{3})", name) for name in (r"r=2, \theta=\frac{\pi}{3}", r"\theta=\frac{\pi}{3}, r=2")],
    *[("f^{-1}(x) = 2x", "y = 2x"), ("y = 2x", "f(x) = 2x"), (r"\{2,4\}", r"A\cap B = \{2,4\}")],
]
OTHER = [
    *[("(3,5)", "y = 3, x = 5"), ("(1,4,6)", "a = 1, c = 4, b = 6"), ("(5,3)", "(y, x) = (5, 3)")],
    *[(r"\ln 5", rf"\log_{base} 5") for base in ("2", r"\pi", "{10}")],
    *[("2", r"2\text{x}"), ("2x", r"2\text{y}"), ("3 m", r"3\text{n}"), ("x^2", r"x^2+\text{C}")],
    *[
        ("forty percent", r"14\%"),
        ("forty percent", r"0.4\%"),
        ("five dollars", "5 cents"),
        ("3:2", "2 to 3"),
        ("3", "3 to 2"),
    ],
    *[("(2,-1,0)", "(2,-1,0)^2"), ("f(x) = 2x", "x = 2y"), ("f(x) = 2x", "y = 3x"), (r"\{2,4\}", r"A\cap B = \{2\}")],
    *[("v_0+at", "v_0-at"), ("e^{it}", "e^{-it}"), (r"\frac12 mv^2", r"\frac12"), (r"\frac12 mv^2", r"\frac{mv}{2}")],
    *[(r"x=\pm 7", r"x_{1,2}=7"), (r"x=\pm 7", r"y_{1,2}=\pm 7"), ("(x-2)(x-3)", "x^2-5x+6=(x-2)(x-1)")],
    *[("f(x)=2x", r"f(x)=2x \text{ for all even } x"), ("4", r"x=-4\text{ only}"), ("\frac{1}{2}", "2")],
    *[("[1,2,3]", "[[1],2,3]"), (r"(2,\frac{\pi}{3})", r"r=\frac{\pi}{3}, \theta=2"), (r"O(n)", r"o(n)")],
    *[(r"\emptyset", r"A\cup B=\emptyset"), (r"\emptyset", "x=3"), (r"\emptyset", r"x=\{\emptyset\}")],
    *[("12", name) for name in ("NO = 12", "AB^2 = 12", "AB + BC = 12", "2AB = 12", "pOH + 1 = 12", "twelve (13)")],
    *[("x=1 or x=2", "x_1 = 1, x_2 = 3"), ("x=1 or x=2", "x_1 = 1, y_2 = 2"), ("[1,3]", "]1,3["), ("(1,3)", "]3,1[")],
    *[(r"45^\circ 30'", r"30^\circ 45'"), (r"45^\circ 30'", r"45^\circ 30''"), (r"45^\circ 30'", r"45.3^\circ")],
]
CASES = r"\begin{cases} 1 & x>0 \\ 0 & x=0 \\ -1 & x<0 \end{cases}"
SAME_CASES = [
    r"\begin{cases} -1, & \text{if } x<0 \\ 0, & \text{for } x=0, \\ 1, & \text{when } x>0. \end{cases}",
    r"f(x) = \begin{cases} 0 & 0=x \\ 1 & 0<x \\ -1 & 0>x \end{cases}",
]
OTHER_CASES = [
    *[r"\begin{cases} 1 & x<0 \\ 0 & x=0 \\ -1 & x>0 \end{cases}", r"\begin{cases} 1 & x>0 \\ -1 & x<0 \end{cases}"],
    *[r"\begin{cases} 1 & x \ge 0 \\ 0 & x=0 \\ -1 & x<0 \end{cases}", f"-{CASES}", f"2{CASES}", "1", r"\{1, 0, -1\}"],
]


@pytest.mark.parametrize("place", [r"\boxed{%s}", "So we have $%s$.", "The answer is $%s$."])
def test_a_notation_says_its_value_in_every_place(place: str):
    assert [pair for pair in SAME if maths_verdict(pair[0], place % pair[1]) != "correct"] == []
    assert [pair for pair in OTHER if maths_verdict(pair[0], place % pair[1]) == "correct"] == []


@pytest.mark.parametrize("place", [r"\boxed{%s}", r"\boxed{\text{%s}}", "The odds are %s.", "Answer: %s", "#### %s"])
def test_a_ratio_may_be_in_words_where_the_reference_is_one(place: str):
    assert {maths_verdict(ratio, place % "3 to 2") for ratio in ("3:2", "3 : 2")} == {"correct"}
    others = [
        ("3:2", "2 to 3"),
        ("3", "3 to 2"),
        ("2", "3 to 2"),
        ("1.5", "3 to 2"),
        ("3:2", "3 to 2 to 1"),
        ("3 to 2", "2 to 3"),
    ]
    assert [pair for pair in others if maths_verdict(pair[0], place % pair[1]) == "correct"] == []


def test_cases_are_compared_by_their_conditions_in_any_order():
    assert {maths_verdict(CASES, rf"\boxed{{{text}}}") for text in SAME_CASES} == {"correct"}
    assert [text for text in OTHER_CASES if maths_verdict(CASES, rf"\boxed{{{text}}}") == "correct"] == []
    words = r"\begin{cases} 2^n & n \text{ even} \\ 3^n & n \text{ odd} \end{cases}"
    for condition, verdict in (("is even", "correct"), ("is not even", "unparsed"), ("is prime", "unparsed")):
        answer = rf"\begin{{cases}} 3^n & \text{{if $n$ is odd}} \\ 2^n & \text{{if $n$ {condition}}} \end{{cases}}"
        assert maths_verdict(words, rf"\boxed{{{answer}}}") == verdict
    assert maths_verdict(CASES, rf"\boxed{{{SAME_CASES[0].replace('0, &', '2, &')}}}") == "wrong"


UNCLEAR = [
    *[("No", "The equilibrium is unstable"), ("Yes", "It converges"), ("No", "N"), ("True", "T"), ("Yes", "u(x) = C")],
    *[("March 5, 2024", "March 5"), ("1234567", r"1.23\times 10^6"), ("x_1=1, x_2=2", "x_1=2, x_2=1")],
    *[(r"3\hat{i}+4\hat{j}", r"3\hat{x}+4\hat{y}"), ("B", "B) A and C only")],
    *[("$1.35", r"\$1\text{ and }35\text{\u00a2}"), ("5 km north", "5000 m north")],
]


@pytest.mark.parametrize(("reference", "answer"), UNCLEAR)
def test_what_may_be_right_is_not_wrong(reference: str, answer: str):
    for text in (rf"\boxed{{{answer}}}", f"Answer: {answer}"):
        assert maths_verdict(reference, text) != "wrong"


def test_an_option_may_have_a_formula_and_be_set_off_from_others():
    question = "Which? (A) $x$ (B) $x^2 + C$ (C) 13 (D) 14"
    for text in (r"\boxed{\text{(B) }x^2 + C}", r"The answer is B) $x^2 + C$", "The answer is not A but B."):
        assert maths_verdict("B", text, question=question) == "correct"
    for text in (r"\boxed{B + C}", r"\boxed{B) x^2 or C}", "The answer is not B but C.", "The answer is B or C."):
        assert maths_verdict("B", text, question=question) != "correct"
    assert maths_verdict("A, C", "A and C are true, B is false.", question=question) != "wrong"


@pytest.mark.parametrize("behind", [", -3", " and -3", " / -3", ", 3%", "; -3.0", " (i.e. 3%)", " or -3"])
def test_the_same_figures_with_another_sign_are_another_value(behind: str):
    assert maths_verdict("3", rf"\boxed{{3}}{behind}") != "correct"
    assert maths_verdict("3", rf"\boxed{{3}}. So 3 it is.{behind}") != "correct"


@pytest.mark.parametrize(
    "text", ["Answer:\n- 12", "Answer: - 12", "**Answer**:\n\n- 12", "- 12", "The answer is\n- 12 apples"]
)
def test_a_dash_with_a_space_may_be_a_bullet_and_no_minus(text: str):
    assert maths_verdict("12 apples" if "apples" in text else "12", text) == "unparsed"
    assert maths_verdict("13 apples" if "apples" in text else "13", text) == "wrong"


@pytest.mark.parametrize("text", [r"\boxed{- 12}", "x = - 12", "Answer: -12"])
def test_a_minus_is_a_minus_where_no_list_begins(text: str):
    assert maths_verdict("12", text) == "wrong"


def test_of_a_list_of_numbers_nobody_knows_which_is_the_answer():
    for item in ("1. 11\n2. 12", "- 11\n- 12", "1) **11**\n2) **12**"):
        assert maths_verdict("12", item) == "unparsed"
    assert maths_verdict("12", "1. Add 11 and 1.\n2. So it is 12.") == "correct"
    assert maths_verdict("12", "twice as many as 12", question="Who has twice as many as Ann?") == "unparsed"


HEAVY = [r"(x+1)^{100000}", r"(a+b+c+d)^{500}", r"\log(\log(\log(\log(\log(10^{100})))))", "\u00bd" * 5000]
HEAVY += [
    r"\boxed{12} " + "\u00b2" * 5000,
    r"\imath(B)",
    r"\log 0/",
    "12 more than " * 700,
    r"\boxed{12} each day " * 400,
]


@pytest.mark.parametrize("text", HEAVY)
def test_no_text_takes_long_or_raises(text: str):
    for reference in ("12", r"\sqrt{2}", "x^2+1", "Paris", r"\imath(B)"):
        for completion in (rf"\boxed{{{text}}}", text):
            started = time.process_time()
            maths_verdict(reference, completion, question="How many more than Ann has he in a week?")
            assert time.process_time() - started < 1, reference


SAME_VALUES = [
    *[
        ("12 m^2", "The area is 12 m\u00b2."),
        ("12", "The area is 12 cm\u00b2."),
        ("12", "Die Fl\u00e4che betr\u00e4gt 12 cm\u00b2."),
    ],
    *[
        ("5 kg", "5 \u5343\u514b"),
        ("5 km", "5 \u5343\u7c73"),
        ("5 m^2", "5 \uc81c\uacf1\ubbf8\ud130"),
        ("18 MJ", "18 \u041c\u0414\u0436"),
    ],
    *[
        ("1011_2", r"\boxed{1011\text{ (base 2)}}"),
        ("1011_2", "0b1011"),
        ("FF_{16}", "0xff"),
        ("0.67", r"\boxed{x \approx 0.67}"),
    ],
    *[
        ("12", "=> 12"),
        ("12", r"\therefore 12"),
        ("12", r"\boxed{12} Let me know if you have any questions."),
        ("3:4", "3\u22364"),
    ],
    *[
        ("3000000", "3 million people"),
        (r"\binom{7}{3}", r"\boxed{7 choose 3}"),
        ("12", "Il y a 12 \u00e9l\u00e8ves."),
        ("12", "\ub113\uc774\ub294 12\uc774\ub2e4."),
    ],
    *[
        ("2H_2 + O_2 \\to 2H_2O", "O2 + 2H2 -> 2H2O"),
        ("2:30 pm", "2.30 p.m."),
        (r"\mathbb{R}\setminus\{2\}", r"\mathbb{R}-\{2\}"),
    ],
]
OTHER_VALUES = [
    *[
        ("12 m^2", "The area is 12 m\u00b3."),
        ("5 kg", "5 \u5343"),
        ("5 kg", "5 \u5343\u7c73"),
        ("5 m^2", "5 \uc138\uc81c\uacf1\ubbf8\ud130"),
        ("18 MJ", "18 \u043c\u0414\u0436"),
    ],
    *[
        ("1011_2", "0b1101"),
        ("1011_2", r"\boxed{1011\text{ in base 3}}"),
        ("FF_{16}", "FF_{15}"),
        ("255", "0xFF"),
        ("0.67", "x \u2248 0.68"),
    ],
    *[
        ("3000000", "3 billion"),
        ("12", "Il n'y a pas 12 \u00e9l\u00e8ves."),
        ("12", r"\boxed{12} for $n$ odd"),
        ("2H_2 + O_2 \\to 2H_2O", "2H2O -> 2H2 + O2"),
    ],
]


def test_one_value_in_a_sentence_another_script_or_another_base():
    assert [pair for pair in SAME_VALUES if maths_verdict(*pair) != "correct"] == []
    assert [pair for pair in OTHER_VALUES if maths_verdict(*pair) == "correct"] == []
    assert maths_verdict("60", r"\boxed{\frac{\pi}{3}}") == "unparsed"


PARTS = ["(a) 12 (b) 14", "a) 12, b) 14", "(a) 12, (b) 14", r"\text{(a) } 12, \text{ (b) } 14"]
OTHER_PARTS = ["(a) 14 (b) 12", "(b) 12 (a) 14", "a) 14, b) 12", r"\text{(a) } 14, \text{ (b) } 12", "(a) 12"]


def test_parts_with_labels_are_compared_by_their_labels():
    for reference in PARTS[:3]:
        for place in (r"\boxed{%s}", "%s"):
            assert [text for text in PARTS if maths_verdict(reference, place % text) != "correct"] == []
            assert [text for text in OTHER_PARTS if maths_verdict(reference, place % text) == "correct"] == []
    assert maths_verdict("(a) 12 (b) 14", r"\boxed{(b) 14 (a) 12}") == "correct"


def test_a_value_is_the_option_that_it_equals():
    lines = [r"\text{A)}\ & \frac{1}{3} &", r"\text{B)}\ & 0.75 \\", r"\text{C)}\ & 2x &", r"\text{D)}\ & 5-2"]
    table = "\n".join(["Which?", r"\begin{align*}", *lines, r"\end{align*}"])
    for question in ("Which? A) 1/3 B) 0.75 C) 2x D) 5-2", table):
        for text in ("0.75", r"\boxed{\frac{3}{4}}", "The answer is 3/4.", '{"answer": 0.75}'):
            assert maths_verdict("B", text, question=question) == "correct"
        assert maths_verdict("C", r"\boxed{x + x}", question=question) == "correct"
        for text in (r"\boxed{\frac13}", "The answer is 1/3."):
            assert maths_verdict("B", text, question=question) == "wrong"
        for text in ("0.75 or 1/3", "The answer is not 0.75.", "Half of 0.75", r"\boxed{0.75, 2x}", r"\boxed{0.7}"):
            assert maths_verdict("B", text, question=question) != "correct"
        assert (
            maths_verdict("D", r"\boxed{3}", question=question) != "correct"
        )  # of calculations nobody knows the value
    assert maths_verdict("B", r"\boxed{0.75}") != "correct"


SAID = [
    (
        "Which car is faster?",
        "Car A",
        ["Car A is faster.", "The faster car is car A."],
        ["Car A is slower.", "Car A is not faster."],
    ),
    (
        "Who is the tallest: Ann, Ben or Cora?",
        "Ben",
        ["Ben is the tallest."],
        ["Ben is the shortest.", "Ben and Ann are the tallest."],
    ),
    (
        "At what time does the train arrive?",
        "3:45 PM",
        ["The train arrives at 3:45 PM."],
        ["The train leaves at 3:45 PM."],
    ),
    (
        "On what date did the war end?",
        "May 8, 1945",
        ["The war ended on May 8, 1945."],
        ["The war began on May 8, 1945."],
    ),
    ("Who beat Ann?", "Ben", [], ["Ann beat Ben.", "Ann was beaten and Ben."]),
    ("Which animal is not a mammal?", "the shark", [], ["The shark is a mammal."]),
    (
        "In which direction does it end up facing?",
        "north-east",
        ["It faces north-east.", "northeast"],
        ["It faces away from north-east."],
    ),
    ("Which is larger, and which is smaller?", "Car A", [], ["Car A is smaller."]),
]


@pytest.mark.parametrize(("question", "reference", "right", "others"), SAID)
def test_a_sentence_may_say_what_is_asked_with_the_words_of_the_question(
    question: str, reference: str, right: list[str], others: list[str]
):
    assert [text for text in right if maths_verdict(reference, text, question=question) != "correct"] == []
    assert [text for text in others if maths_verdict(reference, text, question=question) == "correct"] == []


WRITTEN = [
    ("1500000", "one and a half million", ["one million and a half", "one and a half billion"]),
    ("7/3", "2 and 1/3 cups", ["2 and 2/3 cups", "1/3 and 2 cups"]),
    (r"\neg p \land q", "\u00acp \u2227 q", ["\u00acp \u2228 q", "\u00ac(p \u2227 q)"]),
    (r"\exists x P(x)", "\u2203x P(x)", ["\u2200x P(x)", "\u00ac\u2203x P(x)"]),
    ("5 km north", "5 km due north", ["5 km south", "5 m north"]),
]


@pytest.mark.parametrize(("reference", "form", "neighbours"), WRITTEN)
def test_one_value_in_another_way_of_writing(reference: str, form: str, neighbours: list[str]):
    assert maths_verdict(reference, rf"\boxed{{{form}}}") == "correct"
    assert [text for text in neighbours if maths_verdict(reference, rf"\boxed{{{text}}}") == "correct"] == []


@pytest.mark.parametrize(
    "molar", ["0.5 mol/L", r"0.5\text{ mol/L}", r"0.5\ \text{mol}\cdot\text{L}^{-1}", "500 mM", "0.5 M"]
)
def test_molar_is_a_concentration_where_the_question_asks_for_one(molar: str):
    question = "What is the concentration of the solution?"
    assert maths_verdict("0.5 M", rf"\boxed{{{molar}}}", question=question) == "correct"
    for other in ("0.5 mol", "5 M", "0.5 mM", "0.5 m", "0.5 L/mol"):
        assert maths_verdict("0.5 M", rf"\boxed{{{other}}}", question=question) != "correct"


def test_a_letter_of_the_formula_again_is_no_unit():
    assert maths_verdict(r"\frac{g}{3}", r"\boxed{\frac13 g}") == "correct"
    assert maths_verdict(r"\frac{g}{3}", r"\boxed{\frac{g}{3}\text{ g}}") == "unparsed"
