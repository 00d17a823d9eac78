r"""The value of a formula by Math-Verify's parser, or nothing if a part cannot be read. For worker processes.

Math-Verify reads what it can and drops the rest: of `x^2+1 \quad (x \ge 2)` it keeps the 2, `f'(x)` is `f(x)` to it.
Here every character must belong to a token of the parser's grammar, every command must be one whole token, and every
number and letter must reach the value. A formula that fails any of these is not read, and no number inside it counts.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import sympy
from antlr4.atn.PredictionMode import PredictionMode
from latex2sympy2_extended import NormalizationConfig, latex2sympy2, math_normalization, normalize_latex
from latex2sympy2_extended.antlr_parser import PSLexer
from latex2sympy2_extended.logic import And
from latex2sympy2_extended.sets import FiniteSet
from latex2sympy2_extended.symbols import GREEK_LETTER_MAP
from math_verify import ExprExtractionConfig, LatexExtractionConfig, parser
from math_verify.grader import should_treat_as_complex
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from cooper_verify.rules.number_words import CHANGES_NUMBER
from cooper_verify.rules.units import measures

Value = sympy.Basic | sympy.MatrixBase


class UnreadError(ValueError):
    """A part of the formula has no part in its value."""


class TwoStageParser(latex2sympy2.PSParser):
    """Math-Verify's parser of LaTeX, faster: first in ANTLR's mode SLL, in full where that finds no parse.

    A parse that SLL finds is the one that the full mode finds (the ANTLR reference, `PredictionMode.SLL`).
    """

    def math(self):
        tokens: Any = self.getTokenStream()
        tokens.fill()  # fails at what is no token, where a second try would read on behind it
        self._interp.predictionMode = PredictionMode.SLL
        try:
            return super().math()
        except Exception:  # noqa: BLE001 - what Math-Verify's listener raises for a syntax error
            self._interp.predictionMode = PredictionMode.LL
            self.reset()
            return super().math()


latex2sympy2.PSParser = TwoStageParser

_NORMAL = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="all")
_NO_MEANING = re.compile(
    r"\\(?:left|right|middle)\s*+\.|\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|noindent|enspace|space)(?![A-Za-z])"
    r"|\\[bB]igg?[lrm]?(?![A-Za-z])|~"
)
_SYMBOL_OVER_SYMBOL = re.compile(r"\\[dtc]?frac\s*+(\\(?!frac|sqrt)[A-Za-z]++)\s*+(\w)")
_BEFORE_PERCENT = re.compile(r"(?<=\d)\s++(?=\\?%)")
_APPROXIMATELY = re.compile(r"\A\s*+(?:\\approx(?![A-Za-z])|\u2248)")
_PRIME_ABOVE = re.compile(r"\^\s*+(?:\\prime(?![A-Za-z])|\{(?>(?:\s*+\\prime(?![A-Za-z]))+)\s*+\})")
_PRIMES = re.compile(r"(?<=([\w)}\]]))'++")
_DOTS = re.compile(r"\\(?:ldots|dotsc|dotsb|cdots)(?![A-Za-z])")
_EXPONENT_T = re.compile(r"(?<!matrix\})\^(?:T(?![A-Za-z])|\{T\})")
_OF_A_SET = re.compile(r"\\(min|max|gcd|lcm)\s*\\\{([^{}\\]*)\\\}")
_QUAD = re.compile(r"\\q?quad(?![A-Za-z])")
_SPELLINGS = {r"\langle": "(", r"\rangle": ")", r"\varnothing": r"\emptyset"}
_SPELLING = re.compile(r"\\(?:langle|rangle|varnothing)(?![A-Za-z])")
_TEXT_AT_END = re.compile(
    r"\\(?:text(?:normal|rm|bf|it)?|[mh]box|mathrm)\s*\{([^{}]*)\}(?:\s*+\^\s*+\{?+\s*+[23]\s*+\}?)?\s*\Z"
)
_CONDITION = re.compile(r"(?i)\b(?:if|for|when|where|while|with|such|unless|otherwise|except|mod|base|is|are)\b")
_THIN_SPACES = (r"\,", r"\;", r"\:", r"\!")
_ENDS_IN_VALUE = re.compile(r"[\w)}\]!|%]\s*\Z")
_BASE = re.compile(r"-?[\d.]++\s*+_\s*+\{?+\s*+\d++\s*+\}?")
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")
_AND = re.compile(r"(?<![A-Za-z\\])and(?![A-Za-z])")
_COMMAND_AT_END = re.compile(r"\\[A-Za-z]+\Z")
_THOUSANDS = latex2sympy2.comma_number_regex
_NAMED = (PSLexer.GREEK_CMD, PSLexer.OTHER_SYMBOL_CMD, PSLexer.ACCENT, PSLexer.DIFFERENTIAL)
_NUMERAL = (PSLexer.NUMBER, PSLexer.PERCENT_NUMBER, PSLexer.E_NOTATION)


@lru_cache(maxsize=64)
def read_formula(text: str) -> Value | None:
    """The value of a formula in LaTeX; None if a part of it cannot be read."""
    latex = _without_unit(normalize_latex(_respelled(text), _NORMAL))
    reader = _Reader(is_real=not should_treat_as_complex(latex), convert_degrees=False)
    try:
        value = reader.parse(latex)
        if not isinstance(value, Value):
            return None
        reader.check(latex, value)
        return _both(value) if isinstance(value, FiniteSet) and _AND.search(text) else value
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Math-Verify's parser and sympy raise all kinds of errors for what they cannot read
        return None


def _both(value: FiniteSet) -> Value:
    """Inequalities that hold together, which Math-Verify reads as a list."""
    relations: Sequence[Any] = getattr(value, "_unsorted_args", value.args)
    is_condition = all(isinstance(part, Relational) and not isinstance(part, sympy.Eq) for part in relations)
    return And(*relations) if is_condition else value


class _Reader(latex2sympy2._Latex2Sympy):
    """Math-Verify's reading of a formula, which remembers what it read."""

    _tokens: Sequence[Any] | None = None

    def create_parser(self, latex_str: str):
        created = super().create_parser(latex_str)
        if self._tokens is None:  # the arguments of a function are parsed again
            self._numbers: list[str] = []
            stream: Any = created.getTokenStream()
            stream.fill()
            self._tokens = stream.tokens[:-1]
            letters = {token.text for token in stream.tokens if token.type == PSLexer.LETTER_NO_E}
            if any(letter.swapcase() in letters for letter in letters):  # R and r are two variables
                self.config = latex2sympy2.ConversionConfig(lowercase_symbols=False)
        return created

    def parse_number(self, text: str):
        self._numbers.append(text.replace(",", ""))
        return super().parse_number(text)

    def convert_postfix_list(self, arr: Sequence[Any], i: int = 0):
        """A number in front of a fraction is a mixed number; Math-Verify takes 2(3) for one too, and adds."""
        after = arr[i + 1].getText() if i + 1 < len(arr) else "\\frac"
        if after.startswith("\\frac") or not getattr(number := self.convert_postfix(arr[i]), "is_Integer", False):
            return super().convert_postfix_list(arr, i)
        if after[0].isdigit():
            raise UnreadError(after)
        rest = self.convert_postfix_list(arr, i + 1)
        return (self.mat_mul_flat if getattr(rest, "is_Matrix", False) else self.mul_flat)(number, rest)

    def check(self, latex: str, value: Value) -> None:
        """Raises UnreadError if a command was cut, or a number or a letter has not reached the value."""
        tokens = self._tokens or ()
        for token in tokens:
            if _COMMAND_AT_END.search(token.text) and latex[token.stop + 1 : token.stop + 2].isalpha():
                raise UnreadError(token.text)
        if _THOUSANDS.match(latex):
            return
        derivatives: Any = value.atoms(sympy.Derivative)
        if any(not set(derivative.variables) <= derivative.expr.free_symbols for derivative in derivatives):
            raise UnreadError("dy/dx")  # which is zero to sympy
        names = _names(value)
        read = Counter(self._numbers) + Counter(re.findall(r"\d+", " ".join(names)))
        written = Counter(re.sub(r"[\\%\s]", "", token.text) for token in tokens if token.type in _NUMERAL)
        is_base = _BASE.fullmatch(latex)  # which is compared as a unit is
        if any(read[number] == 0 for number in written) and not is_base:
            raise UnreadError(str(written - read))
        if any(token.type == PSLexer.APPROX for token in tokens):
            return  # of `x \approx 2`, the 2 is kept
        letters = _single_letters(names)
        joined = " ".join(names).lower()
        for token in tokens:
            if token.type == PSLexer.LETTER_NO_E and token.text.lower() not in letters:
                raise UnreadError(token.text)
            if token.type in _NAMED and _name_of(token.text) not in joined:
                raise UnreadError(token.text)


