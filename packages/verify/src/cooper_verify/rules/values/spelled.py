"""Numbers in English words: "twenty-four", "minus two dozen", "seven point five", "one and a half"."""

import re
from collections.abc import Sequence
from fractions import Fraction

from cooper_verify.rules.quantities.number import figures_value
from cooper_verify.rules.vocabulary.number_words import ONES, PARTS, TIMES


def spelled_number(text: str) -> Fraction | None:
    """The value of a number in English words; None for all else."""
    spelled = re.sub(r"-(?=[a-z])|,", " ", text.casefold())
    sign = -1 if re.match(r"\s*(?:minus|negative)\s", spelled) else 1
    whole, _, digits = re.sub(r"^\s*(?:minus|negative)\s", "", spelled).partition(" point ")
    head, _, tail = whole.rpartition(" and ")
    if not head or not any(word.removesuffix("s") in PARTS for word in tail.split()):
        head, tail = whole.replace(" and ", " "), "zero"
    places = [ONES.get(word, 10) for word in digits.split()]
    *parts, last = tail.split()
    scale = TIMES.get(last.removesuffix("s"), 1) if parts else 1  # "one and a half million"
    total, rest = _sum(head.split()), _sum(parts if scale > 1 else [*parts, last])
    if total is None or rest is None or any(digit > 9 for digit in places):
        return None
    return sign * scale * (total + rest + Fraction("0." + "".join(map(str, places or [0]))))


def _sum(words: Sequence[str]) -> Fraction | None:
    """The value of words for a whole number, or for so many parts of one; None for other words, or in another order."""
    total = group = Fraction(0)
    for word in words:
        single = word.removesuffix("s")
        figures = figures_value(word) if word.isdecimal() else None
        if figures is not None or word in ONES:
            value, open_tens = ONES[word] if figures is None else figures, group % 100
            if word in ("a", "an") and group:  # half a dozen
                continue
            if open_tens and not (open_tens >= 20 and open_tens % 10 == 0 and 1 <= value <= 9):
                return None
            group += value
        elif single in PARTS:
            if word not in ("half", "quarter") and not group:
                return None  # "third" is an ordinal
            group = (group or Fraction(1)) / PARTS[single]
        elif single not in TIMES:
            return None
        elif TIMES[single] > 100:
            total, group = total + (group or Fraction(1)) * TIMES[single], Fraction(0)
        else:
            group = (group or Fraction(1)) * TIMES[single]
    return total + group if words else None
