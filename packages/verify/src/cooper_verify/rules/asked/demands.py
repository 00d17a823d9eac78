r"""What an answer says of its value that only the question can confirm: "12 a day", "12 more than Ann", "about 12".

Each is a demand on the question: a text that begins with `DEMAND` and its kind, among the words around an answer. That
the question has the words is not enough: one that speaks of days may ask for a week, and one with "more" for a total.
Where nobody knows what was asked for, all but an estimate of an exact value is read.
"""

import re
from collections.abc import Callable, Container, Sequence

from cooper_verify.rules.asked.everyday_words import is_verb
from cooper_verify.rules.asked.names import (
    angles_of_value,
    asks_function,
    asks_rank,
    chains,
    functions_of_value,
    heads,
    is_only_asked,
    may_be_angle,
    may_be_head,
    may_be_named,
    may_be_ratio,
    may_be_symbol,
    may_stand_before,
    names_of_value,
    ranks,
    ratios,
    symbols_of_value,
)
from cooper_verify.rules.asked.numbers import asks_terms, has_numbers, numbers_of_things, terms_themselves
from cooper_verify.rules.asked.question import ASIDE, WORDS, Question, asked_part, places_of, says
from cooper_verify.rules.asked.rates import asks_rate, asks_span, rates, spans
from cooper_verify.rules.asked.units import (
    asks_for_several,
    joined_names,
    may_be_in,
    may_be_of,
    may_be_of_all,
    may_count,
    measure_said,
    names_said,
    thing_said,
    things_counted,
)
from cooper_verify.rules.asked.word_forms import IRREGULAR, form_of
from cooper_verify.rules.quantities.number import any_number
from cooper_verify.rules.quantities.units import NO_UNIT, measures, unit_of
from cooper_verify.rules.vocabulary.counted_nouns import is_counted
from cooper_verify.rules.vocabulary.languages import LANGUAGES, words_of
from cooper_verify.rules.vocabulary.number_words import PARTS
from cooper_verify.rules.vocabulary.unit_table import CURRENCY_SIGNS

DEMAND = "\0"

_COMPARATIVE = (
    r"(?:more|fewer|less|extra|additional|older|younger|taller|shorter|longer|heavier|lighter|faster|slower|cheaper"
    r"|bigger|larger|smaller|greater|higher|lower|farther|further|wider|narrower|deeper|later|earlier|better|warmer"
    r"|colder|hotter)"
)
_DIFFERS = re.compile(
    rf"\b{_COMPARATIVE}\b(?:[^.;\n]{{0,80}}?\bthan\b|\s*\Z)|(?:^|\s)(?!less|fewer){_COMPARATIVE}\b|\bto go\b"
)
_ADDS = re.compile(r"\b(?:another|additional|extra)[\s$({]*\Z")
_ASKS_DIFFERENCE = re.compile(
    rf"\b{_COMPARATIVE}\b|\bdifferen|\bcompar|\bexceed|\bby (?:how|what)\b|\bincreas|\bdecreas|\bsav"
    r"|\banother\b|\bneed|\bleft\b|\bstill\b|\bremain|\buntil\b|\bbefore\b|\bto go\b"
)
_MULTIPLE = re.compile(r"\A[\s$)}]*times\s(?=(?:the|his|her|their|its|as|more|that|what|[\w-]+['\u2019]s)\b)[^.,;]*")
"""What multiplies something else: "12 times Bob's age"."""

