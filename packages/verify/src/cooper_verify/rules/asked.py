r"""What an answer says of its value that only the question can confirm: "12 a day", "12 more than Ann", "about 12".

Each is a demand on the question: a text that begins with `DEMAND`, among the words around an answer. The question's
words are not enough here: one that speaks of days may ask for a week, and one with "more" for a total. Where nobody
knows what was asked for, a rate and a difference are read.
"""

import re
from collections.abc import Container, Sequence

from cooper_verify.rules.counted_nouns import is_counted
from cooper_verify.rules.everyday_words import is_time
from cooper_verify.rules.languages import words_of
from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.word_forms import form_of

DEMAND = "\0"
ASIDE = "\0"
"""In the text of a question: what follows is no part of it."""
_RATE, _MORE, _ABOUT, _SAID, _ASKED, _WAY, _NAME = (
    DEMAND + kind for kind in ("per ", "more", "about", "said ", "asks ", "way ", "name ")
)

_SENTENCE = re.compile(r"(?>(?:[^.!?\n]|[.!?](?!\s|\Z))+)[.!?]*+")
_ASKS = re.compile(
    r"\b(?:how|what|which|whose|find|determine|calculate|compute|evaluate|express|give|state|write)\b", re.IGNORECASE
)
_CONDITION = re.compile(
    r",?\s\b(?:if|when|given|assuming|because|since|but|while|suppose|provided)\b[^,?]*+|,\s(?:who|which|whose|where|with)\b[^,?]*+",
    re.IGNORECASE,
)


@text_cache(4096)
def asked_part(question: str) -> str:
    """The sentences of a question that ask, from "how many" on and without conditions; empty if none asks."""
    asking = []
    for sentence in _SENTENCE.findall(question):
        if word := _ASKS.search(sentence):
            asking.append(_CONDITION.sub("", sentence[word.start() :]))
        elif sentence.endswith("?"):
            asking.append(sentence)
    return " ".join(asking).casefold()


_ADVERB = r"\b(?P<adverb>hourly|daily|weekly|monthly|yearly|annually|nightly)"
_ALONE = r"\b(?P<alone>each|apiece)\b"
_NO_SPAN = "".join(rf"(?<!\b{word} )" for word in ("in", "for", "of", "after", "within", "over"))
_RATE_IN_UNIT = re.compile(
    rf"(?:/\s?|\b(?:per|each|every|an?)\s+)(?P<noun>[a-z]+)|{_ADVERB}\b|\b(?P<symbol>mph|kmh|kph)\b|{_ALONE}"
)
_RATE_AROUND = re.compile(
    rf"(?i)(?<![a-z])(?:per|each|every)\s+(?:\d+\s+)?(?!of\b)(?P<noun>[a-z]+)|{_NO_SPAN}\ban?\s+(?P<time>[a-z]+)"
    rf"|{_ADVERB}(?=\s*(?:[.,;]|\Z))|{_ALONE}"
)
_NOUN_OF = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year"}
_NOUN_OF |= {"annually": "year", "nightly": "night", "mph": "hour", "kmh": "hour", "kph": "hour"}
_NOUN_OF |= {"h": "hour", "hr": "hour", "min": "minute", "s": "second", "sec": "second", "wk": "week", "yr": "year"}
_ASKS_RATE = re.compile(r"\b(?:rates?|speeds?|velocit\w+|fast|pace|densit\w+|wages?|hourly|acceleration|slope)\b")
_ASKS_SHARE = re.compile(r"\b(?:each|every|per|apiece|one|1|single|an?)\b")
_SHARES = re.compile(r"\b(?:each|every\w*|per|apiece)\b")
_COMPARATIVE = (
    r"(?:more|fewer|less|extra|additional|older|younger|taller|shorter|longer|heavier|lighter|faster|slower|cheaper|bigger|larger"
    r"|smaller|greater|higher|lower|farther|further|wider|narrower|deeper|later|earlier|better|warmer|colder|hotter)"
)
_DIFFERS = re.compile(rf"\b{_COMPARATIVE}\b(?:[^.;\n]*?\bthan\b|\s*\Z)|(?:^|\s)(?!less|fewer){_COMPARATIVE}\b")
_ADDS = re.compile(r"\b(?:another|additional|extra)[\s$({]*\Z")
_ASKS_DIFFERENCE = re.compile(
    rf"\b{_COMPARATIVE}\b|\bdifferen|\bcompar|\bexceed|\bby (?:how|what)\b|\bincreas|\bdecreas|\bsav"
    r"|\banother\b|\bneed|\bleft\b|\bstill\b|\bremain|\buntil\b|\bbefore\b|\bto go\b"
)
_ASKS_ESTIMATE = re.compile(
    r"\b(?:about|around|approximate\w*|approx|roughly|estimat\w+|round\w*|nearest|decimals?|significant)\b",
    re.IGNORECASE,
)
_IS_MEASURED = re.compile(r"\d\.\d*[1-9]|\\approx|\u2248")
_ESTIMATE = re.compile(
    rf"(?i)(?:(?:[=\u2248]|\\(?:approx|simeq|cong))[\s$({{]*)?(?:[\u2248]|\\(?:approx|simeq|sim|cong)(?![A-Za-z])|(?:(?<=\s)|\A)~|{words_of('about')})[\s$({{*]*\Z"
)


