"""Units and things of an answer, and whether a question may ask for them: "12 minutes", "12 boys"."""

import re
from collections.abc import Iterable, Sequence

from cooper_verify.rules.asked.everyday_words import is_given_name, is_quality, is_time
from cooper_verify.rules.asked.question import WORDS, asks_once, says
from cooper_verify.rules.asked.word_forms import form_of
from cooper_verify.rules.quantities.units import Unit, unit_of
from cooper_verify.rules.vocabulary.counted_nouns import is_counted
from cooper_verify.rules.vocabulary.languages import words_of
from cooper_verify.rules.vocabulary.number_words import TIMES

_HOW_MANY = r"how many|number of|combien de|wie viele|cu[aá]nt[oa]s|quant(?:[oa]s|[ie])|сколько"
_ASKED_UNIT = re.compile(
    rf"\b(?:(?:{_HOW_MANY}|in|en|em)\s+|combien d['\u2019])((?:(?:square|cubic)\s)?\$?(?:\\(?:text|mathrm)\{{)?[^\W\d_]"
    r"[\w/^{}]*+(?![&-])"
    r"(?:\s(?:squared|cubed|celsius|fahrenheit|c[uú]bic[oa]s|quad?rad[oa]s|quadrat[ie]|carrés)\b)?)"
)
_SO_MANY = re.compile(r"\b\d[\d,]*\s(?:[a-z-]+\s)?[a-z]+")
"""Things whose number the question gives."""
_ASKED_THING = re.compile(
    rf"\b(?:{_HOW_MANY}|combien d['\u2019])\s*"
    r"((?:[^\W\d_][^\W_-]*+(?:-[^\W_]++)*\s?){1,4})"
)
_SYMBOLS = {*("m", "cm", "mm", "km", "g", "kg", "mg", "ft", "ml", "km/h", "m/s")}
_OF_ANYTHING = "item object thing unit piece kind type sort way possibility outcome case total"
_OF_ANYTHING += " arrangement combination permutation choice"
_ANYTHING = frozenset(map(form_of, _OF_ANYTHING.split()))
"""Forms of words for whatever is counted."""
_KIN = (
    "father|mother|dad|mom|brother|sister|uncle|aunt|cousin|son|daughter|wife|husband|friend|teacher|neighbor|boss"
    "|nephew|niece|grand[a-z]+"
)
_PERSON = rf"[A-Z][a-z]+(?:['\u2019]s\s(?:{_KIN})\b)?"
_NAMES = re.compile(rf"\b{_PERSON}")
_IS_ASKED_BY_PRONOUN = re.compile(r"\b(?:he|she|they|him|her|them|his|their|than)\b")
_WHOSE = re.compile(
    rf"\b(?:do|does|did|will|would|can|could|should|must|has|have|had|is|was|are|were)\s({_PERSON})(?:\sand\s({_PERSON}))?"
)
"""Who stands behind a verb that asks: "does Tom", "is Tom's father"."""
_PERCENT = re.compile(
    r"percent|(?<![\d}\\])\\?%|per cent|fraction|proportion|portion|share|probabilit|chance|likel|rates?\b|interest"
    r"|margin|discount|increas|decreas|change|growth|error|efficien|yield|concentration|humidity|confidence|accura|grade|score"
)
_SAYS_LITTLE = 3
"""So many words ask for nothing in particular: "What is it?"."""
_ASKS_AGE = re.compile(r"how old|wie alt|quel âge|qué edad|quale età|que idade")
_ASKS_PERCENT = re.compile(r"\b(?:what|which|the) (?:\w+ )?percent(?:age)?\b")
_DIMENSIONS = {
    "length": r"length|perimeter|circumference|radius|diameter|height|width|depth|distance|altitude|hypotenuse"
    r"|how (?:far|tall|high|wide|deep)",
    "length^2": "area",
    "length^3": "volume",
    "mass": r"mass|how heavy|weighs?|weight",
    "temperature|angle": "temperature",
    "angle|radian": "angle",
    "none": "probability|chance",
    "length|time": "how long",
    "money": "cost|price|profit|revenue|salary|budget|how much money",
    "time": r"(?<!by the )(?<!on )(?<!a )time|duration|how old",
    "length time^-1": r"speed|velocity|how fast",
    "length time^-2": "acceleration|deceleration",
    "amount length^-3": "molarity",
    "amount length^-3|mass length^-3": "concentration",
}
_PHYSICAL = {*_DIMENSIONS, "angle", "radian", "temperature", "amount", "mass length^-3"}
_QUANTITY = re.compile("|".join(rf"(?P<d{place}>\b(?:{names})\b)" for place, names in enumerate(_DIMENSIONS.values())))
"""What is asked for, by the dimension of its units."""


def measure_said(text: str) -> list[str]:
    """The unit in which a value is, if it is one of measures."""
    return [text] if unit_of(text).is_known else []


def thing_said(text: str, unit: Unit) -> list[str]:
    """The things that a value counts, with what they are like: "red marbles"."""
    is_scaled = any(map(_is_scale, WORDS.findall(text)))  # "5 dozen eggs" are no eggs
    counted = [place for place, word in enumerate(unit.words, 1) if is_counted(word) and not is_scaled]
    head = counted[0 if " of " in text else -1] if counted else 0
    return [" ".join(unit.words[:head]).casefold()] if counted else []


_SO_MANY_ARE = re.compile(rf"(?i)(?:\bnumber of|\A)\s*((?:[a-z]+\s)??[a-z]+)(?:\s{words_of('verb')}|\s?:)[\s$*]*\Z")


def things_counted(before: str) -> list[str]:
    """The things whose number a subject is: "the number of girls is", "Girls:"."""
    found = _SO_MANY_ARE.search(before)
    return [found[1].casefold()] if found and is_counted(found[1].split()[-1]) else []


