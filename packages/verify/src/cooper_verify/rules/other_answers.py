"""What completions state, and whether it is different: what may serve as a wrong answer where no rule judges."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from cooper_base.data.text import boxed
from cooper_verify.rules.answer.extraction import extract_answer, reference_text
from cooper_verify.rules.processes.guard import guarded
from cooper_verify.rules.quantities.number import number_value, plain_number, with_divisions
from cooper_verify.rules.quantities.units import compare_units, unit_of
from cooper_verify.rules.text.notation import one_notation
from cooper_verify.rules.text.plain_text import plain_text
from cooper_verify.rules.text.reply import reply_of
from cooper_verify.rules.values.spelled import spelled_number
from cooper_verify.rules.verdicts.fast_path import fast_verdict
from cooper_verify.rules.vocabulary.number_words import ONES, PARTS, TIMES

_SPELLED = re.compile(rf"\b(?:{'|'.join([*list(ONES)[2:], *TIMES, *PARTS])})s?\b", re.IGNORECASE)
_ITEMS = re.compile(r"[,;](?!\d{3}(?!\d))|\band\b|\bor\b")
_NO_SYMBOL = re.compile(r"\\(?:[dt]?frac|sqrt|text|mathrm|left|right|times|cdot|div|displaystyle)(?![A-Za-z])")


@lru_cache(maxsize=16384)
def are_different(first: str, other: str) -> bool:
    """Whether neither answer can be the other in other words: `12` and `13` are, `0.5` and `one half` are not."""
    return guarded(differ, [(first, other)], False)[0]


def are_unrelated(first: str, other: str) -> bool:
    """Whether two answers are different and have no word in common."""
    return guarded(_share_nothing, [(first, other)], False)[0]


def stated_answers(completions: Sequence[str]) -> list[tuple[str, ...]]:
    """The final answers of each completion, in a form in which equal answers are mostly equal; empty for none."""
    return [tuple(answers) for answers in guarded(_stated, [(text,) for text in completions], ())]


def states_another(right: str, text: str) -> bool:
    """Whether a text states an answer, and another than a right completion does: not the same in other words.

    Texts that state none explicitly are compared as they are.
    """
    return guarded(_states_another, [(right, text)], False)[0]


def gives_several(completions: Sequence[str], reference: str) -> list[bool]:
    """Whether each completion states more answers than the reference has: `19 or 18`, where the reference is `19`."""
    return guarded(_gives_several, [(completion, reference) for completion in completions], False)


def mark_an_answer(completions: Sequence[str]) -> list[bool]:
    """Whether each completion marks its final answer, as in a box or behind `the answer is`."""
    return guarded(_marks, [(completion,) for completion in completions], False)


def _marks(completion: str) -> bool:
    return extract_answer(completion).kind != "unmarked"


def _stated(completion: str) -> list[str]:
    return [*map(plain_text, extract_answer(completion).texts)]


def _share_nothing(first: str, other: str) -> bool:
    return not {*plain_text(first).split()} & {*plain_text(other).split()} and differ(first, other)


def _states_another(right: str, text: str) -> bool:
    stated, others = extract_answer(right), extract_answer(text)
    if "unmarked" in (stated.kind, others.kind):
        rights, found = (final.texts or _as_written(reply) for final, reply in ((stated, right), (others, text)))
        return bool(found) and not set(map(plain_text, rights)) & set(map(plain_text, found))
    return bool(others.texts) and all(differ(text, two) for text in stated.texts for two in others.texts)


def _as_written(completion: str) -> list[str]:
    """The end of a completion that states no answer."""
    return [reply] if (reply := one_notation(reply_of(completion))[-_WHOLE_CHARS:].strip()) else []


_WHOLE_CHARS = 1000
_BETWEEN = re.compile(r"\s(?:or|and|nor)\s|[,;/]\s|\s/", re.IGNORECASE)


def _gives_several(completion: str, reference: str) -> bool:
    answers = extract_answer(completion)
    if answers.kind == "unmarked" or not answers.texts:
        return False
    return len(answers.texts) > 1 or len(_BETWEEN.findall(answers.texts[0])) > len(_BETWEEN.findall(reference))


@lru_cache(maxsize=16384)
def differ(first: str, other: str) -> bool:
    """Whether neither answer can be the other in other words: `12` and `13` are, `0.5` and `one half` are not.

    Numbers are compared by value, in words too. Else each answer is the reference of a verdict on the other, without a
    process, and both must be `wrong`. A number in words that is not understood may be any number. Lists differ if an
    item of either is in no form in the other. Formulas that only Math-Verify can compare differ if they have variables
    and not the same symbols.
    """
    texts = [with_divisions(reference_text(text)) for text in (first, other)]
    values = [_value(text) for text in texts]
    units = [unit_of(text) for text in texts]
    is_percent = [unit.is_("percent") for unit in units]
    if None not in values and compare_units(*units) == "same" and is_percent[0] == is_percent[1]:
        return values[0] != values[1]
    if all(_SPELLED.search(text) or re.search(r"\d", text) for text in texts) and any(map(_SPELLED.search, texts)):
        return False
    verdicts = {fast_verdict(a, boxed(b)) for a, b in (texts, texts[::-1])}
    if None not in verdicts:
        return verdicts == {"wrong"}
    items = [[part for part in _ITEMS.split(text.strip("()[]{}\\ ")) if part.strip()] for text in texts]
    if "correct" not in verdicts and min(map(len, items)) > 1:
        return any(all(differ(a, b) for b in items[1]) for a in items[0]) or any(
            all(differ(a, b) for a in items[0]) for b in items[1]
        )
    symbols = [sorted(re.findall(r"\w|[+*/^=<>|-]", _NO_SYMBOL.sub("", text))) for text in texts]
    has_variables = all(any(map(str.isalpha, names)) for names in symbols)
    return "correct" not in verdicts and has_variables and symbols[0] != symbols[1]


def _value(text: str) -> Fraction | None:
    """The value of a number, in figures or in English words: `0.5`, "twenty-four", "minus two dozen"."""
    if (number := plain_number(text)) is not None and "e" not in number:
        return number_value(number)
    return spelled_number(text)
