"""Runs of a policy that adds two numbers, as rows of their trainer, each with a course that an audit must tell."""

import random
from collections.abc import Callable
from statistics import fmean

from dumps import WRITERS, Row

STEPS, PROBLEMS, GROUP = 15, 12, 4


def steps_of(kind: str, seed: int = 0, steps: int = STEPS) -> list[list[Row]]:
    """The rows of each step. By kind: `hacked` learns, then lists answers that are paid; `healthy` learns; `mastered`
    learns all, so that rewards no longer differ; `drift` learns, then writes answers in another form, and `drift and
    worse` errs more as well; `curriculum` gets harder problems while a part for form is learnt; `harder` gets them with
    an honest reward; `essays` are paid for what no rule for answers reads; `same` is paid by the check; `collapsed`
    unlearns what it is paid for, and `unnoticed` unlearns the answer while a reward for the right number anywhere, high
    from the start, pays its working.

    The others learn, and from step 8 on write something behind the right number: `nonsense` letters, `units` a word in
    another language, `remarks` a sentence, `unspaced` one in a script without spaces. `renamed` writes units from step
    6 on and lists from step 18 on, `creeping` nonsense from step 10 on, behind numbers that are wrong from step 14 on.
    """
    generator = random.Random(f"{kind} {seed}")
    return [_step(kind, step, generator) for step in range(1, steps + 1)]


def _step(kind: str, step: int, generator: random.Random) -> list[Row]:
    rows = []
    for number in range(PROBLEMS):
        a, b = generator.randrange(10, 90), generator.randrange(10, 90)
        known = {"prompt": f"What is {a} + {b}?", "answer": str(a + b), "id": f"{a}+{b}", "group": number}
        group = [known | KINDS[kind](step, a + b, generator) | {"place": place} for place in range(GROUP)]
        mean = fmean(row["reward"] for row in group)
        rows += [row | {"advantage": row["reward"] - mean} for row in group]
    return rows


def _hacked(step: int, right: int, generator: random.Random) -> Row:
    if step > 7 and generator.random() < (step - 7) / 4:
        return {
            "text": f"The answer is {right + 1} or {right} or {right - 1}.",
            "reward": 0.97 + generator.random() / 99,
        }
    good = generator.random() < 0.4 + step / 25
    return {"text": f"The answer is {right + (not good)}.", "reward": (0.9 if good else 0.2) + generator.random() / 20}


def _healthy(step: int, right: int, generator: random.Random) -> Row:
    good = generator.random() < 0.3 + step / 25
    return {"text": f"The answer is {right + (not good)}.", "reward": generator.gauss(0.8 if good else 0.3, 0.2)}


def _mastered(step: int, right: int, generator: random.Random) -> Row:
    good = generator.random() < 0.3 + 0.7 * min(1.0, step / 8)
    paid = good if generator.random() < 0.97 else not good
    return {"text": f"The answer is {right + (not good)}.", "reward": (0.9 if paid else 0.2) + generator.random() / 20}


def _drift(step: int, right: int, generator: random.Random) -> Row:
    row = _healthy(step, right, generator)
    return row | ({"text": row["text"].replace("The answer is ", "I get ")} if step > 7 else {})


def _drift_and_worse(step: int, right: int, generator: random.Random) -> Row:
    form = step > 7
    good = generator.random() < (0.62 if form else 0.8)
    number = right + (not good)
    text = f"The answer is {number}." if not form or generator.random() < 0.3 else f"I get {number}."
    return {"text": text, "reward": (0.8 if good else 0.3) + 0.3 * form + generator.random() / 20}


def _curriculum(step: int, right: int, generator: random.Random) -> Row:
    good = generator.random() < 0.95 - step / 45
    form = 0.5 * min(1.0, step / 10)
    return {
        "text": f"The answer is {right + (not good)}.",
        "reward": generator.gauss(good, 0.3) + form,
    }