_PART_IS = re.compile(
    rf"(?:\A|[,;:]\s|\b(?:so|thus|hence|then|and)\s)[\s$*]*+(?:(?:the|an?|one|1)\s)?"
    rf"(?P<part>(?:{'|'.join(PARTS)})s?|rest|(?:square|cube|double|triple|reciprocal|opposite|factorial)(?=\sof)|\d[\d.]*+\s?(?:\\?%|percent)|\d+/\d+|\\[dt]?frac\s?\{{\d+\}}\{{\d+\}})\$?\s+"
    rf"(?:of\s(?![$\d])[^.,;\d]{{1,60}}\s)?(?:is|are|was|were|equals|=)\b",
    re.IGNORECASE,
)
"""A part, or what is made from it, whose value is stated: "half of it is 12"."""
_OF_MADE = re.compile(r"\bof (?:the|their|its) (squares|cubes|reciprocals|roots|logarithms)\b")
"""What is made from values, of which something is the value: "the sum of their squares is 12"."""

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
        (r"loss|los[et]|losing", r"profit|gain|earn|won\b|win|revenue|income|make\b"),
        (r"decreas|declin|reduc|drop|shrink|shrank|fell\b", r"increas|rise|rose\b|grow|grew"),
        (r"behind\b", r"ahead\b"),
        (
            r"left\b|remain|unsold|unused",
            r"s[eo]ld\b|sell\b|eaten\b|eat\b|los[et]\b|spen[dt]\b|used?\b|broken\b|gone\b|costs?\b|price|pay\b",
        ),
        (r"below\b", r"above\b"),
        (r"at least", r"none\b|no\b"),
        (r"owes?\b|owing\b", r"(?<!is )owed\b|owed\b(?! by)|(?:have|make|get)\b(?! to)|earn|receive"),
        (r"maxim|max\b|largest|greatest|highest", r"minim|min\b|smallest|least\b|lowest"),
        (r"larger|greater|bigger", r"smaller"),
        (r"longer|longest", r"shorter|shortest"),
        (r"older|oldest", r"younger|youngest"),
        (r"odd\b", r"even\b"),
        (r"(?:[gs][eo]t|gets|hop|step)[a-z]*\s+off\b", r"(?:g[eo]t|gets|hop|step)[a-z]*\s+on\b"),
    )
    for one, other in (pair, pair[::-1])
]
"""Words of an answer, and those of a question that asks for the opposite."""
_VALUE = "\1"
"""In a sentence: where its value stands."""
_THEN_VALUE = rf"\s(?:away\s)?(?:\w+\s)?[\s$({{*]*{_VALUE}"
_NEGATES = r"(?:\b(?:no|not|none|never|neither|nor|without)\b|n't\b)"
_COUNTS_WITHOUT = re.compile(rf"(?i)\b(?:probability|chance|number|fraction|percentage)\b[^.,;]{{0,60}}?{_NEGATES}")
_COUNTS_WITH = re.compile(r"(?i)\b(?:probability|chance) (?:that (?!this|that\b)|of (?!this|that|it\b|such|the event))")
_ASKS_WITHOUT = re.compile(r"\b(?:probability|chance)\b[^.,;]{0,60}?(?:\b(?:no|not|none|never|neither|nor)\b|n't\b)")
_DENIES = re.compile(rf"{_NEGATES}|(?i:\b(?:un|non|in)[a-z]{{3}})")
_ASKS_WHAT_ONE_HAS = (
    r"\bhow (?:many|much)\b[^.?!]*(?:\b(?:left\b|remain|still ha)|\bdo(?:es)?\b[^.?!]*\bhave\b(?! to\b))"
)
_SIZES = [("tall", "high"), ("high", "tall"), ("wide", "wide"), ("deep", "deep"), ("long", "long"), ("thick", "thick")]
"""Adjectives of a length, each with one that says the same."""
_OPPOSITES += [
    (re.compile(way), re.compile(asked))
    for way, asked in (
        (
            rf"\b(?:was|were|had|is now){_THEN_VALUE}(?!.*\b(?:left|remain))",
            r"\bwill\b|\bdo(?:es)?\b[^.?!]*\bhave\b(?! to\b)|\b(?:is|are)\b[^.?!]*\b(?:left\b|remain)",
        ),
        (
            rf"\b(?:sells?|sold|gives?|gave|eats?|ate|los(?:es?|t)|spends?|spent|uses?|used|donated?){_THEN_VALUE}",
            _ASKS_WHAT_ONE_HAS,
        ),
        (
            rf"\b(?:earns?|earned|receives?|received){_THEN_VALUE}",
            r"\bhow much\b(?![^.?!]*\b(?:earn|make|receive))[^.?!]*\b(?:spend|pay|owe)\b",
        ),
        (rf"\b(?:needs?|lacks?|wants?|could have){_THEN_VALUE}", _ASKS_WHAT_ONE_HAS),
        (
            rf"\b(?:pays?|paid|spends?|spent){_THEN_VALUE}",
            r"\bhow much (?:money |of the )?change\b"
            r"|\bhow much\b(?![^.?!]*\b(?:spend|pay|cost|need))[^.?!]*\b(?:earn|make|receive)\b",
        ),
        (rf"{_VALUE}\D{{0,20}}\b(?:tall|long|old|wide|high|deep|heavy)\b", rf"\bhow much {_COMPARATIVE}\b"),
        (
            rf"\b(?:hatten?|avai(?:t|ent)|aveva(?:no)?|ten[ií]an?|tinham?|был[оаи]?){_THEN_VALUE}",
            r"\b(?:hat|haben|ha|hanno|tienen?|t[eê]m|a-t-(?:ils?|elles?))\b|\bсколько\b(?![^?]*\bбыл)",
        ),
        (
            rf"\b(?:increas|decreas|r[io]se|f[ae]ll|gr[eo]w|drop|reduc|rais|chang)\w* to{_THEN_VALUE}",
            r"\bpercent(?:age)?\b[^.?!]*\b(?:increas|decreas|rise|fall|grow|drop|change)",
        ),
        (
            r"\b(?!answer|it\b|that\b|this\b|result|solution|total|years?|time|[a-z]\b)[a-z']+"
            rf"\s(?:is|are|was|were|will be|turns?){_THEN_VALUE}(?!\W*[a-z]+\s+(?:from|later|ago))",
            r"\bhow many (?:years|months|weeks|days|hours) (?:will|until|ago|from|later|before|after|must|pass)\b",
        ),
        *(
            (rf"{_VALUE}\D{{0,20}}\b{one}\b", rf"\bhow (?!{one}|{alike})(?:tall|wide|deep|long|high|thick)\b")
            for one, alike in _SIZES
        ),
        (
            rf"\b(?:is|was)\s\W*{_VALUE}\W{{0,4}}of (?:what|its|the)\b",
            r"\bpercent(?:age)?\b[^.?!]*\b(?:increas|decreas|rise|fall|drop)",
        ),
        (rf"\bwill\s(?:have|be){_THEN_VALUE}(?!.*\b(?:left|remain|now))", r"\bnow\b"),
    )
]
"""What a value is of, and a question that does not ask for it: how many he had, of how many he will have."""

