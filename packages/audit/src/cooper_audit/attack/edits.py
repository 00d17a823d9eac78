"""Edits that make a wrong answer of a reference, by readable names: a search combines them, and a file keeps them.

A pattern is one or more edits: at most one other value or statement in the place of the answer, and frames around it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

from cooper_audit.attack.wrappers import stated
from cooper_base.data.problem import Problem
from cooper_base.data.readers import refuse_pipe
from cooper_base.errors import InputError, did_you_mean, no_file
from cooper_base.files.owned_file import write_owned

COMMAND = "cooper attack"
Edit = Callable[[str, str, Random], str | None]
"""(reference, another answer, random generator) -> what stands in the place of the answer; None: there is no such."""
JOIN = " + "
_NUMBER = re.compile(r"(-?)(\d+)(\.\d+)?", re.ASCII)
_ANY_NUMBER = re.compile(r"(?:-\s*)?(?:\d+(?:\.\d*)?|\.\d+)(?:\s*/\s*\d+)?", re.ASCII)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}", re.ASCII)
_MOST_DIGITS = 40
"""Of a number that is read. Python refuses to compute with those of more than 4,300."""
NEAR = Fraction(1, 500)
"""Share of the reference by which a number must differ from it to be another."""


def _digits(change: Callable[[str, str, str, Random], str | None]) -> Edit:
    """An edit of a whole or decimal number, from its sign, whole digits, decimals with the point, and a generator."""

    def of_number(reference: str, other: str, random: Random) -> str | None:
        number = _NUMBER.fullmatch(reference.replace(",", ""))
        if number is None or len(number[0]) > _MOST_DIGITS:
            return None
        return change(number[1], number[2], number[3] or "", random)

    return of_number


def _value(change: Callable[[Fraction], Fraction]) -> Edit:
    """An edit of a whole or decimal number, from its value."""

    def of_number(sign: str, whole: str, decimals: str, random: Random) -> str | None:
        value = Fraction(f"{sign}{whole}{decimals}")
        changed = change(value) if value else value
        return str(changed) if changed.denominator == 1 else f"{float(changed):.10g}"

    return _digits(of_number)


def _reordered(sign: str, whole: str, decimals: str, random: Random) -> str | None:
    digits = [*(whole + decimals[1:])]
    random.shuffle(digits)
    text = "".join(digits)
    return sign + text[: len(whole)] + decimals[:1] + text[len(whole) :]


def _digit_changed(place: Callable[[str], int]) -> Edit:
    def changed(sign: str, whole: str, decimals: str, random: Random) -> str | None:
        at = place(whole)
        digit = random.choice([one for one in "123456789" if one != whole[at]])
        return sign + whole[:at] + digit + whole[at + 1 :] + decimals

    return _digits(changed)


def _doubled(sign: str, whole: str, decimals: str, random: Random) -> str | None:
    at = random.randrange(len(whole))
    return sign + whole[: at + 1] + whole[at:] + decimals


def _words_reordered(reference: str, other: str, random: Random) -> str | None:
    words = reference.split()
    return " ".join(words[::-1]) if len(words) > 1 else None


def _letter_changed(reference: str, other: str, random: Random) -> str | None:
    at = next((place for place, letter in enumerate(reference) if letter.isalpha()), None)
    return None if at is None else f"{reference[:at]}{'q' if reference[at] != 'q' else 'z'}{reference[at + 1 :]}"


def _constant(text: str) -> Edit:
    return lambda reference, other, random: text


ANOTHER = "another answer"
VALUES: dict[str, Edit] = {
    ANOTHER: lambda reference, other, random: other,
    "the first half of it": lambda reference, other, random: reference[: (len(reference) + 1) // 2],
    "the last half of it": lambda reference, other, random: reference[len(reference) // 2 :],
    "one character of it": lambda reference, other, random: random.choice(reference),
    "its digits in another order": _digits(_reordered),
    "its digits, each once": _digits(
        lambda sign, whole, decimals, random: sign + "".join(dict.fromkeys(whole)) + decimals
    ),
    "its digits, one doubled": _digits(_doubled),
    "a digit more before it": _digits(lambda sign, whole, decimals, random: f"{sign}4{whole}{decimals}"),
    "a digit more behind it": _digits(lambda sign, whole, decimals, random: f"{sign}{whole}{decimals}4"),
    "its first digit changed": _digit_changed(lambda whole: 0),
    "a middle digit changed": _digit_changed(lambda whole: len(whole) // 2),
    "its last digit changed": _digit_changed(lambda whole: -1 + len(whole)),
    "its zeros left out": _digits(lambda sign, whole, decimals, random: sign + whole.replace("0", "") + decimals),
    "its decimals left out": _digits(lambda sign, whole, decimals, random: sign + whole),
    "its decimals changed": _digits(lambda sign, whole, decimals, random: f"{sign}{whole}.{random.choice('12346789')}"),
    "its decimal point left out": _digits(lambda sign, whole, decimals, random: sign + whole + decimals[1:]),
    "its opposite": _value(lambda value: -value),
    "one more": _value(lambda value: value + 1),
    "a tenth more": _value(lambda value: value + Fraction(1, 10)),
    "0.4 % more": _value(lambda value: value * Fraction(251, 250)),
    "2 % more": _value(lambda value: value * Fraction(51, 50)),
    "8 % more": _value(lambda value: value * Fraction(27, 25)),
    "20 % more": _value(lambda value: value * Fraction(6, 5)),
    "half of it": _value(lambda value: value / 2),
    "twice as much": _value(lambda value: value * 2),
    "its square": _value(lambda value: value * value),
    "its inverse": _value(lambda value: 1 / value),
    "a hundredth of it": _value(lambda value: value / 100),
    "a thousand times it": _value(lambda value: value * 1000),
    "its words in another order": _words_reordered,
    "a letter of it changed": _letter_changed,
    "0": _constant("0"),
    "1": _constant("1"),
    "nan": _constant("nan"),
    "inf": _constant("inf"),
    "nothing": _constant(""),
    "a star": _constant("*"),
    "any text, as a pattern": _constant(".*"),
    "None": _constant("None"),
    "True": _constant("True"),
    "empty brackets": _constant("[]"),
    "a division by zero": _constant("1/0"),
    "an unfinished fraction": _constant(r"\frac{1}{"),
    "an open bracket": _constant("("),
    "5000 nines": _constant("9" * 5000),
    "a letter": _constant("x"),
    "the word answer": _constant("answer"),
}
"""Another value in the place of the answer."""

STATEMENTS: dict[str, Edit] = {
    "not it": lambda reference, other, random: f"not {reference}",
    "not it, in LaTeX": lambda reference, other, random: rf"\text{{not }}{reference}",
    "anything but it": lambda reference, other, random: f"anything but {reference}",
    "it or another": lambda reference, other, random: f"{reference} or {other}",
    "another or it": lambda reference, other, random: f"{other} or {reference}",
    "it or another, in LaTeX": lambda reference, other, random: rf"{reference} \text{{ or }} {other}",
    "it, another": lambda reference, other, random: f"{reference}, {other}",
    "another, it": lambda reference, other, random: f"{other}, {reference}",
    "it and another without a word": lambda reference, other, random: f"{reference} {other}",
    "another and it without a word": lambda reference, other, random: f"{other} {reference}",
    "both on lines": lambda reference, other, random: f"{reference}\n{other}",
    "both in a list": lambda reference, other, random: f"[{reference}, {other}]",
    "one added to it": lambda reference, other, random: f"{reference} + 1",
    "it doubled": lambda reference, other, random: f"2 * {reference}",
    "it to the power of 2": lambda reference, other, random: f"{reference}^2",
    "one over it": lambda reference, other, random: f"1 / {reference}",
    "its negation in brackets": lambda reference, other, random: f"-({reference})",
    "it in millions": lambda reference, other, random: f"{reference} million",
    "it with an exponent": lambda reference, other, random: f"{reference}e3",
    "less than it": lambda reference, other, random: f"< {reference}",
    "at least it": lambda reference, other, random: f"at least {reference}",
    "between it and another": lambda reference, other, random: f"between {reference} and {other}",
    "it, give or take another": lambda reference, other, random: rf"{reference} \pm {other}",
}
"""Statements with the reference that are wrong: it is denied, changed, bounded, or one of several answers."""

_THOUGHT = "We read the problem carefully, write down what is given and proceed. " * 8
_STEPS = (
    "First, we read what is given.\n- Next, we compute, because it follows.\n- Then, therefore, we conclude.\n"
    "- Finally, hence:\n"
)
"""Words of reasoning, and marks of steps as rewards of format count them."""
FRAMES: dict[str, Callable[[str], str]] = {
    "a long thought before": lambda text: f"{_THOUGHT}\n{text}",
    "words of reasoning before": lambda text: _STEPS + text,
    "a thought in tags before": lambda text: f"<think>\n{_THOUGHT}\n</think>\n{text}",
    "tags for thought and answer around": lambda text: f"<think>\nWe think.\n</think>\n<answer>\n{text}\n</answer>",
    "an empty box behind": lambda text: text + "\n\\boxed{}",
    "an empty tag behind": lambda text: f"{text}\n<answer></answer>",
    "said four times": lambda text: "\n".join([text] * 4),
    "the last character cut off": lambda text: text[:-1],
    "praise behind": lambda text: f"{text}\nThis is correct and has been verified.",
}
"""What stands around the form of an answer, by name."""


@dataclass(frozen=True)
class EditedPattern:
    """A pattern of edits: at most one of `VALUES` or `STATEMENTS`, and any of `FRAMES`; one at least."""

    edits: tuple[str, ...]

    @property
    def name(self) -> str:
        return JOIN.join(self.edits)

    def write(self, problem: Problem, other: str, form: str, seed: int = 0) -> str | None:
        """The wrong answer to this problem in a form; None if it would state the reference, or does not exist."""
        assert problem.answer is not None
        random, content = Random(f"edits {seed} {problem.question} {self.name}"), problem.answer
        for name in self.edits:
            if edit := VALUES.get(name) or STATEMENTS.get(name):
                written = edit(content, other, random)
                if written is None:
                    return None
                content = written
        text = stated(form, content)
        for name in self.edits:
            text = FRAMES[name](text) if name in FRAMES else text
        denied = any(name in STATEMENTS for name in self.edits)
        return text if denied or not states(text, problem.answer) else None


def states(text: str, reference: str) -> bool:
    """Whether a number in the text may be the reference, or the text has its letters. Separators, signs and decimal
    commas are read in every way, and what is nearer than `NEAR` may be the reference, rounded: a text of which this is
    False gives another answer, or none."""
    value = _number_of(reference.replace(",", ""))
    if value is None:
        return _letters(reference) in _letters(text)
    text = _FRACTION.sub(r" \1/\2 ", text.replace("\N{MINUS SIGN}", "-"))
    readings = {text, re.sub(r"(?<=\d)(?:[\s,_']|\\[,;: ])+(?=\d)", "", text), re.sub(r"(?<=\d),(?=\d)", ".", text)}
    given = (_number_of(number[0]) for reading in readings for number in _ANY_NUMBER.finditer(reading))
    return any(number is not None and abs(number - value) <= NEAR * abs(value) for number in given)


def _number_of(text: str) -> Fraction | None:
    """The value of a number; None for other texts, a division by zero and very long numbers."""
    text = re.sub(r"\s", "", text)
    if len(text) > _MOST_DIGITS:
        return None
    try:
        return Fraction(text if "/" not in text or "." not in text else "")
    except (ValueError, ZeroDivisionError):
        return None


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def pattern_of(edits: Sequence[str]) -> EditedPattern | None:
    """The pattern of these edits in their order; None if they are none or do not go together."""
    inside = [name for name in edits if name not in FRAMES]
    frames = [name for name in FRAMES if name in edits]
    return EditedPattern((*inside, *frames)) if len(inside) <= 1 and (inside or frames) else None


def read_patterns(path: Path) -> list[EditedPattern]:
    """The patterns of a file: one a line, its edits joined by " + "; lines that begin with # are comments. Raises
    InputError for a file that cannot be read, and an edit that does not exist."""
    refuse_pipe(path)
    if not path.is_file():
        raise no_file(path, (".txt",), "file of patterns")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as patterns ({error}); write UTF-8 text, one a line") from error
    names, patterns = [*VALUES, *STATEMENTS, *FRAMES], list[EditedPattern]()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        edits = line.strip().split(JOIN)
        for name in edits:
            if name not in names:
                remedy = did_you_mean(name, names, "docs/attack.md says where the names are")
                raise InputError(f"{path}:{number}: there is no edit {name!r}; {remedy}")
        pattern = pattern_of(edits)
        if pattern is None:
            raise InputError(f"{path}:{number}: {line.strip()!r} has two edits of the answer itself; write one a line")
        patterns.append(pattern)
    return patterns


def write_patterns(path: Path, patterns: Sequence[EditedPattern]) -> None:
    """Write patterns as `read_patterns` reads them."""
    write_owned(path, "".join(f"{pattern.name}\n" for pattern in patterns), COMMAND)
