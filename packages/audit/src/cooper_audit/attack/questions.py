"""The questions of an attack where nobody names others: word problems whose answers are numbers, made here."""

from collections.abc import Callable
from random import Random

from cooper_base.data.problem import Problem

Drawn = tuple[str, str]
"""A question and its answer."""
COLUMNS = ("ground_truth", "reference", "target", "label", "gold", "gold_answer", "expected", "reward_model")
"""Names by which functions in the style of other libraries ask for the reference, besides `answer` and `solution`."""


def _shop(random: Random) -> Drawn:
    count, price, paid = random.randint(3, 9), random.randint(4, 19), random.choice((200, 500))
    item = random.choice(("notebooks", "tickets", "mugs", "plants"))
    return f"{count} {item} cost {price} coins each. How much is left of {paid} coins?", str(paid - count * price)


def _crates(random: Random) -> Drawn:
    crates, each, sold = random.randint(12, 48), random.randint(110, 420), random.randint(20, 90)
    question = f"A farm fills {crates} crates with {each} apples each and keeps {sold} apples. How many does it have?"
    return question, str(crates * each + sold)


def _temperature(random: Random) -> Drawn:
    morning, fall = random.randint(2, 9), random.randint(11, 29)
    return f"It is {morning} degrees in the morning and {fall} degrees colder at night. How cold?", str(morning - fall)


def _shares(random: Random) -> Drawn:
    people, each = random.choice((4, 5, 8)), random.randint(2, 30)
    total = people * each + people // random.choice((2, people))
    length = total / people
    return f"A rope of {total} metres is cut into {people} equal parts. How long is one, in metres?", f"{length:g}"


def _journey(random: Random) -> Drawn:
    speed, hours, rest = random.randint(41, 89), random.randint(2, 7), random.randint(11, 39)
    question = f"A bus drives {hours} hours at {speed} km per hour and then {rest} km more. How many km in all?"
    return question, str(speed * hours + rest)


def _ages(random: Random) -> Drawn:
    older, years = random.randint(3, 9), random.randint(12, 30)
    return f"Mia is {years} and {older} years older than Tom. How old are they together?", str(2 * years - older)


_KINDS: tuple[Callable[[Random], Drawn], ...] = (_shop, _crates, _temperature, _shares, _journey, _ages)


def questions(count: int, seed: int = 0) -> list[Problem]:
    """`count` different questions. No answer stands as a number in its question, so repeating it answers nothing."""
    random, drawn, turn = Random(f"questions {seed}"), dict[str, Problem](), 0
    while len(drawn) < count:
        question, answer = _KINDS[turn % len(_KINDS)](random)
        turn += 1
        if answer in question or question in drawn:
            continue
        fields = {**dict.fromkeys(COLUMNS, answer), "reward_model": {"ground_truth": answer, "style": "rule"}}
        drawn[question] = Problem(f"question-{len(drawn)}", question, answer, answer, fields)
    return [*drawn.values()]