def _names(value: Value) -> list[str]:
    """The names of all variables, functions and constants in a value."""
    names = [atom.name for atom in value.atoms(sympy.Symbol)]  # pyright: ignore[reportAttributeAccessIssue]
    names += [str(applied.func) for applied in value.atoms(AppliedUndef)]
    constants = {sympy.pi: "pi", sympy.EulerGamma: "gamma", sympy.I: "i"}
    return names + [name for constant, name in constants.items() if value.has(constant)]


def _single_letters(names: Sequence[str]) -> set[str]:
    """The single letters that are variables or stand in an index or in an accent's brackets."""
    return {
        letter.lower()
        for name in names
        for letter in (name if len(name) < 3 or re.search("[_{]", name) else "")
        if letter.isalpha()
    }


def _name_of(token: str) -> str:
    token = token.strip()
    if token in GREEK_LETTER_MAP:
        return GREEK_LETTER_MAP[token].lower()
    if (brace := token.find("{")) >= 0:
        return re.sub(r"[\s()]", "", token[brace + 1 : -1]).lower()
    return token.lstrip("\\").lower() if token[0] == "\\" else _name_of(token[1:]) if len(token) > 1 else token.lower()


def _respelled(text: str) -> str:
    """The formula in the spelling that the parser reads, or where it would drop a part, in one that it refuses."""
    text = _SYMBOL_OVER_SYMBOL.sub(r"\\frac{\1}{\2}", _BEFORE_PERCENT.sub("", _APPROXIMATELY.sub("", text)))
    text = _SPELLING.sub(lambda command: _SPELLINGS[command.group()], _NO_MEANING.sub(" ", text))
    text = _PRIMES.sub(_named_by_primes, _PRIME_ABOVE.sub(lambda primes: "'" * primes.group().count("p"), text))
    text = _EXPONENT_T.sub("^{{T}}", _DOTS.sub(r"\\dots", text))
    text = _OF_A_SET.sub(r"\\\1(\2)", text)
    equations = _QUAD.split(text)
    if len(equations) > 1 and "\\text" not in text and all("=" in equation for equation in equations):
        text = ",".join(equation.strip(" ,;") for equation in equations)  # they are several, not a chain
    return f"{{{text}}}" if "\\choose" in text and not text.lstrip().startswith("{") else text


