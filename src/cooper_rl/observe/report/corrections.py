"""Which pair later taught the reward model that a completion of the gallery is wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from cooper_rl.observe.report.completions import Row, cut, digest
from cooper_rl.observe.report.run_folder import RunFolder
from cooper_rl.observe.run_record import read_lines

PAIRS = 12
"""Pairs of the last steps that the report lists."""

LOGITS = ("positive_logit_before", "negative_logit_before", "positive_logit_after", "negative_logit_after")


def read_pairs(run: RunFolder, gallery: Sequence[Row]) -> dict[int, dict[str, int]]:
    """Give every item a `pair`: the first pair, from its step on, that has its text as the negative of its problem.

    An item that no pair holds gets none. Texts are compared in the form that the reward model reads. Returns, by step,
    the number of pairs of every origin.
    """
    counts: dict[int, dict[str, int]] = {}
    waiting: dict[tuple[str, str], list[Row]] = {}
    for item in gallery:
        waiting.setdefault((item.get("problem", ""), item["digest"]), []).append(item)
    problems = {problem for problem, _ in waiting}
    for path in run.files("pairs"):
        step = int(path.stem)
        origins = counts.setdefault(step, {})
        for pair in read_lines(path):
            origin = str(pair.get("negative_origin", "unknown"))
            origins[origin] = origins.get(origin, 0) + 1
            problem = str(pair.get("problem_id", ""))
            if problem not in problems or "negative" not in pair:
                continue
            for item in waiting.get((problem, digest(str(pair["negative"]))), ()):
                if "pair" not in item and step >= item["step"]:
                    item["pair"] = shown_pair(step, pair)
    return counts


def last_pairs(run: RunFolder) -> list[Row]:
    """The pairs of the last steps that had pairs, at most `PAIRS`, the newest step first."""
    found: list[Row] = []
    for path in reversed(run.files("pairs")):
        found += [shown_pair(int(path.stem), pair) for pair in read_lines(path)][: PAIRS - len(found)]
        if len(found) >= PAIRS:
            break
    return found


def shown_pair(step: int, pair: Mapping[str, Any]) -> Row:
    """What the page shows of a pair: texts, origins and logits."""
    texts = {name: cut(str(pair.get(name, ""))) for name in ("question", "answer", "positive", "negative")}
    kept = {name: pair[name] for name in (*LOGITS, "positive_origin", "negative_origin", "label") if name in pair}
    return {"step": step, **texts, **kept}