def _persons(names: Iterable[str]) -> list[str]:
    """Those of some names that are given names, perhaps of a relative: "tom", "tom's sister"."""
    return [name.replace("\u2019", "'").casefold() for name in names if name and is_given_name(name.split("'")[0])]


def names_said(text: str) -> list[str]:
    """The persons in a sentence, as one text."""
    names = _persons(_NAMES.findall(text))
    return ["|".join(names)] if names else []


_TOGETHER = re.compile(rf"({_PERSON})\sand\s({_PERSON})\s(?:[a-z]+\s){{1,2}}[\s$({{*]*\Z")
_ASKS_FOR_SEVERAL = re.compile(r"\b(?:together|total|altogether|in all|both|they|combined|each|sum|everyone)\b")


def joined_names(before: str) -> list[str]:
    """The two persons of whom a value is said together, as one text: "Ann and Tom have"."""
    found = _TOGETHER.search(before) if " and " in before else None
    names = _persons(found.groups()) if found else []
    return ["|".join(names)] if len(names) > 1 else []


def may_be_of_all(names: str, asked: str) -> bool:
    """Whether a question may ask for a value of these persons together: not if it names some of them alone."""
    said = [name in asked for name in names.split("|")]
    return all(said) or not any(said) or asks_for_several(asked)


def asks_for_several(asked: str) -> bool:
    """Whether a question asks for what several have together."""
    return _ASKS_FOR_SEVERAL.search(asked) is not None


def may_be_of(names: str, asked: str, question: str) -> bool:
    """Whether a question may ask for a value of these persons: all for whom it asks at once are among them."""
    said = names.split("|")
    expected = [{name for name in _persons(found) if name in asked} for found in _WHOSE.findall(question)]
    expected = [names for names in expected if names]
    if not expected and not _IS_ASKED_BY_PRONOUN.search(asked):
        expected = [{name} for name in _persons(_NAMES.findall(question)) if name in asked]
    is_one = any(names <= {*said} for names in expected)
    return not expected or is_one or (len(said) > 1 and all(name in asked for name in said))


def _asked_units(asked: str) -> list[Unit]:
    """The units that a question names behind "how many" and "in"."""
    words = [word for word in _ASKED_UNIT.findall(asked) if len(word) > 3 or word in _SYMBOLS]  # else the case counts
    return [_counted(unit) for word in words if (unit := unit_of(f"1 {word.strip('$')}")).is_known]


def _counted(unit: Unit) -> Unit:
    """The unit without those for each of which it is: of "hours a week", hours. `asked_rates` looks for the others."""
    return unit_of(f"1 {unit.names[0]}") if len({*unit.names}) > 1 else unit


def _asks_things(asked: str) -> bool:
    """Whether a question asks how many things there are."""
    return any(is_counted(word) for found in _ASKED_THING.findall(asked) for word in found.split())


def may_be_in(text: str, asked: str) -> bool:
    """Whether a question may ask for a value in this unit: it asks for no other unit, quantity or thing."""
    whole = unit_of(text)
    own = _counted(whole)
    units = _asked_units(asked)
    if own.is_("percent"):
        return _PERCENT.search(asked) is not None or len(WORDS.findall(asked)) <= _SAYS_LITTLE
    if _ASKS_AGE.search(asked) and is_time(own.names[0]) and not own.is_("year"):
        return says(asked, own.names[0])
    alike = [other for other in units if other.powers == own.powers]
    if alike or (units and asks_once(asked)):
        return any(other.size == own.size for other in alike)
    if units or not asks_once(asked):
        return True
    if _ASKS_PERCENT.search(asked):
        return False
    quantity = _QUANTITY.search(asked)
    dimension = [*_DIMENSIONS][int((quantity.lastgroup or "")[1:])] if quantity else ""
    said = "time" if whole.dimension == "calendar" else whole.dimension
    is_other = said in _PHYSICAL and said not in dimension.split("|")
    return not (quantity and is_other) and not _asks_things(asked)


def _head_of(words: Sequence[str]) -> Sequence[str]:
    """The words of what is counted up to the things of which it consists: dozens, of "dozens of eggs"."""
    place = words.index("of") if "of" in words else 0
    return words[:place] if place and form_of(words[place - 1]) not in _ANYTHING else words


def _is_scale(word: str) -> bool:
    return word.removesuffix("s") in TIMES


def may_count(thing: str, asked: str, question: str) -> bool:
    """Whether a question may ask for so many things: not for girls where the answer counts boys, nor for red marbles
    where it counts blue ones."""
    phrases = [*map(str.split, _ASKED_THING.findall(asked))]
    words = [word for phrase in phrases for word in _head_of(phrase)]
    is_made_of = len(words) < sum(map(len, phrases))
    *kinds, noun = thing.split()
    own = form_of(noun)
    counted, qualities = [[*filter(chosen, words)] for chosen in (is_counted, is_quality)]
    if own in _ANYTHING:
        return True
    is_named = not is_made_of and noun in WORDS.findall(_SO_MANY.sub(" ", asked))
    if not counted:
        is_scaled = any(map(_is_scale, words))
        return not (is_scaled or is_made_of or (asks_once(asked) and _asked_units(asked) and not is_named))
    is_kind = not {*map(form_of, kinds)}.isdisjoint(map(form_of, words))
    if qualities and kinds and not is_kind and all(is_quality(kind) or says(question, kind) for kind in kinds):
        return False
    forms = [*map(form_of, words)]
    is_declined = not own.isascii() and any(own[:4] == form[:4] for form in forms)  # "яблок", "яблока"
    return is_named or is_declined or any(map(own.endswith, forms))  # "watermelons"
