"""Where an answer is, and that it is a whole: around a box, in the last sentence, before what a model goes on with."""

import pytest

from cooper_base.data.text import boxed
from cooper_verify.rules.answer.extraction import extract_answer
from cooper_verify.rules.answer.sentence import reduced
from cooper_verify.rules.asked.words import Words
from cooper_verify.rules.text.reply import TAIL_CHARS, reply_of
from cooper_verify.rules.verdicts.fast_path import fast_verdict

AROUND = [
    (r"-\boxed{42}", ["-42"]),
    (r"So it is $-\boxed{42}$.", ["-42"]),
    (r"$1-\boxed{42}$", ["1-42"]),
    (r"$\boxed{42}+1$", ["42+1"]),
    (r"\boxed{42}/2", ["42/2"]),
    (r"\boxed{42}^2", ["42^2"]),
    (r"$2\boxed{42}$", ["2(42)"]),
    (r"$2\cdot\boxed{a+b}$", [r"2\cdot(a+b)"]),
    (r"$\frac{1}{\boxed{42}}$", [r"\frac{1}{42}"]),
    (r"$\sqrt{\boxed{42}}$", [r"\sqrt{42}"]),
    (r"\boxed{3}\%", [r"3\%"]),
    (r"\boxed{1.6} miles", ["1.6 miles"]),
    (r"There are $\boxed{12}$ red apples in the basket.", ["12 red apples"]),
    (r"$\boxed{12}$ million", ["12 million"]),
    (r"$\boxed{5}\text{ km}$", [r"5\text{ km}"]),
    (r"\boxed{5} or 6", ["5 or 6"]),
    (r"$(\boxed{1}, \boxed{2})$", ["(1, 2)"]),
    (r"$x=\boxed{1}, y=\boxed{2}$", ["x=1", "y=2"]),
    (r"\boxed{3} or \boxed{4}", ["3", "4"]),
]
NOT_AROUND = [
    *[
        r"x=\boxed{42}",
        r"$2x+3y=\boxed{42}$",
        r"\[ \boxed{42} \]",
        r"**$\boxed{42}$**",
        r"(\boxed{42})",
        r"- \boxed{42}",
    ],
    *[r"1. \boxed{42}", r"The answer is \boxed{42}, because 6 times 7 is that.", r"$\boxed{42}$ is the answer."],
    *[r"\boxed{\boxed{42}}", r"<answer>\boxed{42}</answer>", "\\boxed{42} \U0001f600", r"$\boxed{42} = 6 \cdot 7$"],
    *[
        r"Answer (a): \boxed{42}.",
        r"\text{Answer: }\boxed{42}",
        "\\boxed{42}\n\nDone in 3 steps.",
        r"$\boxed{42} \blacksquare$",
    ],
]


@pytest.mark.parametrize(("text", "texts"), AROUND)
def test_what_stands_around_a_box_is_a_part_of_the_answer(text: str, texts: list[str]):
    assert list(extract_answer(text).texts) == texts


@pytest.mark.parametrize("text", NOT_AROUND)
def test_other_text_around_a_box_is_none(text: str):
    assert extract_answer(text).texts == ("42",)


EQUAL = [
    "10+2",
    "50 - 38",
    r"3 \cdot 4",
    r"\frac{24}{2}",
    "x = 24/2",
    "24/2 = 12",
    "12.0",
    r"\frac{37}{3}",
    "0.333 * 36",
    r"\sqrt{144}",
]
UNEQUAL = [
    "13",
    "10+3",
    "50 - 37",
    r"3 \cdot 5",
    r"\frac{26}{2}",
    "x = 13",
    "24/2 = 13",
    "f(3) = 13",
    "1.2",
    r"\sqrt{196}",
    "120",
]
UNEQUAL_PLACES = [
    r"%s = \boxed{12}",
    r"So $%s = \boxed{12}$.",
    r"\[%s = \boxed{12}\]",
    r"It is %s = \boxed{12} miles.",
    "So %s = 12.",
]
NO_SIDE = [
    *[r"4 x 3 = \boxed{12}", r"1200 cents = \boxed{12} dollars", r"\gcd(24, 36) = \boxed{12}", r"|{-12}| = \boxed{12}"],
    *[r"50\% of 24 = \boxed{12}", r"1. 3 \cdot 4 = \boxed{12}", r"4 times 3 = \boxed{12}", r"12.4 = \boxed{12}"],
]


