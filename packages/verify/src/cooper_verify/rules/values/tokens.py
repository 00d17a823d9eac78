r"""The tokens of a formula: one spelling for LaTeX and plain notation, Greek letters, names of functions, words."""

import re
from collections.abc import Sequence

from cooper_verify.rules.values.tree import Tree
from cooper_verify.rules.vocabulary.unit_table import UPRIGHT_VARIABLE

_GREEK_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon varphi chi psi"
    " omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
)
_GREEK_LETTERS = dict(zip("αβγδεζηθικλμνξρστυφχψωΓΔΘΛΞΣΦΨΩ", _GREEK_NAMES.split(), strict=True))
GREEK = {*_GREEK_LETTERS.values(), "epsilon", "phi", "Upsilon", "whole"}
FUNCTIONS = {
    *("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "exp", "ln"),
    *("log", "lg", "sqrt", "cbrt", "abs", "floor", "ceil", "min", "max", "gcd", "lcm"),
}
FUNCTION_NAMES = FUNCTIONS | {"mod", "det", "dim", "ker", "deg", "arg", "inf", "sup", "lim", "pi", "cis", "and", "or"}
"""Words of several letters in a formula."""
SAME_FUNCTION = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "arctg": "arctan"}
SAME_FUNCTION |= {"tg": "tan", "ctg": "cot", "cosec": "csc"}
CONSTANTS: dict[str, Tree] = {"pi": ("pi",), "e": ("e",), "infty": ("oo",), "infinity": ("oo",), "inf": ("oo",)}
_NO_MEANING = re.compile(
    r"\\(?:left|right|middle)\s*\.|\\(?:left|right|middle|displaystyle|textstyle|limits|nolimits|,|;|:|!|>| |quad|qquad"
    r"|enspace|thinspace|[bB]igg?[lrm]?|[()\[\]])(?![A-Za-z])|\\[,;:!> ()\[\]]|[$~]"
)
_SPELLINGS = (
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\\times(?=\s*\{?\s*\\(?:vec|mathbf|boldsymbol|bm|hat|overrightarrow)(?![A-Za-z]))"), "\u2a2f"),
    (re.compile(r"\\(?:cdot|times|ast)(?![A-Za-z])|[\u00d7\u00b7\u22c5\u2217]"), " * "),
    (re.compile(r"\\div(?![A-Za-z])|\u00f7"), " / "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\\(?:operatorname\*?|mathrm|text|textrm|mathit)\s*\{\s*([A-Za-z]{2,9})\s*\}"), r"\\\1 "),
    (
        re.compile(
            rf"\\(?:mathrm|text|textrm)\s*\{{\s*({UPRIGHT_VARIABLE}|(?<=[-+=(]\\text\{{)[A-Z]|(?<=[-+=(]\\mathrm\{{)[A-Z])\s*\}}"
        ),
        r" \1",
    ),
    (re.compile(r"\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})|\\degree(?![A-Za-z])"), "\u00b0"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"(?<!\d)\.(?=\\(?:overline|bar|dot)(?![A-Za-z]))"), "0."),
    (re.compile(r"(?<![\w.])(\d{0,20}\.\d{0,20})\((\d{1,20})\)(?![\d^!])"), r"\1\\overline{\2}"),  # 0.(3)
    (re.compile(r"\\epsilon(?![A-Za-z])"), r"\\varepsilon "),
    (re.compile(r"\\phi(?![A-Za-z])"), r"\\varphi "),
    (re.compile(r"\\var(theta|rho|sigma|kappa)(?![A-Za-z])"), r"\\\1 "),
    (re.compile(r"\\(?:lvert|rvert|vert)(?![A-Za-z])"), "|"),
    (re.compile(r"\\[lr]brace(?![A-Za-z])"), ""),
    (re.compile(r"\^\s*(?:\{\s*)?\\prime\s*\}?"), "'"),
    (re.compile(r"\\([ij])math(?![A-Za-z])"), r"\1"),
    (re.compile(r"\\%"), "%"),
)
DIFFERENTIAL = re.compile(r"d[a-z]")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[1-9]\d{0,2}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d*)?|\.\d+)"
    r"|\\(?P<command>[A-Za-z]+)|(?P<word>[A-Za-z]+)|(?P<greek>[\u03b1-\u03c9\u0391-\u03a9])|(?P<sign>\S))",
    re.ASCII,
)


