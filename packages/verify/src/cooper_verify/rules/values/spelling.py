r"""The spelling of a formula: what cannot be read is an answer only where it is written as the reference is."""

import re
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S", re.DOTALL)
_FIGURE_OVER_FIGURE = re.compile(r"(\\[dtc]?(?:frac|binom))\s*+(\d)\s*+(\d)")
_UPRIGHT_LETTER = re.compile(r"\\(?:mathrm|text|textrm|operatorname)\s*\{\s*([dei])\s*\}")
_ABOUT = re.compile(r"\A\s*~\s?(?=[-\d.])")
"""A tilde that is no space: `~3` is about 3."""
_SAME_TOKEN = {
    **dict.fromkeys((r"\dfrac", r"\tfrac", r"\cfrac"), r"\frac"),
    **dict.fromkeys((r"\textrm", r"\textnormal", r"\mathrm", r"\mbox", r"\hbox"), r"\text"),
    **dict.fromkeys((r"\ldots", r"\cdots", r"\dotsc", r"\dotsb"), r"\dots"),
    **{r"\geq": r"\ge", r"\geqslant": r"\ge", r"\leq": r"\le", r"\leqslant": r"\le", r"\neq": r"\ne"},
    **{r"\bmod": r"\pmod", r"\mod": r"\pmod", r"\lbrace": r"\{", r"\rbrace": r"\}", r"\rightarrow": r"\to"},
    **{r"\implies": r"\Rightarrow", r"\iff": r"\Leftrightarrow", r"\varnothing": r"\emptyset", r"\colon": ":"},
    **{r"\wedge": r"\land", r"\vee": r"\lor", r"\neg": r"\lnot", r"\|": r"\parallel"},
    **{r"\lvert": "|", r"\rvert": "|", r"\vert": "|", r"\dbinom": r"\binom", r"\tbinom": r"\binom"},
}
_SPACE = {"~", "$", r"\ ", r"\,", r"\;", r"\:", r"\!", r"\(", r"\)", r"\[", r"\]"}
_SPACE |= {rf"\{name}" for name in ("quad", "qquad", "left", "right", "displaystyle", "textstyle", "limits", "enspace")}


@lru_cache(maxsize=1024)
def spelling(text: str) -> tuple[str, ...]:
    r"""The symbols of a formula in order, in one of the spellings that mean the same: `\frac12` and `\dfrac{1}{2}`."""
    text = _UPRIGHT_LETTER.sub(r" \1 ", _FIGURE_OVER_FIGURE.sub(r"\1{\2}{\3}", _ABOUT.sub(r"\\sim ", text)))
    tokens = [_SAME_TOKEN.get(token, token) for token in _TOKEN.findall(text) if token not in _SPACE]
    symbols: list[Any] = []
    for token in tokens:
        symbols.append(token)
        if token == "}" and len(symbols) > 2 and symbols[-3] == "{" and symbols[-2] not in "{}":
            symbols[-3:] = [symbols[-2]]
    if symbols and symbols[-1] in ".,;" and symbols[-2:] != [".", "."]:
        symbols.pop()
    return tuple(symbols)
