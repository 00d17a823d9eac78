"""Whether two answers are different: what may serve as a wrong answer where no rule judges."""

import re
from functools import lru_cache

from cooper_rl.data.text import boxed
from cooper_rl.rules.extraction import reference_text
from cooper_rl.rules.fast_path import fast_verdict
from cooper_rl.rules.number import plain_number, with_divisions
from cooper_rl.rules.plain_text import plain_text

_SPELLED = re.compile(
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,5}teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|[mbtr]+illion|dozen|score|half|halves|third|quarter"
    r"|fifth|tenth)s?\b",
    re.IGNORECASE,
)
_ITEMS = re.compile(r"[,;](?!\d{3}(?!\d))|\band\b|\bor\b")
_NO_SYMBOL = re.compile(r"\\(?:[dt]?frac|sqrt|text|mathrm|left|right|times|cdot|div|displaystyle)(?![A-Za-z])")


@lru_cache(maxsize=16384)
def are_different(one: str, other: str) -> bool:
    """Whether neither answer can be the other in other words: `12` and `13` are, `0.5` and `one half` are not.

    Each is the reference of a verdict on the other, without a process, and both must be `wrong`. Numbers in words are
    read up to twenty, others may be any number. Lists differ if an item of either is in no form in the other. Formulas
    that only Math-Verify can compare differ if they have variables and not the same symbols.
    """
    texts = [with_divisions(reference_text(text)) for text in (one, other)]
    forms = list(map(plain_text, texts))
    are_numbers = all(_SPELLED.search(form) or re.search(r"\d", form) for form in forms)
    if are_numbers and any(map(_SPELLED.search, texts)) and None in map(plain_number, forms):
        return False
    verdicts = {fast_verdict(a, boxed(b)) for a, b in (texts, texts[::-1])}
    if None not in verdicts:
        return verdicts == {"wrong"}
    items = [[part for part in _ITEMS.split(text.strip("()[]{}\\ ")) if part.strip()] for text in texts]
    if "correct" not in verdicts and min(map(len, items)) > 1:
        return any(all(are_different(a, b) for b in items[1]) for a in items[0]) or any(
            all(are_different(a, b) for a in items[0]) for b in items[1]
        )
    symbols = [sorted(re.findall(r"\w|[+*/^=<>|-]", _NO_SYMBOL.sub("", text))) for text in texts]
    has_variables = all(any(map(str.isalpha, found)) for found in symbols)
    return "correct" not in verdicts and has_variables and symbols[0] != symbols[1]
