r"""Texts in the grammar of each reader of answers, and what every reader must do with them: end, without a fault.

    python tests/fuzz/grammar.py COUNT [SEED]

reads COUNT different texts, references and completions, and prints the slowest pair, and each kind of fault with one
pair. Exits with 1 if there was a fault. Mutated bytes never find `\boxed{x = \sqrt{9} = \pm 3}`: one must know that a
chain of equations has sides, and that a side may have two values.
"""

import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from cooper_base.data.problem import Problem
from cooper_base.data.text import boxed
from cooper_verify.rules import other_answers
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.rules.verdicts.fast_path import fast_reading, reference_readings, verdict_by

T = TypeVar("T")
GRAMMAR: dict[str, tuple[str, ...]] = {
    # marks, around_box, sentence: where the answer stands
    "completion": (
        r"\boxed{<value>}",
        "The answer is <value>.",
        "<value>",
        r"So $<value> = \boxed{<value>}$ <unit>.",
        r"-\boxed{<value>}",
        r"\boxed{<value>} or \boxed{<value>}",
        r"$x = \boxed{<value>}$ and $y = \boxed{<value>}$",
        r"\[ <relation> \]",
        "#### <value>",
        "Answer: **<value>** <unit>",
        '{"answer": "<value>"}',
        "<answer><value></answer>",
        "She has <value> <unit> left, which is <value>.",
        "<think><value></think> It takes <approximately> <value>.",
        "\u7b54\u6848\u662f <value>\u3002",
        "La respuesta es <value> y <value>.",
        r"\boxed{<value>} wait, no: <value>",
    ),
    # reading, collection: one value or several
    "value": (
        "<scalar>",
        "<relation>",
        "<expression>",
        "<list>",
        "<bracket>",
        "<region>",
        "<ratio>",
        "<date>",
        "<words>",
        "<none>",
        "<choice>",
        "<parts>",
        "<scalar> <scalar>",
        r"\text{<value>}",
        "$<value>$",
        "<nested>",
    ),
    "list": (
        "<scalar>, <scalar>",
        "<value>, <value>",
        "<value> and <value>",
        "<value> or <value>",
        "<value>; <value>; <value>",
        r"<value> \text{ or } <value>",
        "<name> = <value>, <name> = <value>",
        "<name> = <value>, <name> = <value>, <name> = <value>, <name> = <value>",
        "<name>=<scalar> or <scalar>",
        "<integer>,<integer>,<integer>",
        "<scalar>,",
    ),
    "bracket": (
        "(<scalar>, <scalar>)",
        "(<value>, <value>)",
        r"\{<value>, <value>\}",
        "[<value>, <value>, <value>]",
        r"\langle <value>, <value> \rangle",
        r"\begin{pmatrix} <value> & <value> \\ <value> & <value> \end{pmatrix}",
        r"\begin{pmatrix} <value> \\ <value> \end{pmatrix}",
        r"\begin{cases} <relation> \\ <relation> \end{cases}",
        r"\{\}",
        "(<value>)",
        "(<name>, <name>) = (<scalar>, <scalar>)",
    ),
    # relation: chains of `=`, names, sizes
    "relation": (
        "<name> = <value>",
        "<expression> = <expression>",
        "<name> = <expression> = <expression>",
        "<expression> = <expression> = <expression> = <scalar>",
        "<name>(<name>) = <expression>",
        r"<expression> \approx <scalar>",
        r"<expression> < <expression> \le <expression>",
        "<scalar> > <name> >= <scalar>",
        r"<name> \ne <expression>",
        "<name> = <name> = <value>",
        r"m\angle ABC = <value>",
        "= <value>",
        "<value> = ",
        "<words> = <value>",
    ),
    # region: intervals, unions, conditions
    "region": (
        "(<scalar>, <scalar>]",
        "[<expression>, <expression>)",
        r"(-\infty, <expression>) \cup (<expression>, \infty)",
        r"\mathbb{R} \setminus \{<expression>\}",
        r"<name> \in [<expression>, <expression>]",
        r"\{<name> \mid <name> > <expression>\}",
        r"[<scalar>, <scalar>] \cap [<scalar>, <scalar>]",
        "<name> < <expression> or <name> > <expression>",
        r"<expression> \le <name> < <expression>",
        r"\{<expression>, <expression>\}",
    ),
    "ratio": ("<integer>:<integer>", "<scalar>:<scalar>", "<integer> : <integer> : <expression>", "<ratio> <unit>"),
    "date": (
        "<integer>/<integer>/<integer>",
        "<integer>-<integer>-<integer>",
        "<integer>:<integer> pm",
        "January <integer>, <integer>",
        "<integer>.<integer>.<integer>",
        "<integer>th",
        "<integer> BC",
    ),
    # scalar: a number with what is attached to it
    "scalar": (
        "<number>",
        "<number> <unit>",
        "<number><unit>",
        "<approximately> <number> <unit>",
        r"<number>\%",
        r"\$<number>",
        "$<number>",
        "<number>_{<integer>}",
        "<number>_<digit>",
        "0x<integer>",
        "<number> <scale>",
        "<number> <scale> <unit>",
        r"<number>^\circ",
        r"<number> \text{ <unit>}",
        r"<number>\,\mathrm{<unit>}^<digit>",
        "<integer> <integer>/<integer>",
        "<number> \u00b1 <number>",
        r"\pm <number>",
        "<expression> <unit>",
        "<number>, because <words>",
        r"<number> \times 10^{<integer>}",
        "<number>e<integer>",
        "<number>!",
    ),
    "number": (
        "<integer>",
        "-<integer>",
        "<integer>.<integer>",
        "<integer>/<integer>",
        "<integer>,<integer>",
        "<integer>.<integer>.<integer>",
        ".<integer>",
        "<integer>.",
        "<integer>..<integer>",
        "<integer>,<integer>.<integer>",
        "<integer>.<integer>,<integer>",
        "+<integer>",
        "--<integer>",
        r"\frac{<integer>}{<integer>}",
        r"<integer>\frac{<integer>}{<integer>}",
        r"\frac<digit><digit>",
        r"<integer>.<integer>\overline{<integer>}",
        r"0.\dot{<integer>}\dot{<integer>}",
        r"<integer>\,<integer>",
        "<integer> <integer>",
    ),
    "integer": (
        "<digit>",
        "<digit><digit>",
        "0",
        "1",
        "00",
        "10",
        "100",
        "1000",
        "400",
        "<digits>",
        "\u0663",
        "\u00b2",
    ),
    "digit": (*"0123456789",),
    # formula, estimate, tree: operations, functions, powers
    "expression": (
        "<number>",
        "<name>",
        "<expression> + <expression>",
        "<expression> - <expression>",
        "<expression><expression>",
        r"<expression> \cdot <expression>",
        "<expression>/<expression>",
        r"\frac{<expression>}{<expression>}",
        r"\sqrt{<expression>}",
        r"\sqrt[<expression>]{<expression>}",
        "<expression>^{<expression>}",
        "<expression>^<digit>",
        "(<expression>)",
        "(<expression>)^{-<expression>}",
        r"\pm <expression>",
        r"<expression> \pm <expression>",
        r"\<function>(<expression>)",
        r"\<function> <expression>",
        r"\<function>{<expression>}",
        r"\<function>^{-1}(<expression>)",
        r"\log_{<expression>} <expression>",
        r"\binom{<expression>}{<expression>}",
        r"{<expression> \choose <expression>}",
        "<expression>!",
        "|<expression>|",
        r"\lfloor <expression> \rfloor",
        r"\left\lceil <expression> \right\rceil",
        r"\max(<expression>, <expression>)",
        r"\gcd(<expression>, <expression>)",
        "10^{<integer>}",
        "<integer>^{<integer>^{<integer>}}",
        "<expression>%",
        r"<expression>^\circ",
        r"\<function> <expression> / <expression>",
        r"\int_{<expression>}^{<expression>} <expression> dx",
        r"\sum_{n=<expression>}^{<expression>} <expression>",
        r"<expression> \pmod{<expression>}",
        r"\vec{<name>} \times <expression>",
        r"\infty",
        r"-\infty",
        "<nested>",
    ),
    "function": (
        *"sin cos tan cot sec csc sinh cosh tanh arcsin arctan exp ln log lg sqrt cbrt abs floor ceil".split(),
    ),
    "name": (
        *"x y n i e f k C".split(),
        r"\pi",
        r"\theta",
        "x_<integer>",
        "a_{<name>}",
        "x'",
        "f(<name>)",
        r"\overline{AB}",
        r"\hat{p}",
        "AB",
        "xyz",
    ),
    # units, number_words, spelled: words beside and instead of numbers
    "unit": (
        *"m A g s L N J W V C K km cm^2 m/s kg dollars apples % percent degrees hours mph \u00b0C ft in".split(),
        "per hour",
        "square feet",
        "m^{<integer>}",
        "cm^{-<integer>}",
        r"\text{ m/s}^2",
        "of the <words>",
    ),
    "scale": (*"thousand million billion dozen hundred k M B T pair times percent half".split(),),
    "approximately": ("about", r"\approx", "~", "at least", "roughly", "exactly", "less than", "between", "not"),
    "words": (
        "twelve",
        "minus two hundred and five",
        "seven point <words>",
        "one and a half",
        "<integer> hundred <scale>",
        "<scale> <scale> <scale>",
        "yes",
        "Paris",
        "the <words>",
        "two thirds of <words>",
        "half a dozen <unit>",
    ),
    "none": ("none", r"\emptyset", "no solution", "DNE", "undefined", "{}", "empty set"),
    "choice": ("A", "(B)", "C) <value>", r"\text{(D)}", "A and C", "B or D", "A. <value>", "ACD", "A < B < C"),
    "parts": (
        "<number> ft <number> in",
        "<number> hours and <number> minutes",
        "$<number> and <number> cents",
        "<number>'<number>\"",
        "<number> m, <number> cm",
    ),
}
"""The forms of each reader by name. `<name>` is a form of that name; the first form of each ends soon."""
_NESTED = (
    (r"\sqrt{", "}"),
    ("(", ")"),
    (r"\frac{1}{", "}"),
    ("2^{", "}"),
    (r"\sin(", ")"),
    (r"\{", r"\}"),
    ("-", ""),
    ("", "!"),
    ("|", "|"),
    (r"\left(", r"\right)"),
    (r"\text{", "}"),
    (r"\boxed{", "}"),
    ("1 = ", ""),
    ("x < ", ""),
    ("1 + ", ""),
    ("", " or 2"),
    ("", ", 3"),
    ("", "_1"),
    ("", "'"),
    (r"\log_{2", "} 3"),
    (r"\overline{", "}"),
    ("", "%"),
    ("", ":1"),
    (r"1.\overline{3}", ""),
    ("twenty ", ""),
    ("", " million"),
)
"""What is written around a value many times."""
_DEPTHS = (3, 10, 30, 41, 100, 300, 800)
_DIGITS = (20, 61, 310, 401, 1300, 4300, 4301, 5000)
_DEEPEST = 6
_FORM = re.compile(r"<(\w+)>")


