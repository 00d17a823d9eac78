r"""One notation for what people write: Unicode becomes ASCII and LaTeX, and formatting without meaning is removed.

Completions and references are brought to it where they are read, so all rules compare the same notation: `x²` is
`x^{2}`, `⅔` is `\frac{2}{3}`, `√2` is `\sqrt{2}`, and `\textcolor{red}{13}`, `{\bf 13}` and `*13*` are `13`. The
time is linear in the length of the text.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from functools import cache

from cooper_verify.rules.vocabulary.number_words import SCALE

_SPECIAL = {
    **{"\u3002": ". ", "\uff61": ". ", "\u3001": ", ", "\uff64": ", ", "\uff0c": ", ", "\uff1b": "; ", "\uff1f": "? "},
    **{"\uff01": "! ", "\u2028": "\n", "\u2029": "\n", "\u066b": ".", "\u066c": ",", "\u066a": "%", "\u00ba": "\u00b0"},
    **{"\u2208": r"\in ", "\u2209": r"\notin ", "\u222a": r"\cup ", "\u2229": r"\cap ", "\u221e": r"\infty "},
    **{"\u2205": r"\emptyset ", "\u2282": r"\subset ", "\u2286": r"\subseteq ", "\u2044": "/", "\u2215": "/"},
    **{"\u211d": r"\mathbb{R}", "\u2124": r"\mathbb{Z}", "\u2115": r"\mathbb{N}", "\u211a": r"\mathbb{Q}"},
    **{"\u2102": r"\mathbb{C}", "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2212": "-", "\u2796": "-"},
    **{"\ufe0e": "", "\ufe0f": "", "\u2227": r"\land ", "\u2228": r"\lor ", "\u2220": r"\angle "},
    **{"\u00ac": r"\neg ", "\u2203": r"\exists ", "\u2200": r"\forall "},
    **{"\u2225": r"\parallel ", "\u22a5": r"\perp ", "\u25b3": r"\triangle ", "\u2236": ":"},
}
_OVERRIDES = "\u202d\u202e\u2067"
"""They turn the order of what is seen, so that they are no formatting."""
_UNCHANGED = "\u00aa\u2122\u2120\u2033\u2034\u2057"  # ordinal indicators, trade marks and double primes


class _Characters(dict[int, str]):
    """Maps the code of a character to its notation; `str.translate` fills it as characters occur."""

    def __missing__(self, code: int) -> str:
        self[code] = notation = _notation_of(chr(code))
        return notation


def _notation_of(character: str) -> str:
    if character.isascii() or character in _UNCHANGED:
        return character
    if character in _SPECIAL:
        return _SPECIAL[character]
    category = unicodedata.category(character)
    if character in _OVERRIDES:
        return character
    if category == "Cf" or (character > "\uffff" and unicodedata.combining(character)):
        return ""  # zero-width characters, byte order marks, marks of direction and of music
    if category == "Zs":
        return " "
    if category == "Nd":
        return str(unicodedata.decimal(character))
    tag, *parts = unicodedata.decomposition(character).split() or [""]
    if not tag.startswith("<"):
        return character
    if tag == "<fraction>" and (slash := parts.index("2044")) < len(parts) - 1:
        top, bottom = ("".join(chr(int(part, 16)) for part in side) for side in (parts[:slash], parts[slash + 1 :]))
        return rf"\frac{{{top}}}{{{bottom}}}"
    plain = _scripts("".join(chr(int(part, 16)) for part in parts)).translate(_CHARACTERS)
    if tag == "<circle>":
        return f"({plain})"
    return character if plain[:1] == " " or any(map(unicodedata.combining, plain)) else plain


_CHARACTERS = _Characters()
_SUPERSCRIPT = "\u00b2\u00b3\u00b9\u02b0-\u02b8\u02e1-\u02e3\u1d2c-\u1d61\u2070-\u207f"
_SUBSCRIPT = "\u1d62-\u1d6a\u2080-\u209c"
_SCRIPTS = re.compile(
    rf"([{_SUPERSCRIPT}]++)\u2044([{_SUBSCRIPT}\d]++)|([{_SUPERSCRIPT}]++)|([{_SUBSCRIPT}]++)"  # ³⁄₄, x², x₁
)


def _scripts(text: str) -> str:
    def in_latex(run: re.Match[str]) -> str:
        top, bottom, above, below = (
            unicodedata.normalize("NFKC", part or "").replace("\u2212", "-") for part in run.groups()
        )
        return rf"\frac{{{top}}}{{{bottom}}}" if top else f"^{{{above}}}" if above else f"_{{{below}}}"

    return _SCRIPTS.sub(in_latex, text)


_OPERAND = r"[\d.\\(\u221a\u03c0$]|[A-Za-z]\b"
_DASHES = "\u2013\u2014\u2015"
_MINUS = re.compile(
    rf"(?<![A-Za-z][A-Za-z])[{_DASHES}](?={_OPERAND})"  # -3, x-3; not between words
    rf"|(?:(?<=[\d)}}\]\u03c0]\s)|(?<=\b[A-Za-z]\s))[{_DASHES}](?=\s(?:{_OPERAND}))"  # x - 3
)
_ROOT = re.compile(
    r"([\u221a\u221b\u221c])\s?(?>(?:(\d++(?>(?:\.\d++)?)|[A-Za-z\u03c0]|\\frac\{\d++\}\{\d++\}|\\[A-Za-z]{1,9}+(?!\s?\{))"
    r"|\(((?>(?:[^()\n]|\([^()\n]{0,99}\)){1,200}))\)|\{([^{}\n]{1,200}+)\})?)"
)
_DEGREE_OF_ROOT = {"\u221a": "", "\u221b": "[3]", "\u221c": "[4]"}


def composed(text: str) -> str:
    """`text` in the normal form NFC, without the marks of a run that only an attacker writes: sorting them is slow."""
    return unicodedata.normalize("NFC", _long_runs_of_marks().sub(r"\1", text))


@cache
def _long_runs_of_marks() -> re.Pattern[str]:
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x10000))))
    return re.compile(f"([{marks}]{{8}})[{marks}]++")


def _in_ascii(text: str) -> str:
    text = composed(_scripts(text).translate(_CHARACTERS))
    if any(dash in text for dash in _DASHES):
        text = _MINUS.sub("-", text)
    for _ in range(3):  # a root in a root; nobody nests deeper
        text = _ROOT.sub(_root, text)
    return text


def _root(root: re.Match[str]) -> str:
    radicand = next(filter(None, root.groups()[1:]), None)
    return rf"\sqrt{_DEGREE_OF_ROOT[root.group(1)]}" + (f"{{{radicand}}}" if radicand else " ")


_COLOURED = (
    r"(?:text)?color(?:\s*\[\w*\])?\s*\{[^{}]{0,40}\}|f?colorbox\s*\{[^{}]{0,40}\}(?:\s*\{[^{}]{0,40}\}(?=\s*\{))?"
)
_STYLE = (
    r"(?:boldsymbol|math(?:bf|sf|tt|it|normal)|num(?=\{)|bm|pmb|underline|emph|uline|ensuremath|phantom(?=\{\})"
    r"|(?:display|text|script|scriptscript)style|bf|it|sf|tt|em|sl|(?:bf|md)series|(?:it|up|sl)shape|(?:sf|tt)family"
    r"|normal(?:font|size)|boldmath|unboldmath|tiny|scriptsize|footnotesize|small|large|Large|LARGE|huge|Huge|centering"
    r"|noindent|hfill|strut|mathstrut|limits|nolimits|displaylimits)(?![A-Za-z])"
)
_STYLED = re.compile(
    rf"\{{\s*+\\(?:{_COLOURED}|{_STYLE})\s*+([^{{}}\\]*+)\}}|\\(?:{_COLOURED}|{_STYLE})\s*+(?>(?:\{{([^{{}}\\]*+)\}})?)"
)
_ROMAN = re.compile(r"\{\s*+\\rm\s++([^{}]*+)\}|\\rm(?![A-Za-z])\s*+(?:\{([^{}]*+)\}|([A-Za-z][A-Za-z/ ]{0,40}+))")
_LABELS = re.compile(r"\\(?:tag|label)\*?\s*+\{[^{}]{0,40}\}")
_ANSWER_LABEL = re.compile(r"\\text\{\s?((?:(?:the|final)\s){0,2}answers?(?:\s(?:is|are))?\s?:?)\s?\}", re.IGNORECASE)
_INVISIBLE = re.compile(r"\\(?:(?:[hv]|m)space\*?|[hv]?phantom)\s*+\{[^{}]{0,40}\}")
_MONEY = re.compile(r"\\(?:(pounds|textsterling)|(euro|texteuro)|(yen|textyen))(?![A-Za-z])(?:\{\})?")
_SCALE_LETTER = re.compile(r"(?<=\d)\\(?:text(?:rm|normal)?|mbox)\s*+\{([kKMBT])\}")
"""Of 12\\text{K}, which is written as 12K is: a unit would have a space, or stand in \\mathrm."""
_EMPHASIS = re.compile(r"([*_])(\1{0,2}+)(?=[^\s*_])([^*_\n]{0,200}[^\s*_])\1\2(?![\w*])")
_BULLET = re.compile(r"^[ \t]*+[-+*\u2022][ \t]++(?=\*\*[^*\s])", re.MULTILINE)
"""In front of bold text: "- **12**" is no minus."""
_INSIDE = re.compile(r"[\w*\\$^})\]]")


_SYNONYMS = ((r"\ce{", r"\mathrm{"), (r"\varnothing", r"\emptyset"), (r"\nicefrac", r"\frac"), (r"\sfrac", r"\frac"))
_SYNONYMS += ((r"\mathcal{O}", "O"),)
_OVER_GROUPS = re.compile(r"\{([^{}\n]{1,80})\}\s?\\over\s?\{([^{}\n]{1,80})\}")
_SIDE = r"((?>(?:[^{}\n\\]|\\(?!over)|\{[^{}\n]{0,80}\}){1,80}))"
_OVER = re.compile(rf"\{{{_SIDE}\\over(?![A-Za-z]){_SIDE}\}}")
_ONLY = re.compile(r"\\text\{\s?only\s?\}")
_STYLES: list[tuple[tuple[str, ...], re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    ((r"\rm",), _ROMAN, lambda roman: rf"\mathrm{{{next(filter(None, roman.groups()), '')}}}"),
    (("space", "phantom"), _INVISIBLE, " "),
    (("pound", "sterling", "euro", "yen"), _MONEY, lambda sign: "\u00a3\u20ac\u00a5"[(sign.lastindex or 1) - 1]),
    (tuple(f"{{{letter}}}" for letter in "kKMBT"), _SCALE_LETTER, r"\1"),
    ((r"\tag", r"\label"), _LABELS, ""),
    ((r"\over",), _OVER_GROUPS, r"{\1\\over \2}"),
    ((r"\over",), _OVER, r"\\frac{\1}{\2}"),
    (("nswer", "NSWER"), _ANSWER_LABEL, r"\1 "),
    (("only",), _ONLY, " "),
]
"""Parts of texts of which a pattern matches none without, the pattern and what takes its place."""


def _without_style(text: str) -> str:
    for name, notation in _SYNONYMS:
        text = text.replace(name, notation)
    for parts, pattern, notation in _STYLES:
        if any(map(text.__contains__, parts)):
            text = pattern.sub(notation, text)
    return _STYLED.sub(_unstyled, text)


def _without_emphasis(emphasis: re.Match[str]) -> str:
    """What Markdown emphasises; `2*3*4` stays."""
    before = emphasis.string[max(emphasis.start() - 1, 0) : emphasis.start()]
    return emphasis.group() if _INSIDE.match(before) else emphasis.group(3)


def _unstyled(styled: re.Match[str]) -> str:
    """What a style is applied to: in braces where it is an argument (`x^\\mathbf{12}`), apart from other letters."""
    content = styled.group(1) if styled.group(1) is not None else styled.group(2)
    before = styled.string[max(styled.start() - 1, 0) : styled.start()]
    if content is None:
        return " " if before.isalpha() else ""
    return f"{{{content}}}" if before.isalpha() or before in tuple("^_}]") else content


_ENTITY = re.compile(r"&(?:#\d{1,6}|#x[\da-fA-F]{1,5}|[A-Za-z]{2,8});")
_STRUCK = re.compile(
    r"(?<![\w{\[}\\$)~])~~(?=[^\s~])[^~\n\\]{1,200}+(?<=\S)~~(?![\w\\${(~])"  # in LaTeX ~ is a space
    r"|~~\s?\\boxed\{[^{}~]{1,80}+\}\s?~~|<(s|del|strike)>[^<>\n]{0,200}+</\1>",
    re.IGNORECASE,
)
_TAGGED = re.compile(
    r"<(?P<tag>b|strong|i|em|u|mark|big|small|center|span|p|div|sup|sub)>(?P<content>[^<>]{0,200}+)</(?P=tag)>",
    re.IGNORECASE,
)


def _untagged(tagged: re.Match[str]) -> str:
    script = {"sup": "^", "sub": "_"}.get(tagged["tag"].lower())
    return f"{script}{{{tagged['content']}}}" if script else tagged["content"]


_COUNTRIES = {"US": "USD", "A": "AUD", "AU": "AUD", "C": "CAD", "CA": "CAD", "NZ": "NZD", "HK": "HKD", "S": "SGD"}
_COUNTRIES |= {"R": "BRL"}
_OF_COUNTRY = re.compile(
    rf"(?<![\w\\$])(?P<country>{'|'.join(sorted(_COUNTRIES, key=len, reverse=True))})\\?\$\s?"
    rf"(?P<figures>\d++(?>(?:[.,]\d++)*))(?![^\s,.;!?)}}\]]|\s{SCALE})"
)
"""Dollars of a country that is named: `A$5`, `R$ 5`."""
_COUNTRY_ENDS = [f"{letter}{dollar}" for letter in {name[-1] for name in _COUNTRIES} for dollar in ("$", r"\$")]


_EATEN = re.compile(r"[\a\b\v\f](?=[a-z])|\t(?=(?:ext|imes|heta|frac)(?![a-z]))|\r(?=(?:ight|ho|angle)(?![a-z]))")
"""Control characters that were the beginning of LaTeX's commands in JSON: `\\f` of `\\frac`."""


_RUPEES = re.compile(r"(?<![A-Za-z])Rs\.?\s?(?=\d)")


def one_notation(text: str) -> str:
    """`text` in the notation that all rules read; see this module."""
    if any(map(text.__contains__, "\a\b\v\f\t\r")):
        text = _EATEN.sub(lambda control: "\\" + "abvftr"["\a\b\v\f\t\r".index(control.group())], text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity.group()), text)
    if "<" in text or "~~" in text:
        text = _STRUCK.sub("", text)
        for _ in range(2):  # a tag in a tag
            text = _TAGGED.sub(_untagged, text)
    if not text.isascii():
        text = _in_ascii(text)
    if "$" in text and any(map(text.__contains__, _COUNTRY_ENDS)):
        text = _OF_COUNTRY.sub(lambda money: f"{money['figures']} {_COUNTRIES[money['country']]}", text)
    if "Rs" in text:
        text = _RUPEES.sub("\u20b9", text)
    if "\\" in text:
        text = _without_style(text)
    if "**" in text:
        text = _BULLET.sub("", text)
    return _EMPHASIS.sub(_without_emphasis, text) if "*" in text or "_" in text else text
