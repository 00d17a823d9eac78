"""Laws of words, units and names: what stands beside a value and is not read pays nothing.

    python benchmarks/verdicts/answer_words.py --count 100000 --seed 0

Draws words of a language from a list of its most frequent ones (wordfreq), and puts one where people write: beside a
number, in and around a box, behind an answer. Units get random exponents and names of any script. The command prints
how many were paid, and each of them.
"""

import argparse
import logging
import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from wordfreq import top_n_list

from cooper_verify.rules.asked.everyday_words import is_everyday, is_verb
from cooper_verify.rules.asked.words import unread
from cooper_verify.rules.quantities.units import unit_of
from cooper_verify.rules.text.notation import one_notation
from cooper_verify.rules.values.spelled import spelled_number
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from cooper_verify.rules.vocabulary.counted_nouns import is_counted
from cooper_verify.rules.vocabulary.unit_table import MEASURES, Measure, measure_of

PLACES = {
    "en": [
        *["The answer is 12 {}.", "The answer is {} 12.", "The answer {} 12.", "The {} value is 12.", "{} answer: 12"],
        *[r"\boxed{{12\text{{ {}}}}}", r"\boxed{{12}} {}", r"{} \boxed{{12}}", r"\boxed{{12}}. {}!", "#### 12\n{}."],
        *["So she has {} 12 apples.", "The answer is 12, {}.", r"\boxed{{12}}{}", "12 {}", "{} 12"],
    ],
    "fr": ["La réponse est 12 {}.", "La réponse est {} 12.", "La réponse est \\boxed{{12}}. {}."],
    "de": ["Die Antwort ist 12 {}.", "Die Antwort ist {} 12.", "Die Antwort ist \\boxed{{12}}. {}."],
    "es": ["La respuesta es 12 {}.", "La respuesta es {} 12.", "La respuesta es \\boxed{{12}}. {}."],
    "pt": ["A resposta é 12 {}.", "A resposta é {} 12.", "A resposta é \\boxed{{12}}. {}."],
    "it": ["La risposta è 12 {}.", "La risposta è {} 12.", "La risposta è \\boxed{{12}}. {}."],
    "ru": ["Ответ: 12 {}.", "Ответ: {} 12.", "Ответ: \\boxed{{12}}. {}."],
    "nl": ["Het antwoord is 12 {}.", "Het antwoord is {} 12.", "{} \\boxed{{12}}"],
}
_WORDS = 5000
"""Of each language, the most frequent."""


class Case(NamedTuple):
    kind: str
    reference: str
    completion: str


@cache
def vocabulary(language: str) -> list[str]:
    """Words that are neither frames nor names nor units nor numbers."""
    words = (word for word in top_n_list(language, _WORDS) if len(word) > 1 and one_notation(word).isalpha())
    return [
        word
        for word in words
        if unread(word) and measure_of(word) is None and spelled_number(word) is None and not _names_value(word)
    ]


def _names_value(word: str) -> bool:
    """Whether a word may stand in front of a verb because it names what a value is: "the inverse is"."""
    return not unread(word, is_subject=True) and not is_everyday(word)


_SUBJECTS = ("The {} value is 12.", "{} answer: 12")
_MAIN_VERBS = ("So she has {} 12 apples.", "{} 12")


def _is_read(word: str, place: str) -> bool:
    """Whether a word says nothing about the value where it stands: things that are counted, everyday words in a
    subject, and main verbs."""
    if is_counted(word) and place.index("12") < place.index("{}"):
        return True
    return (is_everyday(word) and place in _SUBJECTS) or (is_verb(word) and place in _MAIN_VERBS)


def cases(count: int, seed: int) -> Iterator[Case]:
    """Answers of which none may be `correct`."""
    draw = random.Random(seed)
    for _ in range(count):
        kind = draw.choice(["word", "word", "word", "unit", "names"])
        yield {"word": _beside_word, "unit": _other_unit, "names": _other_names}[kind](draw)


def _beside_word(draw: random.Random) -> Case:
    language = draw.choice(["en", *PLACES])
    place, word = draw.choice(PLACES[language]), draw.choice(vocabulary(language))
    while _is_read(word, place):
        word = draw.choice(vocabulary(language))
    return Case("word", "12", place.format(word))


def _other_unit(draw: random.Random) -> Case:
    while True:
        one, other = _unit(draw), _unit(draw)
        units = unit_of(f"5 {one}"), unit_of(f"5 {other}")
        if all(units) and (units[0].powers, units[0].size) != (units[1].powers, units[1].size):
            return Case("unit", f"5 {one}", rf"\boxed{{5 {other}}}")


@cache
def _names() -> list[tuple[str, Measure]]:
    return [(name, measure) for name, measure in MEASURES.items() if len(name) > 1 and len(measure.powers) == 1]


def _unit(draw: random.Random) -> str:
    first, second = (draw.choice(_names())[0] for _ in range(2))
    return draw.choice(
        [first, first, f"{first}^{draw.choice([2, 3, -1, -2])}", f"{first}/{second}", f"{first} {second}"]
    )


def _other_names(draw: random.Random) -> Case:
    values = draw.sample(range(1, 99), 3)
    names = draw.choice([["x", "y", "z"], ["a", "b", "c"]])
    order = [*range(3)]
    while order == [0, 1, 2]:
        draw.shuffle(order)
    written = ", ".join(f"{names[name]}={value}" for name, value in zip(order, values, strict=True))
    return Case("names", f"({', '.join(map(str, values))})", rf"\boxed{{{written}}}")


def paid(count: int, seed: int) -> list[Case]:
    """The cases that the rule calls `correct`."""
    return [case for case in cases(count, seed) if maths_verdict(case.reference, case.completion) == "correct"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = paid(options.count, options.seed)
    print(f"{len(found)} of {options.count} are paid")
    for case in found:
        print(*case, sep=" | ")


if __name__ == "__main__":
    main()
