r"""Formulas as trees: LaTeX and plain notation read whole, into the same tree, or not at all.

`\frac{n(n+1)}{2}`, `n*(n+1)/2` and `n(n + 1) / 2` have equal trees. Every character of a text belongs to a symbol of
its tree or to notation without meaning (spaces, `\left`, dollars). Letters keep their case. Letters in a row are a
product, unless they name a function, a constant or a Greek letter.
"""

from collections.abc import Callable
from fractions import Fraction

from cooper_verify.rules.quantities.number import MOST_FIGURES
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.values.tokens import (
    CONSTANTS,
    FUNCTIONS,
    GREEK,
    SAME_FUNCTION,
    NoFormulaError,
    tokens,
    written_alike,
)
from cooper_verify.rules.values.tree import OF_A_SET, Tree, canonical, constant, inverse, negative, number

_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan"}
TRIGONOMETRIC = {"sin", "cos", "tan", "cot", "sec", "csc"}
INVERSE_TRIGONOMETRIC = {"arcsin", "arccos", "arctan"}
_SIGNS = ("+", "-", r"\pm", "\u00b1", r"\mp", "\u2213")
_APPLIED = set("fghFGP")
"""Letters that are functions in front of a bracket."""
_DEEPEST = 40
"""Groups, functions and roots in each other."""
_TALLEST = 200
"""Levels of a tree: whoever walks it down needs two of Python's 1,000 frames for each."""
_LONGEST = 2000
"""Characters of a formula. Longer ones are compared by their spelling alone."""


@text_cache(4096)
def formula(text: str) -> Tree | None:
    """The tree of a formula; None if the text is not one, as a whole."""
    if len(text) > _LONGEST:
        return None
    try:
        tree = _Reader(written_alike(text)).whole()
    except (NoFormulaError, ZeroDivisionError):
        return None
    return tree if _height(tree) <= _TALLEST else None


def _height(tree: Tree) -> int:
    """The levels of a tree, counted without recursion."""
    levels, level = 0, [tree]
    while level:
        levels, level = levels + 1, [part for upper in level for part in upper[1:] if isinstance(part, tuple)]
    return levels