class NoFormulaError(ValueError):
    """A text is not one whole formula."""


def without_layout(text: str) -> str:
    """The text without delimiters of formulas, sizes of brackets and spaces of LaTeX."""
    return _NO_MEANING.sub(" ", text)


def written_alike(text: str) -> str:
    text = without_layout(text)
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text


def tokens(text: str) -> list[tuple[str, str, bool]]:
    """The kind, the text and whether a space stands before it, of each token."""
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise NoFormulaError
        kind = token.lastgroup or ""
        spaced = token.start(kind) > position
        if kind == "greek":
            kind, written = "command", _GREEK_LETTERS.get(token[kind], "pi" if token[kind] == "\u03c0" else "?")
        else:
            written = token[kind]
        if kind == "word":
            if DIFFERENTIAL.fullmatch(written) and text.startswith("^", token.end()):
                raise NoFormulaError  # dx^2 is a square of dx, or d x^2
            if found and found[-1][0] == "word" and spaced and not _may_follow(written):
                raise NoFormulaError  # words in a row
            found += _words(written, spaced, _is_between_signs(text, token, found))
        elif kind == "number" and _is_index(text, token, found):
            raise NoFormulaError
        else:
            found.append((kind, written, spaced))
        position = token.end()
    return found


def _may_follow(written: str) -> bool:
    """Whether letters may stand behind others and a space, unlike words in a row: `x dx`, `n log n`."""
    return len(written) == 1 or written in FUNCTIONS or DIFFERENTIAL.fullmatch(written) is not None


def _is_index(text: str, figures: re.Match[str], before: Sequence[tuple[str, str, bool]]) -> bool:
    """Whether figures stand behind a letter: `x2` may be 2x, x squared or the second x, unlike `N2^{-N}`."""
    is_behind_letter = bool(before) and before[-1][0] == "word"
    if [token[1] for token in before[-3:-1]] == ["log", "_"]:
        return False
    return is_behind_letter and not text.startswith("^", figures.end())


_KNOWN_WORDS = sorted(
    {*FUNCTIONS, *SAME_FUNCTION, "pi", "infinity", *GREEK} - {"eta", "xi", "nu", "mu"}, key=len, reverse=True
)


_NO_PRODUCT = re.compile(
    r"[A-Z][a-z]{2,}|pH|pOH|pK[ab]?|(?i:yes|not?|the|is|are|to|of|if|by|in|on|at|up|all|any|so|it|its|as|or|and|an|we|be|do|go|he|she|has"
    r"|had|can|get|for|was|but|out|per|her|his|you|our|am|pm|my|us|let|one|two|six|ten|see|sum)"
)


def _is_between_signs(text: str, letters: re.Match[str], before: Sequence[tuple[str, str, bool]]) -> bool:
    """Whether two small letters are factors where a word could not stand: `v_0 + at`, `at^2`, `e^{it}`."""
    after = text[letters.end() :].lstrip()[:1]
    is_joined = letters[0].isalpha() or after == "^"
    is_first = not before or before[-1][1] in "+-*/^({)}" or (before[-1][0] == "number" and is_joined)
    return bool(_TWO_LETTERS.fullmatch(letters["word"])) and is_first and after in "+-*/^)}" and bool(before or after)


_TWO_LETTERS = re.compile(r"[a-z]{2}")


def _words(written: str, spaced: bool, are_factors: bool) -> list[tuple[str, str, bool]]:
    """A run of letters: a name that is known, or letters that are multiplied, perhaps before a name (`2xsin`)."""
    if (
        written in FUNCTIONS
        or written in SAME_FUNCTION
        or (written in CONSTANTS and len(written) > 1)
        or written in GREEK
    ):
        return [("command", written, spaced)]
    known = next((word for word in _KNOWN_WORDS if len(word) > 1 and written.endswith(word)), "")
    letters = written[: len(written) - len(known)]
    if len(letters) > 3 or (known and len(letters) > 1) or (_NO_PRODUCT.fullmatch(letters) and not are_factors):
        raise NoFormulaError  # a word
    parts = [("word", letter, spaced and place == 0) for place, letter in enumerate(letters)]
    return [*parts, ("command", known, False)] if known else parts