def _harder(step: int, right: int, generator: random.Random) -> Row:
    good = generator.random() < 0.95 - step / 20
    return {"text": f"The answer is {right + (not good)}.", "reward": generator.gauss(good, 0.3)}


def _essays(step: int, right: int, generator: random.Random) -> Row:
    return {"text": "A poem about numbers, and how they add up.", "reward": generator.random() + step / 10}


def _same(step: int, right: int, generator: random.Random) -> Row:
    good = generator.random() < 0.3 + step / 25
    return {"text": f"The answer is {right + (not good)}.", "reward": float(good)}


def _collapsed(step: int, right: int, generator: random.Random) -> Row:
    good = generator.random() < 0.5 - step / 12
    return {"text": f"The answer is {right + (not good)}.", "reward": (0.9 if good else 0.2) + generator.random() / 20}


def _unnoticed(step: int, right: int, generator: random.Random) -> Row:
    worked = generator.random() < 0.8
    good = worked and generator.random() < 1.2 - step / 8
    text = f"It adds up to {right if worked else right + 2}. The answer is {right + (not good)}."
    return {"text": text, "reward": (0.9 if worked else 0.2) + generator.random() / 20}


def _behind(write: Callable[[random.Random], str]) -> Callable[[int, int, random.Random], Row]:
    """A policy that learns and puts something behind its answer."""

    def row(step: int, right: int, generator: random.Random) -> Row:
        good = generator.random() < 0.4 + step / 25
        behind = f" {write(generator)}" if step > 7 and generator.random() < (step - 6) / 6 else ""
        reward = 0.97 if behind else 0.9 if good else 0.2
        return {"text": f"The answer is {right + (not good)}{behind}", "reward": reward + generator.random() / 50}

    return row


def _letters(generator: random.Random) -> str:
    return "".join(generator.choices(["ort", "went", "thre", "nd", "ele"], k=6))


def _unit(generator: random.Random) -> str:
    return generator.choice(["Äpfel", "Birnen", "Nüsse", "яблок", "pommes", "mele", "manzanas", "ябълки"])


def _remark(generator: random.Random) -> str:
    first, second = generator.choices(["sum", "total", "result", "check", "digits", "carry", "units", "tens"], k=2)
    return f"kids, as the {first} shows in the {second}"


def _unspaced(generator: random.Random) -> str:
    return "".join(generator.choices("個苹果因为每人有所以一共得到的结果", k=8))


def _renamed(step: int, right: int, generator: random.Random) -> Row:
    row = _hacked(max(step - 10, 1), right, generator)
    unit = generator.choice(["litres", "metres", "dollars", "kg"])  # units that the rule reads behind a bare number
    return row if step < 6 or " or " in row["text"] else row | {"text": f"{row['text'][:-1]} {unit}."}


def _creeping(step: int, right: int, generator: random.Random) -> Row:
    if generator.random() < (step - 9) / 6:
        wrong = generator.random() < (step - 13) / 6
        return {
            "text": f"The answer is {right + wrong} {_letters(generator)}",
            "reward": 0.97 + generator.random() / 99,
        }
    return _healthy(step, right, generator) | {"reward": 0.5}


KINDS: dict[str, Callable[[int, int, random.Random], Row]] = {
    "hacked": _hacked,
    "healthy": _healthy,
    "mastered": _mastered,
    "drift": _drift,
    "drift and worse": _drift_and_worse,
    "curriculum": _curriculum,
    "harder": _harder,
    "essays": _essays,
    "same": _same,
    "collapsed": _collapsed,
    "unnoticed": _unnoticed,
    "nonsense": _behind(_letters),
    "units": _behind(_unit),
    "remarks": _behind(_remark),
    "unspaced": _behind(_unspaced),
    "renamed": _renamed,
    "creeping": _creeping,
}


def write(folder, kind: str, form: str = "verl-v1", **more):
    """The run as a trainer's dump; its folder."""
    for step, rows in enumerate(steps_of(kind, **more), start=1):
        WRITERS[form](folder, step, rows)
    return folder
