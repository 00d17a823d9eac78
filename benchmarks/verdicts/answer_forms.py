"""Laws of the rule: one value in all its forms and places is never `wrong`, and its neighbours are never `correct`.

    python benchmarks/verdicts/answer_forms.py --pairs 20000 --seed 0

For each type of value, a table has its forms (ways to write it) and its neighbours (the smallest changes that make it
another value). Every form is an answer to every form, in every place where people write answers. The command prints the
share of each verdict by type and place as a table in Markdown, and every pair that breaks a law.
"""

import argparse
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cooper_verify.rules.verdicts.symbolic import maths_verdict


@dataclass(frozen=True)
class Value:
    """A value of a type. Forms and neighbours are LaTeX; those in `prose` and `other_prose` stand without dollars."""

    forms: list[str]
    neighbours: list[str]
    prose: list[str] = field(default_factory=list)
    other_prose: list[str] = field(default_factory=list)


PLACES = {
    "boxed": [r"\boxed{%s}", r"So $\boxed{%s}$.", "<think>It may be 4.</think>\n\\boxed{%s}", r"\boxed{%s}<|im_end|>"],
    "stated": ["The answer is %s.", "**Answer:** %s", "So far 7.\n#### %s", "The final answer is %s."],
    "last sentence": ["First we add. So the result is %s.", "We divide by 3. Therefore, it is %s."],
    "bare": ["%s"],
}
_WORDS = {2: "two", 3: "three", 7: "seven", 12: "twelve", 21: "twenty-one", 40: "forty"}


def _numbers(draw: random.Random) -> Value:
    n = draw.choice([*_WORDS, draw.randint(3, 99), draw.randint(1000, 99999)])
    forms = [f"{n}", f"{n:,}", f"{n}.0", rf"\mathbf{{{n}}}", rf"\, {n}", f"x = {n}", rf"\text{{{n}}}"]
    neighbours = [f"-{n}", f"{n + 1}", f"{n}0", f"{n}.5", rf"{n}\pi", f"{n}^2", rf"\frac{{1}}{{{n}}}", rf"\sqrt{{{n}}}"]
    neighbours += [
        f"2x = {n}",
        f"x^2 = {n}",
        f"x + 1 = {n}",
        f"-x = {n}",
        f"x > {n}",
        f"({n}, {n + 1})",
        f"{n}x",
        f"- {n}",
    ]
    neighbours += [
        rf"|x| = {n}",
        f"2AB = {n}",
        rf"\frac{{x}}{{2}} = {n}",
        rf"{n} \text{{ or }} {n + 1}",
        f"{n + 2}!",
        f"[{n - 1}, {n}]",
    ]
    others = [f"{n} million", f"{n} or {n + 1}", f"not {n}", f"at least {n}", f"between {n} and {n + 5}", f"{n} dozen"]
    others += [f"before {n}", f"since {n}", f"should have been {n}", f"{n} ❌", f"{n}'s square"]
    others += [f"{n} pi", f"{n} and a half", f"half of {n}", f"about {n}", f"{n} BC", f"log {n}"]
    return Value(forms, neighbours, [_WORDS[n]] if n in _WORDS else [f"{n} apples"], others)


def _fractions(draw: random.Random) -> Value:
    a, b = draw.choice([(3, 4), (7, 2), (5, 8), (9, 5), (2, 3), (11, 6), (1, 9)])
    forms = [
        rf"\frac{{{a}}}{{{b}}}",
        f"{a}/{b}",
        rf"\dfrac{{{a}}}{{{b}}}",
        rf"\frac{{{3 * a}}}{{{3 * b}}}",
        f"x = {a}/{b}",
    ]
    forms += [rf"\sfrac{{{a}}}{{{b}}}", rf"{{{a} \over {b}}}"]
    forms += [rf"\frac{{-{a}}}{{-{b}}}"] + ([rf"\frac{a}{b}"] if a < 10 else [])
    forms += [f"{a / b}"] if b in (2, 4, 5, 8) else []
    forms += [rf"{a // b}\frac{{{a % b}}}{{{b}}}", f"{a // b} {a % b}/{b}"] if a > b else []
    neighbours = [
        rf"\frac{{{b}}}{{{a}}}",
        rf"-\frac{{{a}}}{{{b}}}",
        rf"\frac{{{a + 1}}}{{{b}}}",
        rf"\frac{{{a}}}{{{b}}}x",
    ]
    return Value(forms, [*neighbours, f"{a}:{b + 1}", f"({a}, {b})", f"{a}, {b}", rf"\frac{{-{a}}}{{{b}}}"])