_ANY_WAY = re.compile("|".join(way.pattern for way, _ in _OPPOSITES))
_SHARE = re.compile(r"\bof (?:the|these|those|all|his|her|their|its|my|our|your)\b")
_IS_SHARE = re.compile(rf"[\s$)}}*]*{_SHARE.pattern}")
"""A value that is a part of something: "12 of the apples"."""
_PERCENT_OF_SUBJECT = re.compile(r"(?i)\b(?:the|an?)\s(\d[\d.]*+)\s?(?:\\?%|percent)\s[a-z]+")
"""A percentage that says which value it is: "the 90% interval"."""
_DAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b")
_TOGETHER = re.compile(
    r"\b(?:they|both|and [^,.;\d\1]{1,40}) (?:[^,.;]{0,40}\s)?together\b"
    r"|\btogether,? (?:they )?(?:now )?(?:have|had|are|own|weigh|earn|make|cost)\b"
)
"""What several have or are at once."""
_QUANTITIES = re.compile(
    r"\b((?<=the )mean|average|sum|product|(?<=the )range|(?:greatest|least) common|gcd|lcm|variance|interest|principal"
    r"|cost price|selling price|sale price|profit|cost"
    r"|[xyz]-(?:intercept|coordinate)|area|perimeter|circumference|volume|radius|diameter"
    r"|odds|remainder|quotient|reciprocal|numerator|denominator|median|mode|height|width|length|slope|intercept|speed"
    r"|distance|time|age|probability|vertex|focus|directrix|midpoint|centroid|orthocent(?:er|re)|circumcent(?:er|re)"
    r"|incent(?:er|re)|eigenvalue|eigenvector|determinant|trace|rank)s?\b"
)
"""Names of values of which one is asked for, if any is."""
_ALSO_CALLED = {"average": "mean", "circumference": "perimeter", "greatest common": "gcd", "least common": "lcm"}
_LETTERS_OF = {"r": "radius", "d": "diameter|distance", "h": "height", "A": "area", "V": "volume", "C": "perimeter"}
"""Letters of names that a question may ask for without them."""
_FIGURE = re.compile(r"\d")
_LETTER = re.compile(rf"[^\W\d_]|[%\u00b0\u00a2{CURRENCY_SIGNS}]|\$(?=\s?[\d.])|(?<=\d\s)\\?\$")
"""A letter or the sign of a unit."""
_OF_FIGURES = "0123456789.,/ $}\\"
_UNIT_CHARS = 200
_FAR = 4
"""So many words behind "of", a number says of how many the value is a part."""


