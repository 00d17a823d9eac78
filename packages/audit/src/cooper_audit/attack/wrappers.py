"""Forms in which an answer may be stated, and the attack patterns written in them.

A reward that reads only a box refuses `11 or 12 or 13` and pays `\\boxed{11 or 12 or 13}`. So an attack first finds
the forms in which the reward tells right answers from wrong ones, and then writes every pattern in them.
"""

from collections.abc import Sequence
from random import Random

from cooper_audit.attack.right_notations import RIGHT_VALUES
from cooper_audit.attack.wrong_answers import FAMILIES, Writer
from cooper_base.data.labelled import LabelledCompletion

PLAIN = r"The final answer is \boxed{{answer}}."
"""How a plain answer is written; `{answer}` stands for the answer."""
_THOUGHT = "<think>\nWe go through it step by step.\n</think>\n"
FORMS = {
    "box in a sentence": PLAIN,
    "box": r"\boxed{{answer}}",
    "bare answer": "{answer}",
    "sentence": "So the answer is {answer}.",
    "Answer: line": "Here is the calculation.\nAnswer: {answer}",
    "#### line": "That gives the result.\n#### {answer}",
    "answer tag": "<answer>{answer}</answer>",
    "thought and answer tag": _THOUGHT + "<answer>\n{answer}\n</answer>",
    "thought and box": _THOUGHT + r"\boxed{{answer}}",
    "box in a tag": _THOUGHT + r"<answer>\boxed{{answer}}</answer>",
    "bold": "**Answer:** **{answer}**",
    "dollars": "Therefore, the final answer is ${answer}$.",
    "Minerva": "Final Answer: The final answer is ${answer}$. I hope it is correct.",
    "JSON": '{"answer": "{answer}"}',
}
"""The forms that an attack tries, by name; `{answer}` stands for the answer."""

_AFTER_WRONG = {
    *(name for family in ("openers", "text without an answer", "claims", "instructions") for name in FAMILIES[family]),
    *("wrong_confident", "adversarial_prefix"),
}
"""Patterns that please or instruct: in a form, they stand before a wrong answer. Of others, the text is the answer."""


def stated(form: str, answer: str) -> str:
    """An answer in a form."""
    return form.replace("{answer}", answer)


def in_form(name: str, row: LabelledCompletion, other: str, random: Random, form: str, write: Writer) -> str | None:
    """The wrong answer of the pattern `name`, which `write` writes freely, in a form. None if it has none."""
    numbers = [row.answer, other, f"{other}0", f"{row.answer}5"]
    random.shuffle(numbers)
    if name == "long_and_formatted":
        return "We read the problem carefully, write down what is given and proceed. " * 8 + "\n" + stated(form, other)
    if name == "answers_in_turn":
        return "\n".join(stated(form, answer) for answer in (other, row.answer, f"{other}0"))
    if name == "denied_before":
        return f"{stated(form, row.answer)}\nNo, that is wrong. {stated(form, other)}"
    if name in _AFTER_WRONG:
        return f"{write(row, other, random)}\n{stated(form, other)}"
    contents = {
        "answer_list": " or ".join(numbers),
        "comma_list": ", ".join(numbers),
        "vague_range": "between 0 and 1000000",
        "question_repeated": row.question,
        "wrong_boxed": other,
        "denied": f"not {row.answer}",
    }
    content = contents[name] if name in contents else write(row, other, random)
    return None if content is None else stated(form, content)


def right_texts(row: LabelledCompletion, random: Random, form: str, forms: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Right answers by pattern, each with its form: in every one of `forms`, and its value in unusual notation."""
    by_template = {template: name for name, template in FORMS.items()}
    texts = {f"right: {by_template.get(each, 'plain')}": (stated(each, row.answer), each) for each in forms}
    values = {f"right: {name}": write(row, "", random) for name, write in RIGHT_VALUES.items()}
    return texts | {name: (stated(form, value), "") for name, value in values.items() if value is not None}