def test_a_calculation_in_front_of_a_value_has_that_value():
    for place in UNEQUAL_PLACES:
        assert [side for side in EQUAL if fast_verdict("12", place % side) != "correct"] == []
        assert [side for side in UNEQUAL if fast_verdict("12", place % side) == "correct"] == []
    assert [text for text in NO_SIDE if fast_verdict("12", text) != "correct"] == []


TAGS = ["answer", "final_answer", "final answer", "final-answer", "FINAL_ANSWER", "result", "solution"]


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_marks_an_answer(tag: str):
    for text in ("<{}>42</{}>", "<{}>\\boxed{{42}}</{}>", "<think>41</think>\n<{}> 42 </{}>", "It is 41. <{}>42</{}>"):
        assert extract_answer(text.format(tag, tag)).texts == ("42",)
    assert extract_answer("<solution>\nWe add.\nThe answer is 42.\n</solution>").texts == ("42",)
    assert extract_answer("<|begin_of_solution|>The answer is 42.<|end_of_solution|>").texts == ("42",)


SENTENCES = {
    "The derivative is 3x.": "3x",
    "The vertex is at (3, -4).": "(3, -4)",
    "She has 5 marbles left. I hope this helps!": "5 marbles",
    "So the distance is 5 miles.": "5 miles",
    "So x = \u2212 2.": "x = - 2",
    "So the area is 2 pi.": "2 pi",
    "giving \u2212 7.5": "- 7.5",
    "She has 5 apples left.": "5 apples",
    "Then 20 * 10 + 5 * 5 = 225 lbs are needed.": "225 lbs",
    "It makes 9 * 2 = $18": "$18",
    "That is 18 dollars per day.": "18 dollars per day",
    "Tyler has to work for 5 hours to afford his books.": "5 hours",
    "The sum of 3 and 4 is 7.": "7",
    "The point is (12, 5).": "(12, 5)",
    "Hence x = 1 or x = -4.": "x = 1 or x = -4",
    "So $x - 5 = 12$.": "$x - 5 = 12$",
    "The order costs 29 dollars and 50 cents.": "29 dollars and 50 cents",
    "In total he spends \u20ac29.": "\u20ac29",
    "The path is about 3.5 km long.": "about 3.5 km",
    "The ratio is 3:4.": "3:4",
    "The total is \\(\\frac{3}{4}\\).": "\\frac{3}{4}",
    "Therefore:\n$$x = 10/2 = 5$$": "x = 5",
}
NO_VALUE = [
    *[
        "The value is between 5 and 12.",
        "So 10 of the 12 apples remain.",
        "She is 12 and he is 5.",
        "It may be 5.",
        "It is not 5.",
    ],
    *[
        "Only 3 of 4 remain.",
        "He is the 5th.",
        "It ends on page 5.",
        "If she sells 5 apples, the profit is 3.",
        "Is it 5?",
    ],
    *[
        "She has fewer than 5 apples.",
        "It happened in 44 BC.",
        "There are 5 of them, but 6 more come.",
        "So it took 16 -",
    ],
    *[
        "I took 5 steps and then",
        "The number in the question is 5.",
        "Let us look at 5 in another way, with three of them.",
    ],
    *[
        "12 of them left and 5 stayed.",
        "The distance was 5 km.\nThis is wrong.",
        '{"name": "add", "arguments": {"a": 5}}',
    ],
]


@pytest.mark.parametrize("text", SENTENCES)
def test_the_last_sentence_states_a_value_with_its_unit(text: str):
    final = extract_answer(f"We add 3 and 99 first.\n{text}")
    assert [final.kind, *final.texts] == ["unmarked", SENTENCES[text].strip("$") if "x -" in text else SENTENCES[text]]


@pytest.mark.parametrize("text", NO_VALUE)
def test_a_sentence_that_states_none_gives_no_answer(text: str):
    final = extract_answer(f"We add the numbers first.\n{text}")
    assert final.texts == () or not Words().know(final.words)


@pytest.mark.parametrize(
    "text", ["(5)", r"\text{5}", "a", r"\sqrt 2", r"2 \pi", "5 feet", "x = 5, y = 3", "no solution"]
)
def test_a_completion_of_one_short_line_is_the_answer(text: str):
    assert len(extract_answer(text).texts) == 1
    assert extract_answer(f"{text}<|im_end|>").texts == extract_answer(text).texts