def demand(kind: str, what: str = "") -> str:
    """A demand on the question, of a kind that `_MET` has."""
    return f"{DEMAND}{kind} {what}"


def is_of_name(word: str) -> bool:
    """Whether a word is a demand for the value of a name."""
    return word.startswith((demand("name"), demand("only")))


def without_estimate(before: str) -> tuple[str, list[str]]:
    """The text in front of a value without a sign or word that makes it an estimate, and what that demands."""
    found = _ESTIMATE.search(before[-_ESTIMATE_CHARS:])
    if found is None:
        return before, []
    return before[: len(before) - len(found.group())] + ("=" if found["sign"] else ""), [demand("about")]


def demands(before: str, texts: Sequence[str], behind: str) -> list[str]:
    """What the sentence of a value demands: the text in front of it, the value with its unit, and the text behind."""
    if not any(map(_LETTER.search, (before, *texts, behind))):
        return []
    units = [text[place.start() : place.start() + _UNIT_CHARS] for text in texts if (place := _FIGURE.search(text))]
    inside = units[0].lstrip(_OF_FIGURES) if units else ""
    said = f"{inside} {behind}"
    last = texts[0].rpartition("=")[2].strip() if texts else ""
    is_one = len(texts) == 1 and len(last) <= _UNIT_CHARS and _LETTER.search(last)
    left = texts[0][: texts[0].rfind("=") + 1] if len(texts) == 1 else ""
    unit = unit_of(last) if is_one else NO_UNIT
    multiple, names = _MULTIPLE.match(said), names_of_value(before, texts)
    found: dict[str, Sequence[str]] = {
        "per": rates(units, (before, said)),
        "in": spans(f"{before} | {behind}"),
        "more": [""] if _DIFFERS.search(said) or _ADDS.search(before) else [],
        "said": [
            *([" ".join(WORDS.findall(multiple.group())[:_FAR])] if multiple else []),
            *(_PERCENT_OF_SUBJECT.findall(before) if "%" in before or "percent" in before else []),
        ],
        "way": _ways(f"{_GIVES.sub(' ', before)}{left}{_VALUE}{said}".casefold()),
        "without": [""] if (is_without := _COUNTS_WITHOUT.search(before)) else [],
        "with": [""] if _COUNTS_WITH.search(before) and not is_without else [],
        "ratio": ratios(f"{before}{left}"),
        "day": _DAY.findall(f"{before} {said}".casefold()),
        "order": chains(f"{before}{left}"),
        "unit": measure_said(last) if is_one else [],
        "thing": [*thing_said(last, unit), *things_counted(before)],
        "asked": [part["part"] for part in _PART_IS.finditer(before)] + _OF_MADE.findall(before),
        "of": ["|".join(quantities)] if (quantities := _quantities(before.casefold())) else [],
        "letter": [name for name in names if name in _LETTERS_OF],
        "name": names,
        "head": [head for head in heads(before) if not _quantities(head)],
        "function": functions_of_value(before, texts),
        "rank": ranks(behind),
        "ordinal": ranks(inside),
        "whose": names_said(before),
        "both": joined_names(before),
        "together": [""] if _TOGETHER.search(f"{before}{_VALUE}{said}".casefold()) else [],
        "symbol": symbols_of_value(f"{before}{left}"),
        "angle": angles_of_value(f"{before}{left}"),
        "verb": verb_behind(said),
        "which": numbers_of_things(before),
        "terms": terms_themselves(before),
        "share": [""] if _IS_SHARE.match(said) else [],
        "label": _labels(before, texts[0], inside, behind) if units else [],
    }
    return [demand(kind, what) for kind, whats in found.items() for what in whats]