def _named_by_primes(primes: re.Match[str]) -> str:
    """Primes as an index, which is a part of a name, or as an exponent of what has no name."""
    index = "{" + r"\prime " * len(primes.group()) + "}"
    return ("_" if primes.group(1).isalpha() else "^") + index


def _without_unit(latex: str) -> str:
    """The formula without a unit at its end, unless what looks like a unit is a variable or a condition."""
    while (end := _TEXT_AT_END.search(latex)) and _is_unit(end.group(1)):
        bare = latex[: end.start()].rstrip()
        while bare.endswith(_THIN_SPACES):
            bare = bare[:-2].rstrip()
        if not _ENDS_IN_VALUE.search(bare):
            break
        latex = bare
    latex = " ".join(latex.split())  # the pattern is slow on spaces
    bare = math_normalization.units_regex.sub(r"\1", latex).rstrip()
    if bare == latex.rstrip() or not bare:
        return latex
    unit = latex.rstrip()[len(bare) :].strip()
    is_variable = len(unit) == 1 and bool(_LETTER.search(bare))
    return bare if (measures(unit) or len(unit) > 2) and not is_variable else latex


def _is_unit(words: str) -> bool:
    changes = [word for word in CHANGES_NUMBER.findall(words) if not measures(word)]
    if changes or _CONDITION.search(words) or re.search(r"\d", words):
        return False
    return all(len(word) > 1 or measures(word) or word in "aA" for word in re.findall("[A-Za-z]+", words))


@cache
def _regexes() -> Any:
    """Math-Verify's own patterns of formulas in a text. Not all are linear: they run where they can be killed."""
    return parser.get_extraction_regexes([LatexExtractionConfig(), ExprExtractionConfig()])