def _decimals(draw: random.Random) -> Value:
    n, d = draw.randint(1, 99), draw.choice(["5", "05", "25", "07"])
    forms = [f"{n}.{d}", rf"{n}{{,}}{d}", f"{n}.{d}0", f"x = {n}.{d}"]
    return Value(forms, [f"{n}{d}", f"{n}, {d}", f"{n}.{d}1", rf"{n + 1}{{,}}{d}", f"{n}/{d}", f"-{n}.{d}"])


def _quantities(draw: random.Random) -> Value:
    n = draw.randint(2, 60)
    unit, less, factor, other = draw.choice([
        ("km", "m", 1000, "miles"), ("kg", "g", 1000, "pounds"), ("hours", "minutes", 60, "days"),
        ("kJ", "J", 1000, "MJ"),
        ("m/s", "cm/s", 100, "km/h"), ("litres", "ml", 1000, "gallons"), ("kW", "W", 1000, "MW"),
        ("feet", "inches", 12, "m"),
    ])  # fmt: skip
    forms = [
        rf"{n}\text{{ {unit}}}",
        rf"{n}\,\mathrm{{{unit}}}",
        rf"{n * factor}\text{{ {less}}}",
        rf"{n}~\text{{{unit}}}",
    ]
    neighbours = [
        rf"{n}\text{{ {other}}}",
        rf"{n}\text{{ {less}}}",
        rf"{n + 1}\text{{ {unit}}}",
        rf"-{n}\text{{ {unit}}}",
    ]
    others = [f"{n} {other}", f"{n} {less}", f"{n + 1} {unit}", f"{n} thousand {unit}", f"{n} {unit} or more"]
    return Value(forms, neighbours, [f"{n} {unit}", f"{n * factor} {less}"], others)


def _percentages(draw: random.Random) -> Value:
    n = draw.choice([12.5, 25, 40, 7, 13.2, 99])
    return Value(
        [rf"{n}\%", rf"{n} \%", f"{n}"], [rf"{n + 1}\%", rf"-{n}\%", rf"{n}\text{{ ‰}}"], [f"{n} percent", f"{n}%"]
    )


def _ratios(draw: random.Random) -> Value:
    a, b, c = draw.sample([1, 2, 3, 5, 7, 11], 3)
    forms = [f"{a}:{b}:{c}", f"{a} : {b} : {c}", f"{2 * a}:{2 * b}:{2 * c}"]
    return Value(forms, [f"{a}:{c}:{b}", f"{b}:{a}:{c}", f"{a}:{b}", f"({a}, {b}, {c})", f"{a}:{b}:{c + 13}"])


def _tuples(draw: random.Random) -> Value:
    a, b, c = draw.sample(range(1, 30), 3)
    forms = [f"({a}, {b}, {c})", f"({a},{b},{c})", rf"\left({a}, {b}, {c}\right)", rf"({a}, {2 * b}/2, {c}.0)"]
    forms += [rf"\begin{{pmatrix}} {a} \\ {b} \\ {c} \end{{pmatrix}}", rf"\langle {a}, {b}, {c} \rangle"]
    neighbours = [
        f"({a}, {c}, {b})",
        rf"\{{{a}, {b}, {c}\}}",
        f"({a}, {b})",
        f"({a}, {b}, -{c})",
        f"{c}",
        f"({a}, {b}, {c}, {c})",
    ]
    return Value(forms, [*neighbours, rf"\{{{c}, {b}, {a}\}}"])


def _pairs(draw: random.Random) -> Value:
    a, b = sorted(draw.sample(range(-9, 30), 2))
    forms = [f"({a}, {b})", f"({a},{b})", rf"\left({a}, {b}\right)"]
    return Value(
        forms,
        [
            f"[{a}, {b}]",
            f"({a}, {b}]",
            rf"\{{{a}, {b}\}}",
            f"({a}, {b + 1})",
            f"{b}",
            f"x = {a} \\text{{ or }} x = {b}",
        ],
    )