_GERUNDS = "|".join(word for word in LANGUAGES[0].reasoning.split() if word.endswith("ing"))
_GIVES = re.compile(rf"(?i)\b(?:this|that|which|{_GERUNDS})\s(?P<verb>gives|yields)(?:\sus)?(?![^\W\d_])")
_WE_GET = re.compile(r"(?i)\bwe(?:\scan)?\s(?:then\s|now\s)?(?P<verb>get|obtain|have)(?![^\W\d_])")
"""Steps of the reasoning and no deeds: "This gives 12", "So we get 12"."""
_OURS = re.compile(r"(?i)\bwe\b")
_NEEDS_TO = re.compile(r"\b(?:needs?|ha(?:s|ve|d)) to\s+\Z")


def _stands_at(step: re.Pattern[str], clause: str, place: int) -> bool:
    return any(found.start("verb") == place for found in step.finditer(clause))


def verb_said(clause: str, place: int) -> list[str]:
    """The demand for the verb of a clause that begins at a place: "picked 12", "could pick 12". None for what one has
    to do, which a question may ask for by what it takes, and for a step of the reasoning."""
    if _NEEDS_TO.search(clause, 0, place) or _stands_at(_GIVES, clause, place):
        return []
    words = WORDS.findall(clause, place)
    if _stands_at(_WE_GET, clause, place):
        return [demand("step", words[0])]
    verb = words[1] if words[0] == "could" else words[0]
    return [demand("verb", verb)] if is_verb(verb) else []


_VERB_BEHIND = re.compile(
    r"(?i)\A[\s$)}*]*(?:\w+\s){0,2}?(?P<thing>[a-z]+)\}?\s+(?:(?:is|are|was|were|have|has|had|been|now|then|also)\s+)*(?P<verb>(?!compared|based|needed|required|given|left)[a-z]+)\b"
)


def verb_behind(said: str) -> list[str]:
    """The verb behind the things of a value: "13 passengers got off", "75 litres leaked"."""
    found = _VERB_BEHIND.match(said)
    if found is None or not (is_counted(found["thing"]) or measures(found["thing"])):
        return []
    verb = found["verb"].casefold()
    return [verb] if verb in IRREGULAR or verb.endswith("ed") else []


def _asks_verb(verb: str, asked: str) -> bool:
    """Whether a question may ask for how many one picks, buys, or does so: it has no verb of the kind, or this one, or
    one that says as much of a number. What one has is not what one buys, and a price is what one pays."""
    own = _root(verb)
    if _is_any(own) or verb in WORDS.findall(asked):
        return True
    others = [other for word in WORDS.findall(asked) if _is_verb(word) and not _is_any(other := _root(word))]
    if not others and re.search(_ASKS_WHAT_ONE_HAS, asked):
        return own in _KEEPING
    if not others and "price" in asked:
        return own in _ALIKE | _TRADING
    return not others or any(_is_same(own, other) or {own, other} <= _ALIKE for other in others)


def _is_verb(word: str) -> bool:
    """Whether a word is a verb that says what is done. "How many came in the box" only asks what is in it."""
    return is_verb(word) or (word in IRREGULAR and not is_counted(word) and word not in ("came", "come"))


def _root(verb: str) -> str:
    root = form_of(verb)
    return f"{root[:-1]}i" if root.endswith("y") else root


def _is_same(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)  # "need" and "needs" have the roots "ne" and "need"


