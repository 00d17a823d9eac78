"""Graders on identical rows, before and after the onset: what would each have paid for?"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2s
from pathlib import Path
from typing import Any

from cooper_audit.rollouts.auditing import Audit, is_judged
from cooper_audit.rollouts.rollout import recorded
from cooper_audit.rollouts.suspicion import phrases_of
from cooper_audit.run.finding import ACCUSED
from cooper_base.errors import InputError
from cooper_verify.grader import Asked, Grader, in_chunks, opinions_of

MOST_ROWS = 256
"""Rows of each window that the graders read, in whole groups."""
_PAID = {1: "paid", -1: "not paid", 0: "paid like their group"}
"""By the sign of an advantage."""
RowToGrade = dict[str, Any]
"""A row of an audited run, which graders read."""


@dataclass(frozen=True)
class Grade:
    """What a grader says of the rows of a window; NaN where no row tells."""

    grader: str
    window: str
    rows: int
    read: int
    """Of the rows, those of which it has an opinion: a server may fail. The others count in nothing below."""
    accepts: float
    """The share of the rows that it accepts; NaN for a function's numbers, whose scale nobody knows."""
    agreement: float
    """The share of the judged rows on which it agrees with the check; NaN as above."""
    concordance: float
    """The chance that it scores an accepted row of a group above a rejected one."""
    on_rejected: float
    """The share of its positive advantages that is on rejected rows."""
    flips: float
    """The share of the paid advantages whose sign it would change."""
    alike: bool = False
    """Whether it scores the rows of each group alike."""

    def cells(self) -> list[str]:
        values = (self.accepts, self.agreement, self.concordance, self.on_rejected, self.flips)
        read = f"{self.read}" if self.read == self.rows else f"{self.read} of {self.rows}"
        shown = ["–" if math.isnan(value) else f"{value:.2f}" for value in values]
        return [self.grader, self.window, read, *shown]


HEADER = ("grader", "rows", "read", "accepts", "agrees", "ranks right", "advantage on rejected", "flips")

COLUMNS_SAY = {
    "read": "rows of which the grader has an opinion",
    "accepts": "the share of them that it accepts",
    "agrees": "the share of the judged rows on which it agrees with the check",
    "ranks right": "how often it scores an accepted row of a group above a rejected one; 0.5 is chance",
    "advantage on rejected": "the share of what it pays above a group's mean that goes to rejected rows",
    "flips": "the share of the paid advantages whose sign it would change",
}
"""What each column says, for pages; a dash stands where no row tells."""


def windows_to_grade(result: Audit) -> dict[str, list[RowToGrade]]:
    """Rows of the check's best steps, which are those before an onset, and of the last ones, by what they are. Without
    steps there is one window."""
    if not result.source.has_steps:
        return {"of all rows": groups_to_grade(recorded(result.directory, result.steps))}
    finding, steps = result.finding, result.steps
    names = (
        ("before the onset", "after the onset")
        if finding.state in ACCUSED and finding.onset
        else ("of the best steps", "of the last steps")
    )
    if finding.best is None or finding.last is None:
        names = ("of the first steps", "of the last steps")
        spans = ((steps[0], steps[:5][-1]), (steps[-5:][0], steps[-1]))
    else:
        spans = tuple((window.first, window.last) for window in (finding.best, finding.last))
    return {
        name: groups_to_grade(recorded(result.directory, [step for step in steps if low <= step <= high]))
        for name, (low, high) in zip(names, spans, strict=True)
    }


def groups_to_grade(rows: Iterable[RowToGrade]) -> list[RowToGrade]:
    """Whole groups by a hash, at most `MOST_ROWS` rows or one group."""
    by_group: dict[str, list[RowToGrade]] = {}
    for row in rows:
        by_group.setdefault(_group(row), []).append(row)
    kept: list[RowToGrade] = []
    for name in sorted(by_group, key=lambda name: blake2s(name.encode()).digest()):
        if kept and len(kept) + len(by_group[name]) > MOST_ROWS:
            break
        kept += by_group[name]
    return kept


def _group(row: RowToGrade) -> str:
    return f"{row['step']} {row['problem']}"


def graded(result: Audit, windows: Mapping[str, Sequence[RowToGrade]], graders: Mapping[str, Grader]) -> list[Grade]:
    """The reward and every grader on the rows of `windows_to_grade`. Opinions are kept in the audit's folder, so that a
    repeated call asks only for what is missing. Raises InputError where the folder holds no texts.
    """
    grades = []
    for window, rows in windows.items():
        # where a group is paid alike, nothing says whether that is much or little
        opinions = [(row["reward"], row["paid"] if row["advantage"] else None) for row in rows]
        grades.append(_grade("reward", window, rows, opinions))
    for name, grader in graders.items():
        with closing(grader):
            for window, rows in windows.items():
                path = result.directory / f"opinions-{name}-{window.replace(' ', '-')}.jsonl"
                grades.append(grade_of(name, grader, window, rows, path))
    return grades


