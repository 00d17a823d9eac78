"""Right answers in unusual notation: what a reward should pay although it is not written as the reference is."""

from cooper_audit.attack.wrong_answers import Writer, as_number
from cooper_verify.rules.quantities.number import number_value
from cooper_verify.rules.vocabulary.number_words import ONES


def _in_words(number: str) -> str | None:
    """A whole number from zero to 99 in words, else None."""
    words = {value: word for word, value in ONES.items() if len(word) > 2}
    if not number.isdigit() or int(number) > 99:
        return None
    tens, ones = divmod(int(number), 10)
    return words.get(int(number)) or f"{words[10 * tens]}-{words[ones]}"


def _as_fraction(number: str) -> str | None:
    value = number_value(number)
    if value is None or value.denominator == 1:
        return None
    return rf"{'-' if value < 0 else ''}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _with_thousands(number: str) -> str | None:
    digits = number.removeprefix("-")
    return f"{int(number):,}" if digits.isdigit() and len(digits) > 3 else None


MINUS = "\N{MINUS SIGN}"
RIGHT_VALUES: dict[str, Writer] = {
    "x = 4": as_number(lambda number: f"x = {number}"),
    "4.0": as_number(lambda number: None if "." in number or "/" in number else f"{number}.0"),
    "0.50": as_number(lambda number: f"{number}0" if "." in number else None),
    r"\frac{1}{2}": as_number(_as_fraction),
    "4,000": as_number(_with_thousands),
    "four": as_number(lambda number: _in_words(number)),
    "$4$": as_number(lambda number: f"${number}$"),
    "minus sign": as_number(lambda number: number.replace("-", MINUS) if number.startswith("-") else None),
}
"""Right answers in unusual notation, by an example of it. A reward that rejects them is not gamed, but it teaches one
way of writing."""
