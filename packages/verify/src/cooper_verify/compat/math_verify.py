"""In place of Math-Verify: `parse`, `verify`, `math_metric`, the extraction configs, `TimeoutException`.

What differs from Math-Verify 0.9:

- **Any thread, process or loop.** Math-Verify limits time by `signal.alarm`, which raises outside the main thread, and
  with its time-out off it may hang. Here each comparison may take 5 CPU seconds in a process that is killed, so
  `parsing_timeout` and `timeout_seconds` are accepted and not needed. Nothing raises, whatever `raise_on_error` says.
- **An answer is read with its reference.** `parse` returns at most one item, the text with the answer that stands in
  it. `verify` reads both together, so units, options, lists and text are read as the reference needs. The item is no
  sympy value; `str()` of it is the answer as it is written.
- **Where the answer is** does not depend on the extraction config, `extraction_mode` or `fallback_mode`: it is the last
  box, a statement, or the last sentence, after any thought. Several different answers are refused.
- **What counts as equal** does not depend on `float_rounding`, `numeric_precision`, `strict` or
  `allow_set_relation_comp`. `verify` is True only for the verdict `correct`; `wrong`, `unparsed` and `timeout` are
  False. `RuleVerifier.verify` tells these apart.
- A reference in words ("forty two", "Paris") is readable, and not `[]`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from cooper_base.data.text import boxed, has_content
from cooper_verify.compat.process_rule import verdicts, written
from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.processes.guard import guarded


class TimeoutException(BaseException):
    """For `except`: nothing here raises it."""


@dataclass(frozen=True)
class LatexExtractionConfig:
    """Accepted as Math-Verify's; changes nothing."""

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


@dataclass(frozen=True)
class ExprExtractionConfig:
    """Accepted as Math-Verify's; changes nothing."""

    try_extract_without_anchor: bool = True


@dataclass(frozen=True)
class StringExtractionConfig:
    """Accepted as Math-Verify's; changes nothing: options are read where the reference is one."""

    strings: tuple[str, ...] = ("A", "B", "C", "D")
    try_extract_without_anchor: bool = True
    lowercase: bool = True


@dataclass(frozen=True)
class ParsedAnswer:
    """A text that holds an answer."""

    text: str
    """All of it: what stands around an answer belongs to it."""
    answer: str
    """The answer as it is written, without box, dollars and statement."""

    def __str__(self) -> str:
        return self.answer

    __repr__ = __str__


def parse(
    pred: Any,
    extraction_config: Sequence[Any] = (),
    fallback_mode: str = "first_match",
    extraction_mode: str = "any_match",
    parsing_timeout: float | None = 5,
    raise_on_error: bool = False,
) -> list[Any]:
    """The answer of a completion or a reference, as a list of one `ParsedAnswer`; empty if there is none.

    Only `pred` is used.
    """
    text = written(pred)
    answer = guarded(reference_text, [(text,)], "")[0]
    return [ParsedAnswer(text, answer)] if has_content(answer) else []


def verify(
    gold: Any,
    target: Any,
    float_rounding: int = 6,
    numeric_precision: int = 15,
    strict: bool = True,
    allow_set_relation_comp: bool = False,
    timeout_seconds: float | None = 5,
    raise_on_error: bool = False,
) -> bool:
    """Whether any of the answers equals any of the references. Both are what `parse` returned, an item of it, text, a
    number, a sympy value, or a list of these. Only `gold` and `target` are used.
    """
    golds, targets = (value if isinstance(value, list) else [value] for value in (gold, target))
    return "correct" in verdicts([(_reference(one), _completion(other)) for one, other in product(golds, targets)])


def _reference(item: Any) -> str:
    return item.text if isinstance(item, ParsedAnswer) else written(item)


def _completion(item: Any) -> str:
    return item.text if isinstance(item, ParsedAnswer) else boxed(written(item))


Extracted = tuple[list[str], list[str]]
"""The references and the answers, as they are written."""


def math_metric(
    gold_extraction_target: Sequence[Any] = (),
    pred_extraction_target: Sequence[Any] = (),
    aggregation_function: Callable[[list[float]], float] = max,
    precision: int = 6,
) -> Callable[[list[str], list[str]], tuple[float, Extracted | None]]:
    """A function of references and predictions. It returns the aggregate of 1.0 for each prediction that equals any of
    the references, else 0.0, and what was extracted. Only `aggregation_function` is used.

    A reference without an answer scores 0.0, where Math-Verify raises ValueError, and so do no predictions.
    """

    def score(golds: list[str], predictions: list[str]) -> tuple[float, Extracted | None]:
        parsed_golds, parsed = ([item for text in texts for item in parse(text)] for texts in (golds, predictions))
        scores = [float(verify(parsed_golds, parse(prediction))) for prediction in predictions]
        return aggregation_function(scores or [0.0]), ([*map(str, parsed_golds)], [*map(str, parsed)])

    return score