def _vectors(draw: random.Random) -> Value:
    a, b, c = draw.sample(range(2, 30), 3)
    forms = [
        f"({a}, {b}, -{c})",
        rf"{a}\mathbf{{i}}+{b}\mathbf{{j}}-{c}\mathbf{{k}}",
        rf"{b}\mathbf{{j}}+{a}\mathbf{{i}}-{c}\hat k",
    ]
    neighbours = [
        rf"{b}\mathbf{{i}}+{a}\mathbf{{j}}-{c}\mathbf{{k}}",
        rf"{a}\hat i+{b}\hat j+{c}\hat k",
        f"{a}i+{b}j-{c}",
    ]
    return Value(forms, [*neighbours, f"({a}, {b}, {c})", f"{a}i+{b}j"])


def _bases(draw: random.Random) -> Value:
    digits = "1" + "".join(draw.choice("01") for _ in range(4))
    forms = [f"{digits}_2", f"{digits}_{{2}}", f"({digits})_2", rf"{digits}_{{\text{{two}}}}"]
    return Value(forms, [f"{digits}_3", f"{digits}_{{10}}", f"{digits}1_2", rf"{digits}_{{\text{{three}}}}"])


def _angles(draw: random.Random) -> Value:
    n = draw.choice([15, 36, 45, 72, 150])
    forms = [rf"{n}^\circ", rf"{n}\text{{ degrees}}", rf"\frac{{{n}\pi}}{{180}}\text{{ rad}}"]
    return Value(forms, [rf"{n}\text{{ rad}}", rf"{n + 1}^\circ", rf"{n}^\circ\text{{C}}", rf"-{n}^\circ"])


def _matrices(draw: random.Random) -> Value:
    a, b, c, d = draw.sample(range(1, 20), 4)

    def matrix(*rows: str, name: str = "pmatrix") -> str:
        return rf"\begin{{{name}}} {rows[0]} \\ {rows[1]} \end{{{name}}}"

    forms = [matrix(f"{a} & {b}", f"{c} & {d}"), matrix(f"{a}&{b}", f"{c}&{d}", name="bmatrix")]
    return Value(
        forms, [matrix(f"{a} & {c}", f"{b} & {d}"), matrix(f"{a} & {b}", f"{c} & -{d}"), matrix(f"{a}", f"{b}"), f"{a}"]
    )


def _lists(draw: random.Random) -> Value:
    a, b, c = draw.sample(range(1, 60), 3)
    forms = [f"{a}, {b}, {c}", f"{c}, {a}, {b}", rf"\{{{a}, {b}, {c}\}}", rf"{a}, {b} \text{{ and }} {c}"]
    forms += [f"x = {a}, x = {b}, x = {c}", rf"x = {a} \text{{ or }} x = {b} \text{{ or }} x = {c}"]
    neighbours = [
        f"{a}, {b}",
        f"{a}, {b}, {c + 61}",
        f"{a}, {b}, -{c}",
        f"{a}, {b}, {b}, {c}",
        f"({c}, {a}, {b})",
        f"{a}",
    ]
    return Value(forms, neighbours, [f"{a}, {b} and {c}"], [f"{a} and {b}"])


def _repeats(draw: random.Random) -> Value:
    a, b = draw.sample(range(1, 60), 2)
    return Value([f"{a}, {a}, {b}", f"{b}, {a}, {a}"], [f"{a}, {b}", f"{a}, {b}, {b}", f"{b}", f"{a}, {a}, {a}, {b}"])


def _intervals(draw: random.Random) -> Value:
    a, b = sorted(draw.sample(range(-20, 40), 2))
    forms = [
        f"({a}, {b}]",
        rf"{a} < x \le {b}",
        rf"{b} \geq x > {a}",
        rf"x \in ({a}, {b}]",
        rf"x > {a} \text{{ and }} x \le {b}",
    ]
    forms += [f"]{a}, {b}]", rf"\left({a}, {b}\right]", rf"\{{x \mid {a} < x \leqslant {b}\}}"]
    neighbours = [
        f"[{a}, {b}]",
        f"]{a}, {b}[",
        f"[{a}, {b})",
        f"({a}, {b + 1}]",
        rf"\{{{a}, {b}\}}",
        f"{a}, {b}",
        rf"{a} \le x \le {b}",
        f"{b}",
    ]
    return Value(
        forms, [*neighbours, rf"x = {a} \text{{ or }} x = {b}", rf"x < {a} \text{{ or }} x \ge {b}", rf"x \le {b}"]
    )


