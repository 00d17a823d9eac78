"""Whether an answer gives a number, where the reference is one.

`19 - 10` has the value 9 and is not the answer 9, for the question may be to compute it. Neither are `5!`, `101_2`,
"8th", "page 9" and "it could be 9". Only what has the right value already is asked.
"""

import re
from fractions import Fraction

from cooper_rl.rewards.rule.extraction import SENTENCE_END, FinalAnswer
from cooper_rl.rewards.rule.plain_number import (
    WRITTEN,
    is_division,
    mixed_number,
    number_value,
    plain_number,
    same_number,
    with_divisions,
)
from cooper_rl.rewards.rule.plain_text import bare_text
from cooper_rl.rewards.rule.units import are_measures
from cooper_rl.rewards.rule.verdict import Verdict

_TOKEN = re.compile(
    rf"(?:(?<![\d)}}\]!%])(?<![\d)}}\]!%]\s)[-+]\s?)?[$€£]?(?:\d{{1,9}} \d{{1,9}}/\d{{1,9}}|{WRITTEN})(?![\d/])",
    re.ASCII,
)
_EQUALS = re.compile(r"=|\u2248|\\(?:approx|implies|Rightarrow|rightarrow|to)(?![A-Za-z])")
_APPROXIMATELY = re.compile(r"\u2248|\\approx(?![A-Za-z])")
_OPERATOR_BEFORE = re.compile(
    r"(?:[*/^\u00d7\u00f7\u00b7+\u00b1_]|\d:|\d\s?[x\u00d7]|\\(?:times|cdot|div|pm)|[\d)}\]!%]\s?-)[\s({$]*\Z"
)
_OPERATOR_AFTER = re.compile(
    r"[\s)}]*(?:[*+\u00d7\u00f7\u00b7]\s*[\d(\\$.a-z]|x\s?\d|-\s?[\d(\\$.]|/\s*[\d(\\]|[\^!_]|:\d|\\(?:times|cdot|div|pm))"
    r"|\(\s*-?\d|(?:st|nd|rd|th)\b"
)
_BASE_TEN = re.compile(r"_\{?10\}?(?!\d)")
_PERCENT = re.compile(r"\s*(?:\\?%|percent\b|pct\b)")
_LABEL = re.compile(
    r"\b(?:pages?|p\.|steps?|questions?|problems?|chapters?|exercises?|examples?|figures?|fig\.|lines?|sections?|tables?"
    r"|equations?|footnotes?|lemmas?|theorems?)\s*[(#]?\Z",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[\s)}\]]*(?:[A-Za-z%\u00b0\u00a2., '()/{}-]|(?<=[A-Za-z}])\^?\s*\{?[23]\}?|[\u00b2\u00b3])*")
_WORDS = re.compile(r"(?<!\\)\b[A-Za-z]{3,}")
_HEDGE = re.compile(
    r"\b(?:could|might|may) (?:also )?be\b(?=\W*\d)|\b(?:maybe|perhaps|possibly|not sure|either|guess(?:ing)?)\b",
    re.IGNORECASE,
)
_EITHER = re.compile(r"\d[^\d\n]{0,20}\bor\b[^\d\n]{0,20}\d")
_OF_THE_QUESTION = re.compile(
    r"\b(?:(?:in|from|of) (?:the|this) (?:question|problem|task|prompt|text)|(?:is|was|are|were) given)\b",
    re.IGNORECASE,
)


def number_verdict(reference: str, final: FinalAnswer) -> Verdict:
    """The verdict on answers whose value is that of `reference`, a plain number, perhaps in another unit.

    `unparsed` if one of them is an expression, a figure of something else, or a guess; `wrong` if a text offers several
    numbers; else `correct`.
    """
    expected = plain_number(reference) or ""
    if final.kind == "free":
        return _free_verdict(expected, final.texts[0])
    given = [
        _gives(text, (first_number(text) or "") if are_measures(reference, text) else expected) for text in final.texts
    ]
    return "correct" if all(given) else "unparsed"


def first_number(text: str) -> str | None:
    """The number at the beginning of a text, as `plain_number` gives it; None if there is none."""
    token = _TOKEN.match(bare_text(with_divisions(text)))
    return (mixed_number(token.group()) or plain_number(token.group())) if token else None


def _gives(text: str, reference: str) -> bool:
    r"""Whether a boxed or stated text gives the number: `19`, `x = 19`, `12 + 7 = 19`, `19\text{ cm}`, "19 of 20"."""
    if text == reference:
        return True
    if _HEDGE.search(text):
        return False
    if (number := plain_number(text)) is not None:
        return not is_division(number) or is_division(reference)
    text = _written_alike(text, reference)
    if any(_is_number(side, reference) for side in _EQUALS.split(text)):
        return True
    text = bare_text(text)
    return _WORDS.search(text) is not None and any(_stands_alone(text, token, reference) for token in _tokens(text))


def _is_number(side: str, reference: str) -> bool:
    """Whether a side of an equation is nothing but the number and perhaps a unit."""
    side = bare_text(side).strip("()[]{},\"'` ")
    token = _TOKEN.match(side)
    rest = side[token.end() :] if token else ""
    return (
        token is not None
        and (_UNIT.fullmatch(rest) is not None or _BASE_TEN.fullmatch(rest) is not None)
        and _stands_alone(side, token, reference)
    )


def _free_verdict(reference: str, text: str) -> Verdict:
    """The verdict on a text that states no answer: its last number counts, if it stands alone in its sentence."""
    if text.endswith("?"):
        return "unparsed"  # a question gives no answer
    text = _written_alike(text, reference)
    start, sentence = 0, ""
    for end in [*(match.start() for match in SENTENCE_END.finditer(text)), len(text)]:
        if re.search(r"\d", text[start:end]):
            sentence = bare_text(text[start:end])
        start = end
    if _EITHER.search(sentence):
        return "wrong"
    if _HEDGE.search(sentence) or _OF_THE_QUESTION.search(sentence):
        return "unparsed"
    lasts = [(part, tokens[-1]) for part in _APPROXIMATELY.split(sentence) if (tokens := _tokens(part))]
    return "correct" if any(_stands_alone(*last, reference, reduced=True) for last in lasts) else "unparsed"


def _written_alike(text: str, reference: str) -> str:
    r"""The text with `\frac{3}{4}` as `3/4` and, where the reference is 1.22, `1,22` as 1.22."""
    return with_divisions(text.replace(reference.replace(".", ","), reference) if "." in reference else text)


def _tokens(text: str) -> list[re.Match[str]]:
    return list(_TOKEN.finditer(text))


def _stands_alone(text: str, token: re.Match[str], reference: str, reduced: bool = False) -> bool:
    """Whether a number in a text has the reference's value and is neither operand, ordinal nor label.

    With `reduced`, a fraction must be in lowest terms: 6/8 in free text may be the question.
    """
    before, after = text[: token.start()], text[token.end() :]
    if _OPERATOR_BEFORE.search(before) or _LABEL.search(before):
        return False
    if _OPERATOR_AFTER.match(after) and not _BASE_TEN.match(after):
        return False
    written = token.group().strip()
    number = mixed_number(written) or plain_number(written)
    if number is None or (is_division(number, reduced) and not is_division(reference)):
        return False
    sizes = number.lstrip("-"), reference.lstrip("-")  # a dash before a number may be a mark
    if _PERCENT.match(after):
        is_share = same_number(_hundredth(sizes[0]), sizes[1]) is not False
        return is_share or (same_number(*sizes) is not False and is_percentage(reference))
    return same_number(*sizes) is not False


def is_percentage(reference: str) -> bool:
    """Whether a number may be a percentage, so that `40%` answers 40. 0.4 rather is a share, and `0.4%` is not."""
    value = number_value(reference)
    return value is not None and (value == 0 or abs(value) >= 1)


def _hundredth(number: str) -> str:
    value = (number_value(number) or Fraction(0)) / 100
    return f"{value.numerator}/{value.denominator}"