_OF_ANSWERS = tuple("value scalar number expression relation region list bracket ratio date words choice parts".split())
"""Forms of whole answers."""


class _Writer:
    """Writes forms of the grammar. Each byte is a choice; without bytes the first form is chosen, which ends."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def one_of(self, options: Sequence[T]) -> T:
        return options[next(self._bytes, 0) % len(options)]

    def form(self, name: str, depth: int = 0) -> str:
        if name == "digits":
            return self.one_of("123456789") * self.one_of(_DIGITS)
        if name == "nested":
            (left, right), times = self.one_of(_NESTED), self.one_of(_DEPTHS)
            return left * times + self.form(self.one_of(("expression", "value")), depth + 1) + right * times
        if name not in GRAMMAR:
            return f"<{name}>"  # a tag
        chosen = self.one_of(GRAMMAR[name]) if depth < _DEEPEST else GRAMMAR[name][0]
        return _FORM.sub(lambda inner: self.form(inner.group(1), depth + 1), chosen)


def texts_of(data: bytes) -> tuple[str, str]:
    """A reference answer and a completion, for any bytes. In half of the cases both are forms of one reader, so that
    they are compared."""
    writer = _Writer(data)
    name = writer.one_of(_OF_ANSWERS)
    completion = writer.form("completion") if writer.one_of((False, True)) else boxed(writer.form(name))
    return writer.form(name), completion


def read_all(reference: str, completion: str) -> None:
    """Read two texts with every reader here. Computer algebra says of each comparison yes, no, or nothing."""
    said = (True, False, None)[len(completion) % 3]
    for answer in dict.fromkeys((reference, completion)):
        fast_reading("1+1?", answer, completion, False)
        reference_readings(answer)
        verdict_by(lambda *_: said, lambda *_: bool(said), answer, completion, bool(said))
    problem = Problem("p", "Which? A) 1 B) 2 C) 3 D) 4", reference, metadata={"error": reference})
    for rule in (NumericRule(), NumericRule(absolute_field="error"), ExactRule(), ChoiceRule()):
        rule.objection(problem)
        rule.verdict(problem, completion)
    other_answers.differ(reference, completion)
    other_answers._states_another(reference, completion)
    other_answers._gives_several(completion, reference)
    other_answers._stated(completion)


def place_of(error: Exception) -> str:
    """What was raised, and the last function of the packages in which it was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "cooper_" in frame.filename]
    return f"{type(error).__name__} in {frames[-1].filename.rpartition('/')[2]}:{frames[-1].name}"


def main(texts: int, seed: int = 0) -> None:
    draw, faults, seen = random.Random(seed), Counter[str](), set[int]()
    slowest, start = (0.0, ("", "")), time.process_time()
    for number in count():
        if len(seen) >= texts:
            break
        reference, completion = texts_of(draw.randbytes(64))
        seen |= {hash(reference), hash(completion)}
        before = time.process_time()
        try:
            read_all(reference, completion)
        except Exception as error:  # noqa: BLE001 - every one is a finding
            place = place_of(error)
            faults[place] += 1
            if faults[place] == 1:
                print(
                    f"{place} (pair {number}): {error!s:.60}\n  {reference[:150]!r} / {completion[:150]!r}", flush=True
                )
        if number % 10_000 == 9_999:
            print(f"… {len(seen)} texts, {faults.total()} faults", flush=True)
        slowest = max(slowest, (time.process_time() - before, (reference[:150], completion[:150])))
    print(f"{len(seen)} texts, seed {seed}, {time.process_time() - start:.0f} CPU seconds: {faults.total()} faults")
    for place, times in faults.most_common():
        print(f"  {times} {place}")
    print(f"slowest: {slowest[0]:.2f} CPU seconds for {slowest[1]!r}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
