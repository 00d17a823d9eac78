"""What takes an answer back: "or Kyoto", "No, wait", "but maybe B"."""

import re

_RETRACTION = re.compile(
    r"[^\w.\n]*(?:and|but|not)\b|[\W_]*(?:or|wait|hmm+|sorry|actually|rather|instead|correction|i mean|maybe|perhaps"
    r"|possibly|but wait|oops|scratch that|my mistake|let me correct|no(?=\s*[,.!:;\u2014-])"
    r"|alternatively(?!,?\s+(?:we|you|one|us(?:e|ing)|by|note)\b)"  # another way, not another answer
    r"|(?:(?:that|this|it|which)\s+)?(?:is|was|seems|looks)\s+(?:wrong|incorrect|false|a mistake|not (?:right|correct))"
    r"|(?:that|this|it)\s+(?:cannot|can't)\s+be\s+(?:right|correct))\b",
    re.IGNORECASE,
)
_OPENED_TEXT = re.compile(r"[\s$~)}\]]*+\\(?:text(?:rm|bf|it|normal)?|mathrm|mbox)\s*+\{")


def is_retracted(after: str) -> bool:
    """Whether the text after an answer retracts it or offers another one: "or Kyoto", "No, wait", "but maybe B"."""
    inside = _OPENED_TEXT.match(after)
    return bool(_RETRACTION.match(after, inside.end() if inside else 0))
