"""Pieces of sentences beside a value that state nothing: "by 12", "e.g. 12", "a multiple of 12", "12 and"."""

import re

_PREPOSITION = r"(?:by|with|to|from|at|on|as|than|into|onto|like|unlike|including|excluding|mod|modulo|versus|because)"
_END = r"(?:\s(?:the|an?|only|exactly|just))?[\s$({*]*\Z"
_FRAGMENT = re.compile(
    r"(?i)\A[^A-Za-z]*(?!\w*(?:equal|amount|come|sum|add|evaluate|simplif|reduce|lead|correspond))"
    rf"(?:(?:the\s|an?\s|such\s)?[a-z]+\s)?(?:{_PREPOSITION}|of|and|although)(?<!\bis\sand){_END}"
)
_ABBREVIATION = re.compile(
    r"(?i)(?<![\w.])(?:cf|e\.\s?g|vs?|max|min|no|nos|nr|pp?|fig|eqs?|resp|incl|excl|ex|sec|ch|vol|art)\.[\s$({*]*\Z"
)
"""At the end of no sentence: "cf.", "e.g."."""
_ASSUMES = re.compile(
    r"(?i)(?:\A|[.;,:\n])[\s$*]*(?:let|set|given|suppose|assume|consider|take|put|try|choose|pick)\s(?:that\s)?[\s$]*"
    r"(?:[a-z]\w{0,3}\s?=[\s$({]*)?\Z"
)
"""What a value is set to, to see what follows: "Set $n = "."""
_MADE_FROM = re.compile(
    r"(?i)\b(?:multiple|factor|divisor|square|cube|root|inverse|reciprocal|opposite|negative|complement|power|logarithm"
    r"|factorial|digit|double|triple|fraction|percentage|function|left|right)s?\sof\s(?:the\s)?[\s$({*]*\Z"
)
"""What is made from the value behind it: "a multiple of"."""
_AS_MUCH_AS = re.compile(r"(?i)\bas\s(?:many|much|few|little|high|low|long|far|big|large)\sas[\s$({*]*\Z")
"""What a value is compared with: "as many as"."""
_IS_PREPOSITION = re.compile(
    rf"(?i)(?:\A|\b(?:is|are|was|were)|[:=])[\s*:$]*(?:{_PREPOSITION}|and|such\sas|e\.\s?g\.|cf\.){_END}"
)
_IS_AT_POINT = re.compile(r"(?i)\b(?:is|are|lies?)\sat[\s$]*\(?\Z")
_CUT_OFF = re.compile(rf"(?i)\A[\s$)}}]*(?:{_PREPOSITION}|of|and|or|max|min)[\s.$]*\Z")


_NEAR = 50
"""So many characters in front of a value are read."""


def is_fragment(clause: str) -> bool:
    """Whether a clause without a verb, in front of a value, is the beginning of a phrase: "by", "the square of"."""
    return _FRAGMENT.search(clause) is not None


def makes_another_value(before: str) -> bool:
    """Whether the text in front of a value makes another one from it, compares with it, cites it, or assumes it."""
    near = before[-_NEAR:]
    return any(pattern.search(near) for pattern in (_MADE_FROM, _ABBREVIATION, _ASSUMES, _AS_MUCH_AS))


def is_no_complement(before: str) -> bool:
    """Whether a preposition alone stands between "is" and a value: "the answer is by 12"."""
    return _IS_PREPOSITION.search(before) is not None and not _IS_AT_POINT.search(before)


def is_cut_off(behind: str) -> bool:
    """Whether a text behind a value begins a phrase and ends: "12 and"."""
    return _CUT_OFF.fullmatch(behind) is not None
