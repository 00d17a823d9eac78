"""The work of reading a text grows as its length, whatever it repeats: loops over linear patterns are found too.

Work is counted, not timed, so the count is the same on a busy machine: the characters that regular expressions of the
rules scan, the characters that functions of the rules are given, and one for each call.
"""

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from cooper_base.data import thoughts
from cooper_base.data.problem import Problem
from cooper_verify import rules
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.rules.text.reply import reply_of
from cooper_verify.rules.verdicts.fast_path import fast_verdict
from slow_members import first_fast

FOLDER = rules.__path__[0]
SHORT, LONG = 900, 7200
MOST = LONG / SHORT / 2
"""How many times as much work a character of the long text may be as one of the short text. A loop over all positions
does `LONG / SHORT` times as much."""

PROSE = "She walked to the market and bought {} apples for her family. "
# fmt: off
TEXTS: dict[str, str] = {
    "sentences": PROSE, "one sentence": "she walked to the market and bought {} apples, ", "lines": PROSE + "\n",
    "names": "Kyoto is a town. ", "numbers": "{} ", "list": "{}, ", "sums": "{} + 1 = 2. ", "if": "if {} ",
    "lines of sums": "{} + 1 = 2\n", "tags": "<b>{}</b> ", "answers": "<answer>{}</answer> ", "dots": ". ",
    "marks": "! ", "quotes": "\"answer\": {}, ",
    "statements": "The answer is {}. ", "boxes": r"\boxed{{{}}} ", "boxes in formulas": r"$x = -\boxed{{{}}}$ m ",
    "dollars": "$", "money": "${} and ", "formulas": "$x_{{{}}}$ ", "brackets": "(", "pairs": "(({})) ", "braces": "{{",
    "commands": r"\frac{{{}}}{{2}} ", "texts": r"\text{{a}} ", "turns": "User: {}\n", "questions": "\nQ: {}\nA: {}\n",
    "calls": "<tool_call>{{}}</tool_call>\n", "fences": "```python\n", "thoughts": "<think>{}</think> ", 
    "ends": "<|im_end|>\n", "options": "A) {} ", "letters": "B or C, ", "emphasis": "**{}** ", "units": "{} km ",
    "about": "about {} ", "not": "not {} ", "so": "so it is {}, ", "Chinese": "\u6240\u4ee5\u7b54\u6848\u662f{}\u3002",
    "Russian": "\u041e\u0442\u0432\u0435\u0442 {}. ", "dashes": "- ",
}
# fmt: on
FRAMES = {
    "last": "{}",
    "stated": "The answer is {}",
    "first": "The answer is Kyoto. {}",
    "boxed": r"\boxed{{{}}}",
    "before": "{} So she has 13 apples.",
}
EVERY = [(frame, name) for frame in FRAMES for name in TEXTS]
ORDINARY = [
    *(("last", name) for name in ("sentences", "lines", "sums", "tags", "statements", "boxes", "dollars", "brackets")),
    *((frame, "one sentence") for frame in FRAMES),
]
"""Every frame and the most usual texts; the slow suite tries each text in each frame."""


def _exact(answer: str) -> Callable[[str], object]:
    return lambda text: fast_verdict(answer, text)


def _by(rule: Any, answer: str) -> Callable[[str], object]:
    problem = Problem("p", "Which? A) 1 B) 2", answer)
    return lambda text: rule.verdict(problem, text)


ENTRIES: dict[str, Callable[[str], object]] = {
    "reply": reply_of,
    "number": _exact("12"),
    "quantity": _exact("12 km"),
    "formula": _exact("x+1"),
    "words": _exact("Tokyo"),
    "option": _by(ChoiceRule(), "B"),
    "within a tolerance": _by(NumericRule(), "12"),
}


def _text(part: str, length: int, first: int) -> str:
    pieces, size = [], 0
    while size < length:
        pieces.append(part.format(*[first + len(pieces)] * part.count("{}")))
        size += len(pieces[-1])
    return "".join(pieces)