def _unions(draw: random.Random) -> Value:
    a, b = sorted(draw.sample(range(-20, 40), 2))
    forms = [
        rf"(-\infty, {a}) \cup ({b}, \infty)",
        rf"x < {a} \text{{ or }} x > {b}",
        rf"({b}, \infty) \cup (-\infty, {a})",
    ]
    forms += [rf"x \in (-\infty, {a}) \cup ({b}, +\infty)", rf"\mathbb{{R}} \setminus [{a}, {b}]"]
    neighbours = [
        rf"(-\infty, {a}] \cup ({b}, \infty)",
        f"({a}, {b})",
        rf"{a} < x < {b}",
        rf"(-\infty, {a})",
        f"{a}, {b}",
    ]
    return Value(forms, [*neighbours, rf"x < {a} \text{{ and }} x > {b}"])


def _lines(draw: random.Random) -> Value:
    m, c = draw.sample(range(2, 20), 2)
    forms = [f"y = {m}x + {c}", f"y={m}x+{c}", f"y = {c} + {m}x", f"y = {m} x + {c}"]
    neighbours = [
        f"y = {m}x - {c}",
        f"y = -{m}x + {c}",
        f"2y = {m}x + {c}",
        f"y = {c}x + {m}",
        f"x = {m}y + {c}",
        f"{c}",
    ]
    return Value(forms, [*neighbours, f"y > {m}x + {c}", f"y^2 = {m}x + {c}"])


def _equations(draw: random.Random) -> Value:
    a, b, c = draw.sample(range(2, 20), 3)
    forms = [f"{a}x + {b}y = {c}", f"{b}y + {a}x = {c}", f"{a}x + {b}y - {c} = 0", f"{2 * a}x + {2 * b}y = {2 * c}"]
    return Value(forms, [f"{a}x - {b}y = {c}", f"{b}x + {a}y = {c}", f"{a}x + {b}y = {c + 1}", f"{c}", f"x = {c}"])


def _functions(draw: random.Random) -> Value:
    a, b = draw.sample(range(2, 20), 2)
    forms = [f"f(x) = {a}x + {b}", f"f(x) = {b} + {a} x", f"f(t) = {a}t + {b}"]
    return Value(forms, [f"f(x) = {a}x - {b}", f"2f(x) = {a}x + {b}", f"f(x) = {b}x + {a}", f"f(x) = {a}x^2 + {b}"])


def _assignments(draw: random.Random) -> Value:
    a, b = draw.sample(range(2, 40), 2)
    forms = [f"x = {a}, y = {b}", f"y = {b}, x = {a}", f"(x, y) = ({a}, {b})", rf"x = {a} \text{{ and }} y = {b}"]
    neighbours = [f"x = {b}, y = {a}", f"x = {a}, y = {b + 1}", f"(x, y) = ({b}, {a})", f"x = {a}", f"{b}"]
    return Value(forms, neighbours)