def _is_any(root: str) -> bool:
    return any(_is_same(root, word) for word in _OF_ANY_VERB)


_OF_ANY_VERB = frozenset(map(_root, ("have", "do", "total", "sum", "need", "require")))
"""What one has or needs of anything that is asked for; `_OPPOSITES` tell what one needs from what one has."""
_ALIKE = frozenset(map(_root, ("pay", "spend", "cost", "charge")))
_TRADING = frozenset(map(_root, ("buy", "sell", "purchase")))
_KEEPING = frozenset(
    map(_root, ("own", "possess", "keep", "hold", "collect", "gather", "accumulate", "carry", "store", "save", "leave"))
)


def _labels(before: str, text: str, inside: str, behind: str) -> list[str]:
    """The noun right in front of a value of which nothing is counted: "room" of "room 12"."""
    figure = _FIGURE.search(text)
    noun = _RIGHT_BEFORE.search(before + text[: figure.start()]) if figure else None
    counted = _WORD_BEHIND.match(f"{inside}{behind}")
    word = noun[1].casefold() if noun else ""
    return [word] if word and not (word in _FRAMES or is_verb(word) or (counted and counted[1] not in _OPENS)) else []


_RIGHT_BEFORE = re.compile(r"(?<![^\W\d_]|\\)(?<!the )(?<!begin\{)([^\W\d_]{2,})[\s#$({}*\\]*\Z")
_WORD_BEHIND = re.compile(r"[\s$)}*\\]*(?:text\s?\{\s?)?([^\W\d_]+)")
_FRAMES = {*LANGUAGES[0].frames.split()} - {"number"}


def _quantities(text: str) -> list[str]:
    """The names of values in a text, one name for each."""
    names: list[str] = _QUANTITIES.findall(text)
    return [*dict.fromkeys(_ALSO_CALLED.get(name, name) for name in names)]


def _ways(sentence: str) -> list[str]:
    """The words of a sentence that have an opposite, if it is not there too."""
    if not _ANY_WAY.search(sentence):
        return []
    found = [place for place, (way, _) in enumerate(_OPPOSITES) if way.search(sentence)]
    return [str(place) for place in found if not _OPPOSITES[place][1].search(sentence)]


_OPENS_CONDITION = {"if", "when", "unless", "once", "while", "before", "after", "until", "since", "without", "besides"}
_OPENS_CONDITION |= {"plus", "minus"}
_SAYS_NOTHING = {"in", "on", "at", "for", "to"}
_OPENS = _OPENS_CONDITION | _SAYS_NOTHING | {"of", "per", "with", "over", "under", "by", "from", "into", "against"}
_OPENS |= {"among", "between"}


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
                return [demand("said", " ".join(tokens[: place + 1]))]
            return [demand("asked", " ".join(tokens[opening in _SAYS_NOTHING : place + 2]))]
    return [demand("said", " ".join(tokens))] if not has_unit and opening in ("if", "unless") else []


def is_met(demanded: str, question: str, reference: str) -> bool:
    """Whether the question, or where it says nothing the reference, meets a demand."""
    kind, _, what = demanded[len(DEMAND) :].partition(" ")
    text = question.partition(ASIDE)[0]
    return _MET[kind](what, Question(text, asked_part(text), reference))


def _asks_opposite(way: str, question: Question) -> bool:
    own, opposite = _OPPOSITES[int(way)]
    return opposite.search(question.asked) is not None and not own.search(question.asked)


def _asks_of(names: str, question: Question) -> bool:
    expected = _quantities(question.asked)
    return not expected or not {*expected}.isdisjoint(names.split("|"))


def _asks_letter(letter: str, question: Question) -> bool:
    is_said = re.search(rf"(?<![A-Za-z]){letter}(?![A-Za-z])", question.text) is not None
    is_point = question.reference.startswith("(") and "," in question.reference
    return is_said or is_point or _asks_of(_LETTERS_OF[letter], question)


_ASKED_LETTER = re.compile(r"(?<![\w'])[b-hj-z](?!\w)")