class _Reader:
    """A recursive-descent parser of one formula. Each method reads from the next token on."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._place = 0
        self._depth = 0
        self._bars = 0

    def whole(self) -> Tree:
        tree = self._sum()
        if self._place < len(self._tokens):
            raise NoFormulaError
        return tree

    def _sign(self, ahead: int = 0) -> str:
        """The text of the next token if it is a sign, a number or a command with its backslash; else empty."""
        place = self._place + ahead
        if place >= len(self._tokens):
            return ""
        kind, written, _ = self._tokens[place]
        return written if kind in ("sign", "number", "word") else "\\" + written

    def _next(self) -> tuple[str, str, bool]:
        if self._place >= len(self._tokens):
            raise NoFormulaError
        self._place += 1
        return self._tokens[self._place - 1]

    def _expect(self, sign: str) -> None:
        if self._next()[:2] != ("sign", sign):
            raise NoFormulaError

    def _accept(self, *signs: str) -> str:
        sign = self._sign()
        if sign and sign in signs:
            self._place += 1
            return sign
        return ""

    def _sum(self) -> Tree:
        terms = [self._signed(self._accept(*_SIGNS))]
        while sign := self._accept(*_SIGNS):
            terms.append(self._signed(sign))
        return terms[0] if len(terms) == 1 else ("+", *terms)

    def _signed(self, sign: str) -> Tree:
        while second := self._accept("+", "-"):  # 2 + -3
            sign = {"": second, "+": second, "-": "-" if second == "+" else "+"}.get(sign, sign)
        term = self._product()
        if sign == "-":
            return negative(term)
        return ("+-", term) if sign in _SIGNS[2:] else term

    def _product(self) -> Tree:
        factors = [self._factor()]
        divided = False
        while True:
            if self._accept("*"):
                factors.append(self._signed_factor())
                divided = False
            elif self._accept("/"):
                factors.append(inverse(self._signed_factor()))
                divided = True
            elif self._begins_factor():
                if divided and not self._tokens[self._place][2]:
                    raise NoFormulaError  # 1/2x is read in two ways
                kind, written, spaced = self._tokens[self._place]
                if kind == "number" and self._tokens[self._place - 1][0] == "number":
                    factors[-1] = self._mixed(factors[-1])
                    continue
                factors.append(self._factor())
                value = constant(factors[-1]) if (kind, written, spaced) == ("sign", "(", True) else None
                if value is not None and value == constant(("*", *factors[:-1])):
                    raise NoFormulaError  # 0.5 (1/2) is one number, given twice
            else:
                return factors[0] if len(factors) == 1 else ("*", *factors)

    def _mixed(self, whole: Tree) -> Tree:
        """`1 1/2`, of which the 1 was read."""
        top = self._integer(self._next()[1])
        self._expect("/")
        kind, bottom, _ = self._next()
        if kind != "number" or whole[0] != "number" or whole[2] or whole[1].denominator != 1:
            raise NoFormulaError
        return number(whole[1] + Fraction(top, self._integer(bottom)))

    def _integer(self, written: str) -> int:
        if not written.isdecimal() or len(written) > MOST_FIGURES:
            raise NoFormulaError
        return int(written)

    def _signed_factor(self) -> Tree:
        return negative(self._factor()) if self._accept("-") else self._factor()

    def _begins_factor(self) -> bool:
        if self._place >= len(self._tokens):
            return False
        kind, written, _ = self._tokens[self._place]
        if kind == "sign":
            return written in "([{" or (written == "|" and not self._bars)
        return kind != "command" or written not in ("pm", "mp", "rfloor", "rceil", "choose")

    def _factor(self) -> Tree:
        base = self._base()
        while True:
            if self._accept("^"):
                base = ("^", base, self._deeper(self._script))
            elif self._accept("!"):
                base = ("factorial", base)
            elif self._accept("\u00b0"):
                base = ("degrees", base)
            elif self._accept("%"):
                base = ("*", base, number(Fraction(1, 100)))
            else:
                return base

    def _script(self) -> Tree:
        """What stands in an exponent: a group in braces, a bracket, a signed number or a single symbol."""
        if self._accept("{"):
            tree = self._sum()
            self._expect("}")
            return tree
        if self._accept("-"):
            if self._sign() == "-":
                raise NoFormulaError
            return negative(self._script())
        kind, written, _ = self._tokens[self._place] if self._place < len(self._tokens) else ("", "", False)
        if kind == "number" and "," in written:
            raise NoFormulaError
        return self._base()

    def _argument(self) -> Tree:
        r"""An argument of `\frac` and the like: a group in braces, or one figure or symbol."""
        if self._accept("{"):
            tree = self._sum()
            self._expect("}")
            return tree
        kind, written, _ = self._next()
        if kind == "number" and len(written) > 1:
            if not written.isdecimal():
                raise NoFormulaError
            self._place -= 1
            self._tokens[self._place] = (kind, written[1:], False)  # \frac12
            return number(int(written[0]))
        self._place -= 1
        return self._base()

    def _base(self) -> Tree:
        """A number, a name, or what holds others."""
        return self._deeper(self._symbol)

    def _deeper(self, read: Callable[[], Tree]) -> Tree:
        """Every way down leads through here."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NoFormulaError
        tree = read()
        self._depth -= 1
        return tree

    def _symbol(self) -> Tree:
        kind, written, _ = self._next()
        if kind == "number":
            return self._number(written)
        if kind == "word":
            return self._name(written)
        if kind == "command":
            return self._command(written)
        if written in "([{":
            return self._group({"(": ")", "[": "]", "{": "}"}[written])
        if written == "|":
            self._bars += 1
            tree = self._sum()
            self._bars -= 1
            self._expect("|")
            return ("abs", tree)
        raise NoFormulaError

    def _group(self, closing: str) -> Tree:
        bars, self._bars = self._bars, 0
        tree = self._sum()
        self._bars = bars
        self._expect(closing)
        return tree

    def _number(self, written: str) -> Tree:
        digits = written.replace(",", "")
        if len(digits) > MOST_FIGURES:
            raise NoFormulaError
        if self._sign() in (r"\overline", r"\dot", r"\bar") and "." in digits:
            return self._repeating(digits)
        value = number(Fraction(digits.rstrip(".") or "0"), "." in digits)
        if self._accept("_"):
            raise NoFormulaError  # a base
        if self._sign() == r"\frac" and "." not in digits:
            fraction = self._factor()
            part = constant(fraction)
            if part is None or fraction[0] != "*" or not 0 < part < 1:
                return ("*", value, fraction)
            return number(value[1] + part)  # a mixed number
        return value

    def _repeating(self, digits: str) -> Tree:
        r"""`0.1\overline{6}`, of which `0.1` was read."""
        dots = ""
        while self._accept(r"\overline", r"\dot", r"\bar"):
            has_brace = self._accept("{")
            dots += self._next()[1]
            if has_brace:
                self._expect("}")
        if not dots.isdecimal():
            raise NoFormulaError
        before = digits.partition(".")[2]
        if self._place < len(self._tokens) and self._tokens[self._place][0] == "number":
            raise NoFormulaError
        share = Fraction(int(dots), (10 ** len(dots) - 1) * 10 ** len(before))
        return number(Fraction(digits.rstrip(".") or "0") + share)

    def _name(self, letter: str) -> Tree:
        name = letter + self._index()
        if name == "e":
            return ("e",)
        if letter in _APPLIED and self._sign() == "(":
            self._place += 1
            return ("apply", name, *self._arguments(")"))
        return ("name", name)

    def _index(self) -> str:
        """The index and the primes of a name."""
        index = ""
        while self._accept("_"):
            kind, written, _ = self._next()
            if (kind, written) == ("sign", "{"):
                parts: list[str] = []
                while not self._accept("}"):
                    parts.append(self._next()[1])
                written = "".join(parts)
            elif kind == "number" and len(written) > 1 and written.isdecimal():
                self._place -= 1
                self._tokens[self._place] = (kind, written[1:], False)  # x_12 is x_1 times 2
                written = written[0]
            index += f"_{written}"
        while self._accept("'"):
            index += "'"
        return index

    def _arguments(self, closing: str) -> list[Tree]:
        trees = [self._sum()]
        while self._accept(","):
            trees.append(self._sum())
        self._expect(closing)
        return trees

    def _command(self, name: str) -> Tree:
        name = SAME_FUNCTION.get(name, name)
        if name in FUNCTIONS:
            return self._function(name)
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in GREEK:
            return ("name", f"\\{name}{self._index()}")
        if reader := _COMMANDS.get(name):
            return reader(self)
        if (function := name[:-1]) in TRIGONOMETRIC and self._place:
            self._tokens.insert(self._place, ("word", name[-1], False))  # \sinx
            return self._function(function)
        raise NoFormulaError

    def _fraction(self) -> Tree:
        top, bottom = self._argument(), self._argument()
        if all(_is_differential(side) for side in (top, bottom)):
            raise NoFormulaError  # dy/dx is no quotient of products
        return ("*", top, inverse(bottom))

    def _binomial(self) -> Tree:
        return ("binomial", self._argument(), self._argument())

    def _accented(self) -> Tree:
        r"""A name with an accent: `\vec{a}`, `\overline{AB}`, `\hat p`."""
        accent = self._tokens[self._place - 1][1]
        if not self._accept("{"):
            return ("name", f"{accent}({self._next()[1]}){self._index()}")
        parts: list[str] = []
        while not self._accept("}"):
            kind, written, _ = self._next()
            if kind not in ("word", "command"):
                raise NoFormulaError
            parts.append(written)
        return ("name", f"{accent}({''.join(parts)}){self._index()}")

    def _floor(self) -> Tree:
        opening = self._tokens[self._place - 1][1]
        tree = self._sum()
        if self._next()[:2] != ("command", f"r{opening[1:]}"):
            raise NoFormulaError
        return (opening[1:], tree)

    def _function(self, name: str) -> Tree:
        if name == "sqrt":
            return self._root()
        if name == "cbrt":
            radicand = self._group(")") if self._accept("(") else self._argument()
            return _root_of(radicand, number(3))
        base: Tree | None = self._script() if name == "log" and self._accept("_") else None
        power: Tree | None = self._script() if self._accept("^") else None
        if name in OF_A_SET:
            opening = self._accept("(", "{", "\u2983")
            if power or not opening:
                raise NoFormulaError
            return (name, *self._arguments({"(": ")", "{": "}"}.get(opening, "\u2984")))
        if power == number(-1) and name in _INVERSE:
            name, power = _INVERSE[name], None
        if self._sign() in ("(", "["):
            self._place += 1
            argument = self._group({"(": ")", "[": "]"}[self._tokens[self._place - 1][1]])
        elif name in ("abs", "exp", "floor", "ceil"):
            argument = self._argument()
        else:
            argument = self._bare_argument()
        tree = _applied(name, argument, base)
        return tree if power is None else ("^", tree, power)

    def _bare_argument(self) -> Tree:
        r"""The argument of `\sin 2x`: factors up to the next sign or function."""
        factors = [self._factor()]
        while self._begins_factor():
            kind, written, _ = self._tokens[self._place]
            if kind == "command" and SAME_FUNCTION.get(written, written) in FUNCTIONS - {"sqrt"}:
                break
            if (kind, written) == ("sign", "("):
                raise NoFormulaError  # sin x(x+1) is read in two ways
            factors.append(self._factor())
        if self._accept("/"):
            if len(factors) > 1 or not self._sign().isdecimal():
                raise NoFormulaError  # so is sin 2x/3
            factors.append(inverse(self._base()))
        return factors[0] if len(factors) == 1 else ("*", *factors)

    def _root(self) -> Tree:
        degree: Tree = number(2)
        if self._accept("["):
            degree = self._sum()
            self._expect("]")
        radicand = self._group(")") if self._accept("(") else self._argument()
        return _root_of(radicand, degree)