EXPRESSIONS = [
    ([r"\frac{n(n+1)}{2}", "n(n+1)/2", "n*(n+1)/2", r"\frac{n^2+n}{2}"],
     [r"\frac{n(n-1)}{2}", r"\frac{N(N+1)}{2}", "n(n+1)"]),
    ([r"2\pi r", "2*pi*r", r"2 \pi r", "2πr"], [r"2\pi R", r"\pi r", r"2\pi", r"2 p i r"]),
    ([r"\frac{V^2}{R}", "V^2/R", "V**2/R", r"\dfrac{V^{2}}{R}"], [r"\frac{v^2}{r}", r"\frac{V}{R}", r"\frac{R}{V^2}"]),
    ([r"\sqrt{2}", r"\sqrt 2", "sqrt(2)", "√2", r"\frac{2}{\sqrt{2}}", r"2^{1/2}"],
     [r"-\sqrt{2}", "2", r"\sqrt{3}", r"\sqrt[3]{2}"]),
    ([r"\frac{\pi}{4}", "pi/4", "π/4", r"\dfrac{\pi}{4}", r"\frac{1}{4}\pi"],
     [r"\frac{4}{\pi}", r"-\frac{\pi}{4}", r"\frac{\pi}{3}"]),
    ([r"e^x", "exp(x)", r"\exp(x)", r"e^{x}"], ["e^{-x}", "x^e", "ex", r"10^x"]),
    ([r"x^2+1", "x**2+1", r"1+x^{2}", "x² + 1"], ["x^2-1", "x^2", "2x+1", "X^2+1", "y^2+1"]),
    ([r"\sin^2 x", r"(\sin x)^2", r"1-\cos^2 x"], [r"\sin x^2", r"\cos^2 x", r"\sin x"]),
    ([r"\lambda", "λ", r"\lambda "], [r"\Lambda", "l", r"\mu"]),
    ([r"\frac{GMm}{r^2}", r"\frac{GmM}{r^2}", "GMm/r^2"], [r"\frac{Gmm}{r^2}", r"\frac{GMm}{R^2}", r"\frac{GMm}{r}"]),
    ([r"3+2\sqrt{2}", r"(1+\sqrt{2})^2", r"2\sqrt{2}+3"], [r"3-2\sqrt{2}", r"3+\sqrt{2}", r"5\sqrt{2}"]),
    ([r"\log_2 x", r"\frac{\ln x}{\ln 2}"], [r"\ln x", r"\log_3 x", r"2\log x"]),
    ([r"\binom{n}{2}", r"\frac{n(n-1)}{2}", r"{n \choose 2}"], [r"\binom{m}{2}", r"\binom{n}{3}", r"\frac{n}{2}"]),
    ([r"\sin 30^\circ", r"\frac12", r"\cos 60^\circ"], [r"\sin 30", r"-\frac12", r"\cos 30^\circ"]),
    ([r"\theta", r"\vartheta", "θ"], [r"\Theta", r"\phi", "t"]),
    ([r"2x\,dx", r"2x\,\mathrm{d}x", "2x dx"], [r"2x\,dy", r"x\,dx", "2x"]),
    ([r"\binom52", r"\binom{5}{2}", r"\binom5{2}", r"\dbinom 5 2", r"{5 \choose 2}",
      "C(5,2)", "{}_5C_2"], [r"\binom51", r"\binom25", "52"]),
    ([r"0.\overline{3}", r"\frac13", r"\frac{1}{3}"], ["0.3", "0.33", r"0.\overline{4}", "3"]),
]  # fmt: skip
TEXTS = [
    (["Paris", r"\text{Paris}", "paris"], ["Lyon", "not Paris", "Paris or Lyon"]),
    (["yes", "Yes", r"\text{Yes}"], ["no", "No", "yes or no"]),
    (
        ["2024-01-05", "January 5, 2024", "5 January 2024", "Jan. 5th, 2024"],
        ["2024-01-06", "January 5, 2023", "May 1, 2024"],
    ),
    (["9 pm", "21:00", "9:00 p.m."], ["9 am", "8 pm", "9:30 pm"]),
    (["no solution", r"\emptyset", r"\varnothing", r"\text{no solution}"], ["0", "x = 1", "one solution"]),
    (["44 BC", "44 BCE"], ["44", "44 AD", "45 BC"]),
    (["noon", "12 noon", "12:00 pm"], ["midnight", "12:00 am", "1 pm"]),
    (["H2O", "H_2O", "H₂O"], ["H2O2", "HO", "h2o2"]),
    (["Ca(OH)2", "Ca(OH)_2", r"\text{Ca(OH)}_2"], ["Ca(OH)3", "CaOH2", "CA(OH)2"]),
    (["SO_4^{2-}", "SO4^{2-}", r"\mathrm{SO_4^{2-}}"], ["SO_4^{2+}", "SO_3^{2-}", "SO_4"]),
    (["CO2", "CO_2", r"\text{CO}_2"], ["Co2", "CO3", "CO"]),
    (["AaBb", r"\text{AaBb}"], ["AaBB", "aaBb", "AABB"]),
    (["21st century", "twenty-first century"], ["20th century", "twenty-second century"]),
    (["500 AD", "AD 500", "500 CE"], ["500 BC", "AD 600", "500"]),
    (["3 x 5", "3 × 5", "3x5"], ["3 x 6", "5 x 4", "3 x 5 x 2"]),
    (["3rd", "third", r"3^{\text{rd}}"], ["2nd", "13th", "4th"]),
    (["19th century", "nineteenth century"], ["18th century", "20th century"]),
    ([r"\angle ABC", "∠ABC"], [r"\angle BAC", r"\angle abc", r"\angle ABD"]),
    (["C > B > A", "A < B < C"], ["A > B > C", "C < B < A", "A, B, C"]),
]
OPTIONS = "ABCD"