def without_estimate(before: str) -> tuple[str, list[str]]:
    """The text in front of a value without a sign or word that makes it an estimate, and what that demands."""
    found = _ESTIMATE.search(before[-_ESTIMATE_CHARS:])
    return (before[: len(before) - len(found.group())], [_ABOUT]) if found else (before, [])


_ESTIMATE_CHARS = 40


def demands(before: str, texts: Sequence[str], behind: str) -> list[str]:
    """What the sentence of a value demands: the text in front of it, the value with its unit, and the text behind."""
    units = [text[place.end() :] for text in texts if (place := _LAST_FIGURE.match(text))]
    rates = [_rate(found) for unit in units for found in _RATE_IN_UNIT.finditer(unit)]
    rates += [_rate(found) for text in (before, behind) for found in _RATE_AROUND.finditer(text)]
    said = f"{units[0] if units else ''} {behind}"
    differs = _DIFFERS.search(said) or _ADDS.search(before)
    found = [*dict.fromkeys(filter(None, rates)), *([_MORE] if differs else []), *_multiple(said)]
    whole = f"{before} {said}".casefold()
    found += [f"{_WAY}{place}" for place, (way, _) in enumerate(_OPPOSITES) if way.search(whole)]
    return found + _names(before, texts)


_OPPOSITES = [
    (re.compile(rf"\b(?:{one})"), re.compile(rf"\b(?:{other})"))
    for pair in (
        ("loss|los[et]|losing", "profit|gain|earn|won\\b|win"),
        ("decreas|declin|reduc|drop|shrink|shrank|fell\\b", "increas|rise|rose\\b|grow|grew"),
        ("behind\\b", "ahead\\b"),
        ("below\\b", "above\\b"),
        ("maxim|largest|greatest|highest", "minim|smallest|least\\b|lowest"),
        ("larger|greater|bigger", "smaller"),
        ("longer|longest", "shorter|shortest"),
        ("older|oldest", "younger|youngest"),
    )
    for one, other in (pair, pair[::-1])
]
"""Words of an answer, and those of a question that asks for the opposite."""
_NAMED = re.compile(r"(?:\A|[,;:$({]|[^\W\d_]{2}\s)\s*([A-Za-z](?:\(\s*-?\d{1,9}\s*\))?)\s*=[\s$]*")


def _names(before: str, texts: Sequence[str]) -> list[str]:
    """The names that an answer gives to its value: `x`, `f(2)`."""
    found = [name for name in _NAMED.finditer(before) if name.end() == len(before)]
    found += [name for text in texts if len(texts) == 1 and text.count("=") == 1 and (name := _NAMED.match(text))]
    return [_NAME + re.sub(r"\s", "", name[1]) for name in found]


_MULTIPLE = re.compile(r"\A[\s$)}]*times\s(?=(?:the|his|her|their|its|as|more|that|what|[\w-]+['\u2019]s)\b)[^.,;]*")
"""What multiplies something else: "12 times Bob's age"."""


def _multiple(said: str) -> list[str]:
    found = _MULTIPLE.match(said)
    return [said_by_question(_WORDS.findall(found.group())[:_MOST_SAID])] if found else []


_MOST_SAID = 4
_LAST_FIGURE = re.compile(r"(?s)(?:.*\d)?[\s$}\\]*")


def _rate(found: re.Match[str]) -> str:
    groups = found.groupdict()
    noun = (groups["noun"] or groups.get("time") or "").casefold()
    if groups.get("time") and not is_time(noun):
        return ""
    if noun and not (is_time(noun) or is_counted(noun, may_be_one=True) or noun in _NOUN_OF):
        return ""
    word = noun or groups["adverb"] or groups.get("symbol") or ""
    return _RATE + _NOUN_OF.get(word, word)


