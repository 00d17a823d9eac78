r"""What an answer says of its value that only the question can confirm: "12 a day", "12 more than Ann", "about 12".

Each is a demand on the question: a text that begins with `DEMAND` and its kind, among the words around an answer. That
the question has the words is not enough: one that speaks of days may ask for a week, and one with "more" for a total.
Where nobody knows what was asked for, all but an estimate of an exact value is read.
"""

import re
from collections.abc import Container, Sequence

from cooper_verify.rules.counted_nouns import is_counted
from cooper_verify.rules.everyday_words import is_time
from cooper_verify.rules.languages import words_of
from cooper_verify.rules.number_words import ONES, PARTS
from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.unit_table import measure_of
from cooper_verify.rules.units import NO_UNIT, unit_of
from cooper_verify.rules.word_forms import form_of

DEMAND = "\0"
ASIDE = "\0"
"""In the text of a question: what follows is no part of it."""
_OF, _UNIT, _THING, _RATE, _SPAN, _MORE, _ABOUT, _SAID, _ASKED, _WAY, _NAME, _ONLY, _RATIO, _WITHOUT = (
    f"{DEMAND}{kind} "
    for kind in (
        "of",
        "unit",
        "thing",
        "per",
        "in",
        "more",
        "about",
        "said",
        "asked",
        "way",
        "name",
        "only",
        "ratio",
        "without",
    )
)