def _divisions(draw: random.Random) -> Value:
    n, rest = draw.randint(10, 90), draw.randint(1, 9)
    forms = [rf"{n}\text{{ R }}{rest}", f"{n} R {rest}", rf"{n}\text{{ remainder }}{rest}"]
    return Value(forms, [f"{rest} R {n}", f"{n} R {rest + 1}", f"{n}", f"{rest}", rf"{n}\frac{{{rest}}}{{11}}"])


def _determinants(draw: random.Random) -> Value:
    a, b, c, d = draw.sample(range(1, 20), 4)
    while a * d - b * c in (0, a):  # its neighbours would be itself
        a, b, c, d = draw.sample(range(1, 20), 4)

    def table(rows: str, name: str = "vmatrix") -> str:
        return rf"\begin{{{name}}} {rows} \end{{{name}}}"

    forms = [table(rf"{a} & {b} \\ {c} & {d}"), table(rf"{a} & {c} \\ {b} & {d}")]
    return Value(forms, [table(rf"{a} & {b} \\ {c} & {d}", "pmatrix"), table(rf"{c} & {d} \\ {a} & {b}"), f"{a}"])


def _money(draw: random.Random) -> Value:
    n = draw.randint(3, 90)
    currencies = [
        ([rf"\${n}", rf"{n}\text{{ dollars}}", rf"{n}\text{{ USD}}"], [f"US${n}", f"{n} $"]),
        ([rf"{n}\text{{ €}}", rf"{n}\text{{ euros}}"], [f"€{n}", f"{n} €", f"{n} EUR"]),
        ([rf"{n}\text{{ AUD}}"], [f"A${n}", f"AU${n}"]),
        ([rf"{n}\text{{ reais}}"], [f"R${n}", f"R$ {n}"]),
        ([rf"{n}\text{{ zloty}}"], [f"{n} zł", f"{n} PLN"]),
        ([rf"{n}\text{{ lira}}"], [f"₺{n}", f"{n} liras"]),
    ]
    one, other = draw.sample(currencies, 2)
    if {*map(currencies.index, (one, other))} == {0, 2}:
        other = currencies[1]  # a dollar may be Australian
    return Value(one[0], other[0], one[1], other[1])


def _minutes(draw: random.Random) -> Value:
    n, minutes = draw.choice([7, 20, 50, 82]), draw.choice([6, 15, 30, 45])
    part = f"{minutes / 60:g}"[1:]
    forms = [rf"{n}^\circ {minutes}'", rf"{n}^{{\circ}}{minutes}^{{\prime}}", f"{n}°{minutes}'", rf"{n}{part}^\circ"]
    neighbours = [rf"{n}^\circ {minutes + 5}'", rf"{minutes}^\circ {n}'", rf"{n}.{minutes:02}1^\circ", rf"{n}^\circ"]
    return Value(forms, [*neighbours, rf"{n}^\circ {minutes}''", rf"-{n}^\circ {minutes}'"])


def _cases(draw: random.Random) -> Value:
    a, b, c = draw.sample(range(2, 30), 3)

    def cases(*rows: str) -> str:
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"

    one, other = f"{a}x & x > {c}", rf"{b} & x \le {c}"
    forms = [cases(one, other), cases(other, one), f"f(x) = {cases(one, other)}"]
    forms += [cases(rf"{a}x, & \text{{if }} x > {c},", rf"{b}, & \text{{if }} x \leq {c}.")]
    neighbours = [cases(f"{b} & x > {c}", rf"{a}x & x \le {c}"), cases(f"{a}x & x > {c + 1}", rf"{b} & x \le {c + 1}")]
    neighbours += [cases(f"{a}x & x > {c}", rf"{b + 1} & x \le {c}"), f"{a}x", f"{b}", f"-{cases(one, other)}"]
    return Value(forms, [*neighbours, cases(rf"{a}x & x \ge {c}", f"{b} & x < {c}"), cases(one, one)])