class _Counted:
    """A compiled pattern that counts the characters that it scans."""

    def __init__(self, pattern: re.Pattern[str], count: Callable[[int], None]) -> None:
        self._pattern, self._count = pattern, count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)

    def _searched(self, name: str, text: str, *span: int) -> re.Match[str] | None:
        match = getattr(self._pattern, name)(text, *span)
        start, end = (*span, len(text))[:2] if len(span) < 2 else span
        is_search = name == "search"
        self._count(match.end() - min(start, match.end()) if match else (end - start if is_search else 0))
        return match

    def search(self, text: str, *span: int) -> re.Match[str] | None:
        return self._searched("search", text, *(span or (0,)))

    def match(self, text: str, *span: int) -> re.Match[str] | None:
        return self._searched("match", text, *(span or (0,)))

    def fullmatch(self, text: str, *span: int) -> re.Match[str] | None:
        return self._searched("fullmatch", text, *(span or (0,)))

    def finditer(self, text: str, *span: int) -> Iterator[re.Match[str]]:
        last = span[0] if span else 0
        for match in self._pattern.finditer(text, *span):
            self._count(match.end() - last)
            last = match.end()
            yield match
        self._count(max(0, len(text) - last))

    def findall(self, text: str, *span: int) -> list[Any]:
        self._count(len(text))
        return self._pattern.findall(text, *span)

    def sub(self, new: Any, text: str, count: int = 0) -> str:
        self._count(len(text))
        return self._pattern.sub(new, text, count)

    def split(self, text: str) -> list[Any]:
        self._count(len(text))
        return self._pattern.split(text)


class Meter:
    """The work that a call of the rules is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = 0
        names = [module.name for module in pkgutil.walk_packages(rules.__path__, "cooper_verify.rules.")]
        modules = [importlib.import_module(name) for name in names if not name.endswith((".worker", ".outside"))]
        for module in [*modules, thoughts]:
            for name, value in list(vars(module).items()):
                if isinstance(value, re.Pattern):
                    monkeypatch.setattr(module, name, _Counted(value, self._add))
            if getattr(module, "re", None) is re:
                monkeypatch.setattr(module, "re", self._counted_re())

    def _add(self, size: int) -> None:
        self.work += size

    def _counted_re(self) -> SimpleNamespace:
        def of(pattern: str, flags: int) -> _Counted:
            return _Counted(re.compile(pattern, flags), self._add)

        return SimpleNamespace(
            **{name: value for name, value in vars(re).items() if name.isupper() or name in ("Match", "Pattern")},
            escape=re.escape,
            compile=lambda pattern, flags=0: of(pattern, flags),
            search=lambda pattern, text, flags=0: of(pattern, flags).search(text),
            match=lambda pattern, text, flags=0: of(pattern, flags).match(text),
            fullmatch=lambda pattern, text, flags=0: of(pattern, flags).fullmatch(text),
            findall=lambda pattern, text, flags=0: of(pattern, flags).findall(text),
            finditer=lambda pattern, text, flags=0: of(pattern, flags).finditer(text),
            sub=lambda pattern, new, text, flags=0: of(pattern, flags).sub(new, text),
            split=lambda pattern, text, flags=0: of(pattern, flags).split(text),
        )

    def of(self, entry: Callable[[str], object], text: str) -> int:
        def called(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(FOLDER):
                given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
                texts = [value for name in given if isinstance(value := frame.f_locals.get(name), str)]
                self.work += 1 + sum(map(len, texts))

        self.work = 0
        sys.setprofile(called)
        try:
            entry(text)
        finally:
            sys.setprofile(None)
        return self.work


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    return Meter(monkeypatch)


def _growth(meter: Meter, entry: Callable[[str], object], frame: str, part: str, first: int = 17) -> float:
    """The work for each character of a long text, as a multiple of that of a short one. Figures count from `first`."""
    short, long = (frame.format(_text(part, length, first)) for length in (SHORT, LONG))
    return (meter.of(entry, long) / len(long)) / (meter.of(entry, short) / len(short))


def _grown(meter: Meter, entry: str, kinds: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float]:
    first = 17 + 10_000 * list(ENTRIES).index(entry)  # another entry's text would come from a cache
    growths = {kind: _growth(meter, ENTRIES[entry], FRAMES[kind[0]], TEXTS[kind[1]], first) for kind in kinds}
    return {kind: round(growth, 1) for kind, growth in growths.items() if growth > MOST}


@pytest.mark.parametrize("entry", first_fast(ENTRIES, 3))
def test_the_work_grows_as_the_length_of_an_ordinary_text(meter: Meter, entry: str):
    assert _grown(meter, entry, ORDINARY) == {}


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_work_grows_as_the_length_of_any_text(meter: Meter, entry: str):
    assert _grown(meter, entry, EVERY) == {}


def test_a_loop_over_a_linear_pattern_is_found(meter: Meter):
    full_stop = _Counted(re.compile(r"\."), meter._add)
    words = _Counted(re.compile(r"\w+"), meter._add)

    def beginnings(text: str) -> None:
        for stop in full_stop.finditer(text):
            words.sub("", text[: stop.start()])

    assert _growth(meter, beginnings, "{}", PROSE) > MOST
    assert _growth(meter, lambda text: words.findall(text), "{}", PROSE) < 2