_SENTENCE = re.compile(r"(?>(?:[^.!?\n]|[.!?](?!\s|\Z))+)[.!?]*+")
_ASKS = re.compile(
    r"\b(?:how|what|which|whose|find|determine|calculate|compute|evaluate|express|give|state|write)\b", re.IGNORECASE
)
_CONDITION = re.compile(
    r",?\s\b(?:if|when|given|assuming|because|since|but|while|suppose|provided)\b[^,?]*+"
    r"|,\s(?:who|which|whose|where|with)\b[^,?]*+",
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


_SPANS = {"second": ("second", 1), "minute": ("second", 60), "hour": ("second", 3600), "day": ("second", 86400)}
_SPANS |= {"week": ("second", 604800), "month": ("month", 1), "year": ("month", 12), "decade": ("month", 120)}
_TIME_NOUN = "|".join(_SPANS)
_ADVERB = r"\b(?P<adverb>hourly|daily|weekly|monthly|yearly|annually|nightly)"
_ALONE = r"\b(?P<alone>each|apiece)\b"
_NO_SPAN = "".join(rf"(?<!\b{word} )" for word in ("in", "for", "of", "after", "within", "over"))
_OPENS_TEXT = r"(?:\\(?:text|mathrm)\{\s?)?"
_RATE_IN_UNIT = re.compile(
    rf"\bper\s+(?:\d+\s+)?{_OPENS_TEXT}(?P<per>[a-z]+)|(?:/\s?{_OPENS_TEXT}|\b(?:each|every|an?)\s+)(?P<noun>[a-z]+)"
    rf"|\\[dt]?frac\s?\{{[^{{}}]*+(?:\{{[^{{}}]*+\}})?\s?\}}\s?\{{{_OPENS_TEXT}(?P<under>[a-z]+)"
    rf"|(?<![A-Za-z\\])(?P<inverse>[a-z]{{1,4}})\}}?\s?\^\s?\{{?-1|(?<![a-z])(?P<symbol>mph|kmh|kph)\b|{_ADVERB}\b|{_ALONE}"
)
_RATE_AROUND = re.compile(
    rf"(?i)(?<![a-z])(?:per\s+(?:\d+\s+)?(?P<per>[a-z]+)|(?:each|every)\s+(?:\d+\s+)?(?!of\b)(?P<noun>[a-z]+))"
    rf"|{_NO_SPAN}\ban?\s+(?P<time>[a-z]+)|{_ADVERB}(?=\s*(?:[.,;]|\Z))|{_ALONE}"
)
_TIMES = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_TIMES |= {"nightly": "night", "mph": "hour", "kmh": "hour", "kph": "hour", "h": "hour", "hr": "hour", "min": "minute"}
_TIMES |= {"s": "second", "sec": "second", "wk": "week", "yr": "year"}
_ASKS_RATE = re.compile(r"\b(?:rates?|speeds?|velocit\w+|fast|pace|densit\w+|wages?|hourly|acceleration|slope)\b")
_ASKS_SHARE = re.compile(r"\b(?:each|every|per|apiece|one|1|single|an?)\b")
_SHARES = re.compile(r"\b(?:each|every\w*|per|apiece)\b")
_ONE = r"(?:\b(?:an?|one|1|per|each|every|single|the|this|that|his|her|their|its)\s+(?:\w+\s)?|[/-])"
_COUNT = rf"(?P<count>an?|per|each|every|\d{{1,4}}|{'|'.join(ONES)})"
_SPAN_AROUND = re.compile(
    rf"\b(?:in|for|over|within|during)\s(?:the\s)?(?:(?:next|first|last|past)\s)?{_COUNT}\s(?P<time>{_TIME_NOUN})s?\b"
)
_SPAN_ASKED = re.compile(rf"\b{_COUNT}[\s-](?P<time>{_TIME_NOUN})s?\b")

_COMPARATIVE = (
    r"(?:more|fewer|less|extra|additional|older|younger|taller|shorter|longer|heavier|lighter|faster|slower|cheaper"
    r"|bigger|larger|smaller|greater|higher|lower|farther|further|wider|narrower|deeper|later|earlier|better|warmer"
    r"|colder|hotter)"
)
_DIFFERS = re.compile(rf"\b{_COMPARATIVE}\b(?:[^.;\n]{{0,80}}?\bthan\b|\s*\Z)|(?:^|\s)(?!less|fewer){_COMPARATIVE}\b")
_ADDS = re.compile(r"\b(?:another|additional|extra)[\s$({]*\Z")
_ASKS_DIFFERENCE = re.compile(
    rf"\b{_COMPARATIVE}\b|\bdifferen|\bcompar|\bexceed|\bby (?:how|what)\b|\bincreas|\bdecreas|\bsav"
    r"|\banother\b|\bneed|\bleft\b|\bstill\b|\bremain|\buntil\b|\bbefore\b|\bto go\b"
)
_MULTIPLE = re.compile(r"\A[\s$)}]*times\s(?=(?:the|his|her|their|its|as|more|that|what|[\w-]+['\u2019]s)\b)[^.,;]*")
"""What multiplies something else: "12 times Bob's age"."""

_PART_IS = re.compile(
    rf"(?:\A|[,;:]\s|\b(?:so|thus|hence|then|and)\s)[\s$*]*+(?:(?:the|an?|one|1)\s)?"
    rf"(?P<part>(?:{'|'.join(PARTS)})s?|rest|\d[\d.]*+\s?(?:\\?%|percent)|\d+/\d+|\\[dt]?frac\s?\{{\d+\}}\{{\d+\}})\$?\s+"
    rf"(?:of\s(?![$\d])[^.,;\d]{{1,60}}\s)?(?:is|are|was|were|equals|=)\b",
    re.IGNORECASE,
)
"""A part whose value is stated: "half of it is 12"."""

_SIGN_OF_ESTIMATE = r"(?:\u2248|\\(?:approx|simeq|sim|cong)(?![A-Za-z])|(?:(?<=\s)|\A)~)"
_ESTIMATE = re.compile(rf"(?i)(?:(?P<sign>{_SIGN_OF_ESTIMATE})|{words_of('about')})[\s$({{]*\Z")
_ESTIMATE_CHARS = 40
_ASKS_ESTIMATE = re.compile(
    r"(?i)\b(?:about|around|approximate\w*|approx|roughly|estimat\w+|round\w*|nearest|decimals?|significant)\b"
)
_IS_MEASURED = re.compile(r"\d\.\d*[1-9]|\\approx|\u2248")

_OPPOSITES = [
    (re.compile(rf"\b(?:{one})"), re.compile(rf"\b(?:{other})"))
    for pair in (
        (r"loss|los[et]|losing", r"profit|gain|earn|won\b|win"),
        (r"decreas|declin|reduc|drop|shrink|shrank|fell\b", r"increas|rise|rose\b|grow|grew"),
        (r"behind\b", r"ahead\b"),
        (r"left\b|remain|unsold|unused", r"sold\b|eaten\b|lost\b|spent\b|used\b|broken\b|gone\b"),
        (r"below\b", r"above\b"),
        (r"at least", r"none\b|no\b"),
        (r"owes?\b|owing\b", r"(?<!is )owed\b|owed\b(?! by)|(?:have|make|get)\b(?! to)|earn|receive"),
        (r"maxim|largest|greatest|highest", r"minim|smallest|least\b|lowest"),
        (r"larger|greater|bigger", r"smaller"),
        (r"longer|longest", r"shorter|shortest"),
        (r"older|oldest", r"younger|youngest"),
    )
    for one, other in (pair, pair[::-1])
]
"""Words of an answer, and those of a question that asks for the opposite."""
_VALUE = "\1"
"""In a sentence: where its value stands."""
_THEN_VALUE = rf"\s(?:away\s)?(?:\w+\s)?[\s$({{*]*{_VALUE}"
_NEGATES = r"(?:\b(?:no|not|none|never|neither|nor|without)\b|n't\b)"
_COUNTS_WITHOUT = re.compile(rf"(?i)\b(?:probability|chance|number|fraction|percentage)\b[^.,;]{{0,60}}?{_NEGATES}")
_DENIES = re.compile(rf"{_NEGATES}|(?i:\b(?:un|non|in)[a-z]{{3}})")
_OPPOSITES += [
    (re.compile(way), re.compile(asked))
    for way, asked in (
        (
            rf"\b(?:was|were|had|is now){_THEN_VALUE}(?!.*\b(?:left|remain))",
            r"\bwill\b|\bdo(?:es)?\b[^.?!]*\bhave\b[^.?!]*\b(?:left|now)\b",
        ),
        (
            rf"\b(?:sells?|sold|gives?|gave|eats?|ate|los(?:es?|t)|spends?|spent|uses?|used|donated?){_THEN_VALUE}",
            r"\bhow (?:many|much)\b[^.?!]*\b(?:left\b|remain|still ha)",
        ),
        (rf"\b(?:pays?|paid|spends?|spent){_THEN_VALUE}", r"\bhow much (?:money |of the )?change\b"),
    )
]
"""What a value is of, and a question that does not ask for it: how many he had, of how many he will have."""

_ANY_WAY = re.compile("|".join(way.pattern for way, _ in _OPPOSITES))
_QUANTITIES = re.compile(
    r"\b(area|perimeter|circumference|volume|radius|diameter|remainder|quotient|reciprocal|numerator|denominator|median"
    r"|mode|height|width|length|slope|intercept|speed|distance|time|age|probability)s?\b"
)
"""Names of values of which one is asked for, if any is."""
_CALL = r"[A-Za-z](?:\^\s?\{?-1\}?|'{1,3})?\(\s?(?:-?\d{1,9}|[A-Za-z])\s?\)"
_PIECE = (
    r"(?:\\(?:[dt]?frac|sqrt|cdot|times|overline|angle|vec|left|right)(?![A-Za-z])"
    r"|(?<![A-Za-z\\])(?:[a-z]|[A-Z]{1,3})(?![A-Za-z])|[-+*/^_(){}'|\d])"
)
_NAMED = re.compile(
    rf"(?:\A|[,;:$\n]|\\[(\[]|[^\W\d_]{{2}}\s)\s*(?:(?P<left>{_PIECE}(?>(?:\s*{_PIECE})*))\s*&?="
    rf"|(?P<call>{_CALL})\s*\$?\s(?:is|equals)|(?:length|measure)\sof\s\$?(?P<points>[A-Z]{{2,3}})\$?\s(?:is|equals))[\s$]*\Z"
)
"""What a value is the value of: a name or a formula in front of it."""
_RATIO_OF = re.compile(r"\bratio\sof\s([^.,;:?\d]{1,40}?)\sto\s([^.,;:?\d]{1,40}?)(?=\s(?:is|are|was|in)\b|[.,;:?]|\Z)")
_NAMED_CHARS = 80
_ASKED_VERB = r"\b(?:find|determine|compute|calculate|evaluate|solve for|value of|is)\s+\$?"
_ASKED_NAME = re.compile(rf"{_ASKED_VERB}((?!a\s[a-z])[a-z]|{_CALL})\$?(?=[.,?]|\s(?!\s?[-+*/^=])|\Z)")
_ASKED_ALSO = re.compile(r"(?<![a-z])[a-z]\$?,?\s(?:and|or)\s\$?[a-z](?![a-z])")
_ASKED_TERM = re.compile(
    rf"{_ASKED_VERB}((?>(?:[-+*/^{{}}()|\d\s]|(?<![a-z\\])[a-z](?![a-z])|\\(?:[dt]?frac|cdot|times|sqrt)(?![a-z]))+))(?=[$.,?]|\Z)"
)
"""A formula that is asked for: "find x + y"."""
_POINTS = re.compile(r"(?<![A-Za-z\\])[A-Z]{2}(?![A-Za-z])")
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_LENGTH_OF_NAME = re.compile(r"(?:\||\\overline\s?\{?)\s?([a-z]{2})\s?[|}]?")
_COMMAND_OF_NAME = re.compile(r"\\[A-Za-z]+|[\s$]")
_LETTER_OF_NAME = re.compile(r"[a-z]")


def without_estimate(before: str) -> tuple[str, list[str]]:
    """The text in front of a value without a sign or word that makes it an estimate, and what that demands."""
    found = _ESTIMATE.search(before[-_ESTIMATE_CHARS:])
    if found is None:
        return before, []
    return before[: len(before) - len(found.group())] + ("=" if found["sign"] else ""), [_ABOUT]


_FIGURE, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
_OF_FIGURES = "0123456789.,/ $}\\"
_UNIT_CHARS = 200


def demands(before: str, texts: Sequence[str], behind: str) -> list[str]:
    """What the sentence of a value demands: the text in front of it, the value with its unit, and the text behind."""
    if not any(map(_LETTER.search, (before, *texts, behind))):
        return []
    units = [text[place.start() : place.start() + _UNIT_CHARS] for text in texts if (place := _FIGURE.search(text))]
    found = [_rate(rate) for unit in units for rate in _RATE_IN_UNIT.finditer(unit)]
    found += [f"{_SPAN}{span[0]} {span[1]}" for span in map(_span, _SPAN_AROUND.finditer(f"{before} | {behind}"))]
    said = f"{units[0].lstrip(_OF_FIGURES) if units else ''} {behind}"
    found += [_rate(rate) for text in (before, said) for rate in _RATE_AROUND.finditer(text)]
    if _DIFFERS.search(said) or _ADDS.search(before):
        found.append(_MORE)
    if multiple := _MULTIPLE.match(said):
        found.append(_SAID + " ".join(_WORDS.findall(multiple.group())[:_FAR]))
    found += _ways(f"{before}{_VALUE}{said}".casefold())
    found += [_WITHOUT] if _COUNTS_WITHOUT.search(before) else []
    found += [f"{_RATIO}{ratio[1]}|{ratio[2]}" for ratio in _RATIO_OF.finditer(before.casefold())]
    found += _unit(texts[0]) if len(texts) == 1 and len(texts[0]) <= _UNIT_CHARS else []
    found += [_ASKED + part["part"] for part in _PART_IS.finditer(before)]
    quantities = [*dict.fromkeys(_QUANTITIES.findall(before.casefold()))]
    found += [_OF + " ".join(quantities)] if quantities else []
    return [*dict.fromkeys(filter(None, found)), *_names(before, texts)]


def _rate(found: re.Match[str]) -> str:
    """The demand of a rate: for each of which time or thing the value is. Empty if it is for none."""
    kind, written = found.lastgroup or "", found[found.lastgroup or 0].casefold()
    word = _TIMES.get(written, written)
    if kind == "alone":
        return _RATE
    if kind in ("time", "inverse") and not is_time(word):
        return ""
    if kind in ("noun", "under") and not (is_time(word) or is_counted(word, may_be_one=True)):
        return ""
    return _RATE + word


def _ways(sentence: str) -> list[str]:
    """The words of a sentence that have an opposite, if it is not there too."""
    if not _ANY_WAY.search(sentence):
        return []
    found = [place for place, (way, _) in enumerate(_OPPOSITES) if way.search(sentence)]
    return [f"{_WAY}{place}" for place in found if not _OPPOSITES[place][1].search(sentence)]


def _span(found: re.Match[str]) -> tuple[str, int]:
    """How long a time is: so many seconds or months."""
    count = found["count"]
    unit, size = _SPANS[found["time"]]
    return unit, size * (int(count) if count.isdecimal() else ONES.get(count, 1))


_SYMBOL = r"[km]g|[ckm]m|ml|ft"
_ASKED_UNIT = re.compile(
    rf"\bhow many\s+(?:[a-z]+\s)??([a-z]{{3,}}|(?:{_SYMBOL})\b)"
    rf"|\bin\s\$?(?:\\(?:text|mathrm)\{{)?([a-z]{{3,}}|{_SYMBOL}|[gm])\b"
)
_HOW_MANY = re.compile(r"\bhow many\s+([a-z]{3,}+)(?!\sper\b)")
_SO_MANY = re.compile(r"\b\d[\d,]*\s(?:[a-z-]+\s)?[a-z]+")
"""Things whose number the question gives."""
_ASKED_THING = re.compile(r"\bhow many\s+((?:[a-z-]+\s){1,4})")


def _unit(text: str) -> list[str]:
    """The unit of a value, or the things that it counts."""
    unit = unit_of(text) if _LETTER.search(text) else NO_UNIT
    if len(unit.names) == 1 and not unit.words:
        return [_UNIT + unit.names[0]]
    return [_THING + unit.words[-1].casefold()] if unit.words and is_counted(unit.words[-1]) else []


def _may_be_in(measure: str, asked: str) -> bool:
    """Whether a question may ask for a value in this unit: it names no other unit of the same dimension."""
    own = measure_of(measure)
    if "how old" in asked and measure != "year" and is_time(measure):
        return _says(asked, measure)
    words = [next(filter(None, found.groups())) for found in _ASKED_UNIT.finditer(asked)]
    others = [other for other in map(measure_of, words) if own and other and other.powers == own.powers]
    if (
        own
        and len(_ASKS.findall(asked)) == 1
        and any((other := measure_of(word)) and other.powers != own.powers for word in _HOW_MANY.findall(asked))
    ):
        return False  # kilometers for "how many litres"
    return not others or any(other.size == own.size for other in others if own)


def _may_count(thing: str, asked: str, question: str) -> bool:
    """Whether a question may ask for so many things: not for girls where the answer counts boys, of whom it tells."""
    counted = [word for found in _ASKED_THING.findall(asked) for word in found.split() if is_counted(word)]
    own = form_of(thing)
    if not counted or own not in map(form_of, _WORDS.findall(question)):
        return True
    others = _WORDS.findall(_SO_MANY.sub(" ", asked))
    return any(own.endswith(form_of(word)) for word in (*counted, *others))  # "watermelons"


def only_of(name: str) -> str:
    """The demand of the value of a name, where another name has another value."""
    return f"{_ONLY}{name}"


def demands_name(word: str) -> bool:
    return word.startswith((_NAME, _ONLY))


def is_only_asked(name: str, question: str) -> bool:
    """Whether a question asks for the value of this name and of no other: "what is b?"."""
    asked = asked_part(question)
    return _ASKED_NAME.findall(asked) == [name.casefold()] and not _ASKED_ALSO.search(asked)


def _names(before: str, texts: Sequence[str]) -> list[str]:
    """What an answer says that its value is the value of: `x`, `f(2)`, `2x`."""
    near = before[-_NAMED_CHARS:]
    found = [_NAMED.search(near)] if near.rstrip(" \n$").endswith(("=", "is", "equals")) else []
    found += (
        [_NAMED.search(texts[0][: texts[0].index("=") + 1])] if len(texts) == 1 and texts[0].count("=") == 1 else []
    )
    names = [re.sub(r"\s", "", name[name.lastgroup or 0]) for name in found if name]
    is_whole = [name.count("(") == name.count(")") and any(map(str.isalpha, name)) for name in names]
    return [_NAME + name for name, whole in zip(names, is_whole, strict=True) if whole]


_OPENS_CONDITION = {"if", "when", "unless", "once", "while", "before", "after", "until", "since", "without", "besides"}
_OPENS_CONDITION |= {"plus", "minus"}
_SAYS_NOTHING = {"in", "on", "at", "for", "to"}
_OPENS = _OPENS_CONDITION | _SAYS_NOTHING | {"of", "per", "with", "over", "under", "by", "from", "into", "against"}
_OPENS |= {"among", "between"}
_FAR = 4
"""So many words behind "of", a number says of how many the value is a part."""


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
            is_far = place >= _FAR or not _SAYS_NOTHING.isdisjoint(tokens[:place])
            if opening == "of" and has_unit and is_far:
                return []
            if opening in _OPENS_CONDITION:
                return [_SAID + " ".join(tokens[: place + 1])]
            return [_ASKED + " ".join(tokens[opening in _SAYS_NOTHING : place + 2])]
    return [_SAID + " ".join(tokens)] if not has_unit and opening in ("if", "unless") else []


def is_met(demand: str, question: str, reference: str) -> bool:
    """Whether the question, or where it says nothing the reference, meets a demand."""
    question = question.partition(ASIDE)[0]
    kind, _, what = demand[len(DEMAND) :].partition(" ")
    if kind == "about":
        return bool(_IS_MEASURED.search(reference) or _ASKS_ESTIMATE.search(question))
    asked = asked_part(question)
    if kind == "said" or (kind == "asked" and not asked):
        return _says(question, what)
    if kind == "without":
        return not question.strip() or _DENIES.search(question) is not None
    if kind == "only":
        return is_only_asked(what, question)
    if not asked:
        return True
    match kind:
        case "asked":
            return _says(asked, what)
        case "more":
            return bool(_ASKS_DIFFERENCE.search(asked))
        case "way":
            way, opposite = _OPPOSITES[int(what)]
            return not opposite.search(asked) or bool(way.search(asked))
        case "of":
            expected = {*_QUANTITIES.findall(asked)}
            return not expected or not expected.isdisjoint(what.split(" "))
        case "unit":
            return bool(_NAMES_UNIT.search(reference)) or _may_be_in(what, asked)
        case "thing":
            return _may_count(what, asked, question)
        case "name":
            return _may_be_asked(what, asked, question)
        case "ratio":
            parts = [{*map(form_of, _WORDS.findall(part))} for part in what.split("|")]
            ratio = _RATIO_OF.search(asked)
            others = [{*map(form_of, _WORDS.findall(part))} for part in (ratio.groups() if ratio else ("", ""))]
            return not (
                (parts[0] - parts[1]) & (others[1] - others[0]) or (parts[1] - parts[0]) & (others[0] - others[1])
            )
        case "in":
            spans = {f"{unit} {size}" for unit, size in map(_span, _SPAN_ASKED.finditer(asked))}
            return not spans or what in spans
        case _:
            return bool(_NAMES_UNIT.search(reference)) or _asks_rate(asked, what)


_NAMES_UNIT = re.compile(r"(?<![A-Za-z\\])[^\W\d_]{2}|/\s?[a-z]")


def _asks_rate(asked: str, noun: str) -> bool:
    """Whether a rate is asked for: for each of what `noun` says, which is empty for "each"."""
    if _ASKS_RATE.search(asked):
        return True
    adverbs = "|".join(word for word, time in _TIMES.items() if time == noun and word != noun) or "(?!)"
    if noun and re.search(rf"{_ONE}{noun}\b|\b(?:{adverbs})\b", asked):
        return True
    return not is_time(noun) and bool((_SHARES if noun else _ASKS_SHARE).search(asked))


def _may_be_asked(name: str, asked: str, question: str) -> bool:
    """Whether the value of a name or a formula may be asked for: not that of `f(2)` by "find f(3)", nor that of `x` or
    `2y` by "find y". The variable of a function may have any name."""
    names = [*map(_bare_name, _ASKED_NAME.findall(asked))]
    names += [pair.casefold() for pair in _POINTS.findall(question) if re.search(rf"\b{pair.casefold()}\b", asked)]
    terms = [*names, *map(_bare_name, _ASKED_TERM.findall(asked))]
    own = _bare_name(name)
    is_sum = re.search(r"[-/^]", own) is None
    if not terms or own in terms or (is_sum and sorted(own) in map(sorted, terms)):
        return True
    letters = {*_LETTER_OF_NAME.findall(own)}
    if re.fullmatch(r"[a-z][^a-z(]*\([^()]*\)", own):
        return not any("(" in term for term in names)
    if any(term in own if "(" in term else letters & {*_LETTER_OF_NAME.findall(term)} for term in terms):
        return False
    is_alike = any("(" not in term and len(term) == len(own) for term in names)
    return not is_alike or re.search(rf"(?<![a-z\\]){re.escape(own)}(?![a-z(])", asked) is not None


def _bare_name(name: str) -> str:
    """A name or a formula without commands and spaces, in small letters. A function's variable is left out."""
    bare = _LENGTH_OF_NAME.sub(r"\1", name.casefold())
    bare = _COMMAND_OF_NAME.sub("", _FRACTION.sub(r"\1/\2", bare))
    return re.sub(r"(?<=[a-z'1}])\([a-z]\)", "()", bare)


def _says(text: str, words: str) -> bool:
    """Whether a text has these words in this order, in any form."""
    return f" {_spoken(words)} " in f" {_spoken(text)} "


@text_cache(4096)
def _spoken(text: str) -> str:
    return " ".join(form_of(word) for word in _WORDS.findall(text) if word not in ("the", "a", "an"))


_WORDS = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+(?:[.,]\d+)*")