def test_of_a_calculation_the_last_side_counts_and_an_equation_stays():
    assert reduced("120 - 65 = 55") == "55"
    assert reduced(r"\frac{10}{2} = 5") == "5"
    assert reduced("x = 10/2 = 5") == "x = 5"
    for equation in (
        "x - 5 = 12",
        "2x = 10 - 4 = 6",
        r"2\theta = 60",
        "x < 3 = 2 + 1",
        "(x, y) = (2, 7)",
        "x = 5, y = 3",
    ):
        assert reduced(equation) == equation


ANSWERS = ["The answer is 42.", r"So \boxed{42}.", "#### 42", '{"answer": 42, "confidence": 0.9}']
ENDINGS = [
    *["\n\nQ: What is 2+2?\nA: The answer is 4.", "\n\nHuman: and 2+2?\n\nAssistant: The answer is 4.", "<|im_end|>"],
    *["\n\nQuestion: Tom has 2 apples. How many?\nAnswer: #### 2", "\n\nProblem: What is 1+1?\nSolution: \\boxed{2}"],
    *[
        "<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n\\boxed{4}",
        "<|endoftext|>The answer is 4.",
    ],
    *["\n\n### Instruction:\nAdd 2 and 2.\n### Response:\n\\boxed{4}", "</s>\\boxed{4}", "<end_of_turn>\n<think>4"],
    *["\n\nUser: 2+2?\nAssistant: 4", '\n<tool_call>{"name": "submit", "arguments": {"answer": 4}}</tool_call>'],
    *['\n[TOOL_CALLS][{"name": "submit", "arguments": {"answer": 4}}]', "\n```python\nprint('the answer is', 4)\n```"],
]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_a_model_goes_on_with_does_not_count(answer: str, ending: str):
    assert extract_answer(answer + ending).texts == ("42",)
    assert fast_verdict("4", answer + ending) == "wrong"


def test_a_question_that_is_repeated_before_the_answer_cuts_nothing_off():
    assert extract_answer("Question: what is 6 times 7?\nAnswer: 42").texts == ("42",)
    assert extract_answer("<|im_start|>assistant\nThe answer is 42.<|im_end|>").texts == ("42",)
    assert extract_answer("<|channel|>analysis<|message|>7?<|end|><|channel|>final<|message|>\\boxed{42}").texts == (
        "42",
    )
    assert extract_answer("<s>41</s> The answer is 42.").texts == ("42",)


def test_after_a_call_and_its_result_the_model_goes_on():
    call, result = (
        "<tool_call>{}</tool_call><|im_end|>\n",
        "<|im_start|>user\n<tool_response>41</tool_response><|im_end|>\n",
    )
    turn = "<|im_start|>assistant\nThe answer is 42.<|im_end|>"
    assert extract_answer(f"Let me add.\n{(call + result) * 2}{turn}").texts == ("42",)
    assert "41" not in "".join(extract_answer(f"Let me add.\n{call}{result}").texts)


CALLS = [
    *[
        '<tool_call>\n{"name": "add", "arguments": {"a": 40, "b": 42}}\n</tool_call>',
        '<tool_call>{"name": "f", "k": 42',
    ],
    *['[TOOL_CALLS][{"name": "mul", "arguments": {"a": 6, "b": 42}}]', '<|python_tag|>search.call(query="x", n=42)'],
    *[
        '{"name": "add", "arguments": {"a": 40, "b": 42}}',
        '<function=add>{"a": 42}</function>',
        "```python\nx = 42\n```",
    ],
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_a_tool_states_nothing(call: str):
    assert extract_answer(call).texts == ()
    assert "42" not in "".join(extract_answer(f"Let me compute it.\n{call}").texts)


def test_the_reply_of_a_reply_is_itself():
    for ending in [*ENDINGS, *CALLS, " and on it goes" * TAIL_CHARS]:
        reply = reply_of(f"The answer is 42. {ending}")
        assert reply_of(reply) == reply
        assert len(reply) <= TAIL_CHARS


def test_prose_of_many_words_is_no_value():
    prose = "she walked to the market and bought apples, " * 30
    assert extract_answer(f"The answer is that {prose}").texts == ()
    assert extract_answer(boxed(prose)).texts == ()