def _root_of(radicand: Tree, degree: Tree) -> Tree:
    """A root. One of odd degree is real: that of -x is minus that of x."""
    power = constant(degree)
    if power is not None and power.denominator == 1 and power % 2 and _is_negative(radicand):
        return negative(("^", canonical(("*", number(-1), canonical(radicand))), inverse(degree)))
    return ("^", radicand, inverse(degree))


def _is_negative(tree: Tree) -> bool:
    """Whether the first of a formula's terms, in the order of `canonical`, has a minus."""
    flat = canonical(tree)
    first = flat[1] if flat[0] == "+" else flat
    factors = first[1:] if first[0] == "*" else (first,)
    return any(factor[0] == "number" and factor[1] < 0 for factor in factors)


_COMMANDS: dict[str, Callable[[_Reader], Tree]] = {
    "frac": _Reader._fraction,
    "binom": _Reader._binomial,
    "lfloor": _Reader._floor,
    "lceil": _Reader._floor,
    **dict.fromkeys(("vec", "hat", "bar", "overline", "tilde", "widehat", "overrightarrow", "dot"), _Reader._accented),
}


def _is_differential(tree: Tree) -> bool:
    return tree == ("name", "d") or (tree[0] == "*" and tree[1] == ("name", "d"))


def _applied(name: str, argument: Tree, base: Tree | None) -> Tree:
    if name == "exp":
        return ("^", ("e",), argument)
    if name == "log" and base == ("e",):
        return ("ln", argument)
    if name == "log" and base is not None:
        return ("log", argument, base)
    if name == "lg":
        return ("log", argument, number(10))
    return ("ln", argument) if name == "ln" else (name, argument)