def read_text(text: str) -> Value | None:
    """The value of the formula or number that Math-Verify takes for the answer in a text.

    Nothing is taken out of a formula that cannot be read.
    """
    patterns = [(priority, pattern) for patterns, _ in _regexes() for pattern, priority in patterns]
    unread: list[tuple[int, int]] = []
    for priority in sorted({priority for priority, _ in patterns}):
        matches = [match for level, pattern in patterns if level == priority for match in pattern.finditer(text)]
        for match in sorted(matches, key=lambda match: (-match.end(), match.start())):
            formulas = [match.span(name) for name in _formulas(match)]
            if any(start < last and first < end for start, end in formulas or [match.span()] for first, last in unread):
                continue
            value = _value_of(match)
            if value is not None:
                return value
            unread += formulas
    return None


def _formulas(match: re.Match[str]) -> list[str]:
    """The names of the groups with formulas."""
    return [name for name, part in match.groupdict().items() if part and "latex" in name]


def _value_of(match: re.Match[str]) -> Value | None:
    """The value of what Math-Verify found: formulas, several of which are a set, or an expression of digits."""
    groups, names = match.groupdict(), _formulas(match)
    if not names:
        return parser.extract_expr(match)[0]  # pyright: ignore[reportReturnType]
    values: list[Any] = []
    for name in names:
        value = read_formula(groups[name])
        if value is None and parser.get_last_eq(groups[name]) != groups[name]:
            value = read_formula("=".join(groups[name].split("=")[-2:]))  # of a calculation, the last step
        if value is None:
            return None
        values.append(latex2sympy2.convert_to_pct(value) if groups.get(f"{name.split('_')[0]}_percent") else value)  # pyright: ignore[reportArgumentType]
    if len(values) == 1:
        return values[0]
    lists = [value.args if isinstance(value, FiniteSet) else [value] for value in values]
    return FiniteSet(*(element for elements in lists for element in elements))


_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S", re.DOTALL)
_FIGURE_OVER_FIGURE = re.compile(r"(\\[dtc]?(?:frac|binom))\s*+(\d)\s*+(\d)")
_SAME_TOKEN = {
    **dict.fromkeys((r"\dfrac", r"\tfrac", r"\cfrac"), r"\frac"),
    **dict.fromkeys((r"\textrm", r"\textnormal", r"\mathrm", r"\mbox", r"\hbox"), r"\text"),
    **dict.fromkeys((r"\ldots", r"\cdots", r"\dotsc", r"\dotsb"), r"\dots"),
    **{r"\geq": r"\ge", r"\geqslant": r"\ge", r"\leq": r"\le", r"\leqslant": r"\le", r"\neq": r"\ne"},
    **{r"\bmod": r"\pmod", r"\mod": r"\pmod", r"\lbrace": r"\{", r"\rbrace": r"\}", r"\rightarrow": r"\to"},
    **{r"\implies": r"\Rightarrow", r"\iff": r"\Leftrightarrow", r"\varnothing": r"\emptyset", r"\colon": ":"},
    **{r"\lvert": "|", r"\rvert": "|", r"\vert": "|", r"\dbinom": r"\binom", r"\tbinom": r"\binom"},
}
_SPACE = {"~", "$", r"\ ", r"\,", r"\;", r"\:", r"\!", r"\(", r"\)", r"\[", r"\]"}
_SPACE |= {rf"\{name}" for name in ("quad", "qquad", "left", "right", "displaystyle", "textstyle", "limits", "enspace")}


@lru_cache(maxsize=1024)
def spelling(text: str) -> tuple[str, ...]:
    r"""The symbols of a formula in order, in one of the spellings that mean the same: `\frac12` and `\dfrac{1}{2}`."""
    text = _FIGURE_OVER_FIGURE.sub(r"\1{\2}{\3}", text)
    tokens = [_SAME_TOKEN.get(token, token) for token in _TOKEN.findall(text) if token not in _SPACE]
    symbols: list[Any] = []
    for token in tokens:
        symbols.append(token)
        if token == "}" and len(symbols) > 2 and symbols[-3] == "{" and symbols[-2] not in "{}":
            symbols[-3:] = [symbols[-2]]
    while symbols and symbols[-1] in ".,;":
        symbols.pop()
    return tuple(symbols)