def _expressions(draw: random.Random) -> Value:
    return Value(*draw.choice(EXPRESSIONS))


def _texts(draw: random.Random) -> Value:
    forms, neighbours = draw.choice(TEXTS)
    return Value([], [], forms, neighbours)


def _options(draw: random.Random) -> Value:
    one, other = draw.sample(OPTIONS, 2)
    forms = [one, f"({one})", f"{one})", rf"\text{{{one}}}", rf"\textbf{{({one})}}"]
    return Value([], [], forms, [other, f"({other})", f"{one} or {other}", f"{one} and {other}", f"not {one}"])


TYPES: dict[str, Callable[[random.Random], Value]] = {
    "number": _numbers, "fraction": _fractions, "decimal": _decimals, "quantity": _quantities,
    "percentage": _percentages, "ratio": _ratios,
    "tuple": _tuples, "pair": _pairs, "matrix": _matrices, "list": _lists, "repeats": _repeats, "interval": _intervals,
    "union": _unions, "line": _lines, "equation": _equations, "function": _functions, "assignments": _assignments,
    "division": _divisions, "determinant": _determinants, "money": _money,
    "vector": _vectors, "base": _bases, "angle": _angles, "minutes": _minutes, "cases": _cases,
    "expression": _expressions, "text": _texts, "option": _options,
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    kind: str
    place: str
    reference: str
    completion: str
    is_same: bool


def pairs(count: int, seed: int) -> Iterator[Pair]:
    """Pairs of a reference and a completion: about half with the same value, half with a neighbour."""
    draw = random.Random(seed)
    kinds = list(TYPES)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        value = TYPES[kind](draw)
        is_same = draw.random() < 0.5
        reference, _ = draw.choice(_written(value.forms, value.prose))
        forms = (value.forms, value.prose) if is_same else (value.neighbours, value.other_prose)
        answer, is_latex = draw.choice(_written(*forms))
        if not is_same and draw.random() < 0.2:
            reference, (answer, is_latex) = answer, draw.choice(_written(value.forms, value.prose))
        # Words and letters count only where an answer is marked, or is all that there is.
        place = draw.choice([place for place in PLACES if kind not in ("text", "option") or place != "last sentence"])
        shown = f"${answer}$" if is_latex and place in ("stated", "last sentence") else answer
        yield Pair(kind, place, reference, draw.choice(PLACES[place]) % shown, is_same)


def _written(latex: list[str], prose: list[str]) -> list[tuple[str, bool]]:
    return [(text, True) for text in latex] + [(text, False) for text in prose]


def judged(count: int, seed: int) -> list[tuple[Pair, str]]:
    return [(pair, maths_verdict(pair.reference, pair.completion)) for pair in pairs(count, seed)]


def shares(found: list[tuple[Pair, str]]) -> dict[tuple[str, str], float]:
    """The share of `correct` among the pairs with the same value, by type and place."""
    total = Counter((pair.kind, pair.place) for pair, _ in found if pair.is_same)
    right = Counter((pair.kind, pair.place) for pair, verdict in found if pair.is_same and verdict == "correct")
    return {key: right[key] / count for key, count in total.items()}


def breaks(pair: Pair, verdict: str) -> bool:
    """Whether a verdict breaks a law."""
    return verdict == ("wrong" if pair.is_same else "correct")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = judged(options.pairs, options.seed)
    of = shares(found)
    print(f"| type | {' | '.join(PLACES)} |\n{'|---' * (len(PLACES) + 1)}|")
    for kind in TYPES:
        cells = [f"{of[kind, place]:.3f}" if (kind, place) in of else "–" for place in PLACES]
        print(f"| {kind} | {' | '.join(cells)} |")
    for place in PLACES:
        same = [verdict for pair, verdict in found if pair.is_same and pair.place == place]
        print(f"{place}: {same.count('correct') / len(same):.4f} of {len(same)}")
    for pair, verdict in found:
        if breaks(pair, verdict):
            print(f"{pair.kind}, {pair.place}: {pair.reference!r} {pair.completion!r} is {verdict}")


if __name__ == "__main__":
    main()