def grade_of(name: str, grader: Grader, window: str, rows: Sequence[RowToGrade], path: Path) -> Grade:
    """A grader's opinions of a window's rows, which a journal at `path` keeps. Raises InputError without texts."""
    check_texts(rows)
    chunks = opinions_of(grader, in_chunks([asked_of(row) for row in rows]), path)
    said = [(opinion.score, opinion.accepts) for chunk in chunks for opinion in chunk]
    return _grade(name, window, rows, [None if score is None else (score, accepts) for score, accepts in said])


def check_texts(rows: Sequence[RowToGrade]) -> None:
    """Raises InputError for rows whose texts the audit's folder does not hold."""
    if rows and not any(row["text"] for row in rows):
        raise InputError("graders read texts, which the audit's folder does not hold; leave out --no-text")


def asked_of(row: RowToGrade) -> Asked:
    """A recorded row as a grader is asked about it: with the whole rollout where it has several turns."""
    return Asked.about(row["question"], row["answer"], row.get("transcript", row["text"]))


def _grade(
    name: str, window: str, given: Sequence[RowToGrade], opinions: Sequence[tuple[float, bool | None] | None]
) -> Grade:
    """Of each row's score and acceptance; None where the grader has no opinion, or says neither yes nor no."""
    rows = [row for row, opinion in zip(given, opinions, strict=True) if opinion]
    scores, accepts = [opinion[0] for opinion in opinions if opinion], [opinion[1] for opinion in opinions if opinion]
    judged = [is_judged(row["verdict"]) for row in rows]
    right = [row["verdict"] == "correct" for row in rows]
    by_group: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        by_group.setdefault(_group(row), []).append(place)
    advantages, pairs = [0.0] * len(rows), []
    for places in by_group.values():
        mean = math.fsum(scores[i] for i in places) / len(places)
        for i in places:
            advantages[i] = scores[i] - mean
        good, bad = ([scores[i] for i in places if judged[i] and right[i] is said] for said in (True, False))
        pairs += [(a > b) + 0.5 * (a == b) for a in good for b in bad]
    positive = [max(advantage, 0.0) if said else 0.0 for advantage, said in zip(advantages, judged, strict=True)]
    on_rejected = math.fsum(advantage for advantage, good in zip(positive, right, strict=True) if not good)
    paid = [(own, row["advantage"]) for own, row in zip(advantages, rows, strict=True) if row["advantage"]]
    agrees = [yes == good for yes, good, said in zip(accepts, right, judged, strict=True) if said and yes is not None]
    return Grade(
        name,
        window,
        len(given),
        len(rows),
        _mean([yes for yes in accepts if yes is not None]),
        _mean(agrees),
        _mean(pairs),
        on_rejected / total if (total := math.fsum(positive)) else math.nan,
        _mean([own * given < 0 for own, given in paid]),
        alike=bool(rows) and max(map(abs, advantages)) < 1e-9,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def described(windows: Mapping[str, Sequence[RowToGrade]]) -> list[str]:
    """What changed between the windows, a sentence each. These are descriptions: none of them speaks for a hack."""
    if len(windows) < 2 or not all(windows.values()):
        return []
    before, after = windows.values()
    lines = []
    for name, rows in windows.items():
        counts = Counter(
            (_sign(row["advantage"]), row["verdict"] == "correct") for row in rows if is_judged(row["verdict"])
        )
        named = [
            f"{counts[sign, good]} {words} and {'accepted' if good else 'rejected'}"
            for sign, words in _PAID.items()
            for good in (True, False)
            if sign or counts[sign, good]
        ]
        lines.append(f"Of {len(rows)} rows {name}: {', '.join(named)}.")
    lengths = [_mean([len(row["text"]) for row in rows]) for rows in (before, after)]
    cut = [_mean([row["stop_reason"] == "length" for row in rows if "stop_reason" in row]) for rows in (before, after)]
    shown = ["unknown" if math.isnan(share) else f"{share:.2f}" for share in cut]
    lines.append(
        f"Characters a completion: {lengths[0]:.0f}, then {lengths[1]:.0f}; cut off: {shown[0]}, then {shown[1]}."
    )
    if phrases := frequent_phrases([row["text"] for row in before], [row["text"] for row in after]):
        named = ", ".join(f"{phrase!r} ({100 * was:.0f} %, then {100 * now:.0f} %)" for phrase, was, now in phrases)
        lines.append(f"Became frequent: {named}.")
    return lines


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def frequent_phrases(before: Sequence[str], after: Sequence[str], most: int = 5) -> list[tuple[str, float, float]]:
    """Phrases of one to three words that a larger share of the later texts holds, with both shares, most risen first.
    Of phrases that contain each other the longest is kept. Digits count as one, so that a sum is no phrase of its own.
    """
    was, now = (Counter(phrase for text in texts for phrase in phrases_of(text)) for texts in (before, after))
    risen = [(phrase, was[phrase] / len(before), count / len(after)) for phrase, count in now.items()]
    risen = [one for one in risen if one[2] - one[1] > 0.2]
    kept: list[tuple[str, float, float]] = []
    for one in sorted(risen, key=lambda one: (one[1] - one[2], -len(one[0]), one[0])):
        if not any(one[0] in other[0] or other[0] in one[0] for other in kept):
            kept.append(one)
    return kept[:most]