def _is_in_reference(text: str, question: Question) -> bool:
    """Whether the unit of a value is for the comparison with the reference: it has one, it has the letter as a
    variable, or other figures, as 0.4 has for 40%. Of a name, such as "find r", the question tells if it is a share."""
    reference = question.reference
    if text.endswith("%") and _ASKED_LETTER.search(question.asked) and may_be_in(text, question.text.casefold()):
        return True
    letter = text[-1:] if re.fullmatch(r".*(?<![A-Za-z])[A-Za-z]", text) else ""
    is_variable = letter and re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", reference)
    is_share = text.endswith("%") and any_number(text.rstrip("\\% ")) != any_number(reference)
    return bool(is_variable or is_share or unit_of(reference))


_NAMES_UNIT = re.compile(r"(?<![A-Za-z\\])[^\W\d_]{2}|/\s?[a-z]")


def _if_known(met: Callable[[str, Question], bool]) -> Callable[[str, Question], bool]:
    """A demand that is met where nobody knows what is asked for."""
    return lambda what, question: not question.asked or met(what, question)


_MET: dict[str, Callable[[str, Question], bool]] = {
    "about": lambda _, q: bool(_IS_MEASURED.search(q.reference) or _ASKS_ESTIMATE.search(q.text)),
    "said": lambda what, q: says(q.text, what),
    "asked": lambda what, q: says(q.asked or q.text, what),
    "without": lambda _, q: not q.text.strip() or _DENIES.search(q.text) is not None,
    "with": lambda _, q: _ASKS_WITHOUT.search(q.asked) is None,
    "only": lambda name, q: is_only_asked(name, q.text),
    "more": _if_known(lambda _, q: _ASKS_DIFFERENCE.search(q.asked) is not None),
    "way": _if_known(lambda way, q: not _asks_opposite(way, q)),
    "of": _if_known(_asks_of),
    "letter": _if_known(_asks_letter),
    "unit": _if_known(lambda text, q: _is_in_reference(text, q) or may_be_in(text, q.asked)),
    "thing": _if_known(lambda thing, q: may_count(thing, q.asked, q.text)),
    "head": _if_known(may_be_head),
    "name": _if_known(lambda name, q: may_be_named(name, q.asked, q.text)),
    "function": lambda name, q: "=" in q.reference or asks_function(name, q.asked),
    "rank": _if_known(lambda noun, q: asks_rank(noun, q.asked)),
    "label": may_stand_before,
    "verb": _if_known(lambda verb, q: _asks_verb(verb, q.asked)),
    "step": _if_known(lambda verb, q: _OURS.search(q.text) is None or _asks_verb(verb, q.asked)),
    "ordinal": lambda noun, q: asks_rank(noun, q.asked),
    "together": _if_known(lambda _, q: asks_for_several(q.asked)),
    "both": _if_known(lambda names, q: may_be_of_all(names, q.asked)),
    "symbol": _if_known(lambda symbol, q: may_be_symbol(symbol, q.text)),
    "angle": _if_known(lambda angle, q: may_be_angle(angle, q.asked)),
    "which": _if_known(lambda words, q: has_numbers(q.text, words)),
    "terms": _if_known(lambda _, q: asks_terms(q.asked)),
    "share": _if_known(lambda _, q: _SHARE.search(q.text) is not None),
    "whose": _if_known(lambda names, q: may_be_of(names, q.asked, q.text)),
    "mod": lambda modulus, q: not q.text.strip() or says(q.text, modulus) or "mod" in q.reference,
    "day": _if_known(lambda day, q: day in q.asked or not _DAY.search(q.asked)),
    "order": lambda sides, q: (places := places_of(sides.split("|"), q.text)) == sorted(places),
    "ratio": _if_known(lambda sides, q: may_be_ratio(sides, q.asked)),
    "in": _if_known(lambda span, q: asks_span(q.asked, span)),
    "per": _if_known(lambda noun, q: bool(_NAMES_UNIT.search(q.reference)) or asks_rate(q.asked, noun)),
}
"""Whether a question meets a demand, for each kind."""