def said_by_question(words: Sequence[str]) -> str:
    """A demand that the question says these words in this order."""
    return _SAID + " ".join(words)


_OPENS_CONDITION = {"if", "when", "unless", "once", "while", "before", "after", "until", "since", "without", "besides"}
_OPENS_CONDITION |= {"plus", "minus"}
_SAYS_NOTHING = {"in", "on", "at", "for", "to"}
_OPENS = _OPENS_CONDITION | _SAYS_NOTHING | {"of", "per", "with", "over", "under", "by", "from", "into", "against"}
_OPENS |= {"among", "between"}
_FAR = 3
"""So many words behind "of" a number says of how many the value is a part."""


def figure_said(tokens: Sequence[str], figures: Container[str], read: Container[int], has_unit: bool) -> list[str]:
    """What a figure or a condition behind a value demands: that the question says the phrase up to it.

    `figures` and the places `read` say nothing. A value with a unit may have figures in other phrases than those that
    make it a part, or conditional: "12 hours to dig 30 holes", unlike "12 of Bob's 10", "12 dollars if each costs 2".
    """
    opening = tokens[0].casefold() if tokens else ""
    if opening not in (_OPENS_CONDITION | {"of"} if has_unit else _OPENS):
        return []
    for place, token in enumerate(tokens):
        if token[0].isdecimal() and token not in figures and place not in read:
            is_far = place > _FAR or not _SAYS_NOTHING.isdisjoint(tokens[:place])
            if opening == "of" and has_unit and is_far:
                return []
            if opening in _OPENS_CONDITION:
                return [said_by_question(tokens[: place + 1])]
            return [_ASKED + " ".join(tokens[opening in _SAYS_NOTHING : place + 2])]
    return [said_by_question(tokens)] if not has_unit and opening in ("if", "unless") else []


def is_met(demand: str, question: str, reference: str) -> bool:
    """Whether the question, or where it says nothing the reference, meets a demand."""
    question = question.partition(ASIDE)[0]
    if demand == _ABOUT:
        return bool(_IS_MEASURED.search(reference) or _ASKS_ESTIMATE.search(question))
    asked = asked_part(question)
    if demand.startswith((_SAID, _ASKED)):
        where = asked if asked and demand.startswith(_ASKED) else question
        return f" {_spoken(demand[len(_SAID) :])} " in f" {_spoken(where)} "
    if not asked:
        return True
    if demand == _MORE:
        return bool(_ASKS_DIFFERENCE.search(asked))
    if demand.startswith(_WAY):
        way, opposite = _OPPOSITES[int(demand[len(_WAY) :])]
        return not opposite.search(asked) or way.search(asked) is not None
    if demand.startswith(_NAME):
        return _may_be_asked(demand[len(_NAME) :].casefold(), asked)
    noun = demand[len(_RATE) :]
    said = "|".join({noun, *(word for word, of in _NOUN_OF.items() if of == noun)})
    if _ASKS_RATE.search(asked) or _NAMES_UNIT.search(reference):
        return True
    if re.search(rf"\b(?:{said})\b", asked):
        return True
    return not is_time(noun) and bool((_SHARES if noun else _ASKS_SHARE).search(asked))


_ASKED_NAME = re.compile(
    r"\b(?:find|determine|compute|calculate|evaluate|solve for|value of|is)\s+\$?"
    r"([a-z](?:\(\s?-?\d{1,9}\s?\))?)\$?(?=[\s.,?]|\Z)"
)


def _may_be_asked(name: str, asked: str) -> bool:
    """Whether the value of a name may be asked for: not that of `f(2)` by "find f(3)", nor that of x by "find y"."""
    names = ["".join(found.split()) for found in _ASKED_NAME.findall(asked)]
    kind = [other for other in names if ("(" in other) is ("(" in name)]
    return not kind or name in names or re.search(rf"(?<![a-z\\]){re.escape(name)}(?![a-z(])", asked) is not None


_NAMES_UNIT = re.compile(r"[^\W\d_]{2}|/\s?[a-z]")


@text_cache(4096)
def _spoken(text: str) -> str:
    return " ".join(form_of(word) for word in _WORDS.findall(text) if word not in ("the", "a", "an"))


_WORDS = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+(?:[.,]\d+)*")
