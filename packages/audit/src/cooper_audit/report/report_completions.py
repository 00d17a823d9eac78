"""The sample of completions that a report contains: wrong ones for its gallery, whole groups for its browser."""

import hashlib
import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from cooper_audit.report.first_screen import paid_and_wrong, right_and_unpaid
from cooper_audit.run.hacking_alarm import WINDOW
from cooper_audit.run.run_record import RunRecord, is_right, read_groups
from cooper_audit.run.run_record import read_pairs as read_lines_of_pairs
from cooper_base.data.text import normalise

GALLERY, PER_STEP = 400, 4
"""How many of the best-scored wrong completions that were paid are kept, each text once: of a step, and of the whole
page if that is more."""
STEPS, GROUPS, COMPLETIONS = 20, 8, 64
"""How many evenly spread steps are kept besides those that the report points at, groups of a step, and completions of a
group."""
LONGEST = 6000
"""A text with more characters is shortened to its beginning and its end."""
PAGE_BYTES = 3_000_000
"""If a run's sample is larger than its share of this size, fewer steps and items are kept. If a run's rollouts take
less than half of its share on disk, all groups are kept."""
SAMPLE_NOTE = (
    f"Of a long run this page holds a sample of the completions, at most about {PAGE_BYTES // 1_000_000} MB: the "
    f"best-scored wrong ones of every step that were paid (up to {PER_STEP} of a step), and whole groups of up to "
    f"{STEPS} evenly spread steps, half of them those with the best-scored wrong completion. The run's folder has all "
    "of them, and `cooper watch --web` shows them."
)
ACCEPTED = 0.5
"""A score above this accepts a completion, as in `reward_model/false_accept_rate`."""
REJECTED = ("wrong", "unparsed")
"""Verdicts by which the rule does not accept a completion that it judges."""
PAIRS = 12
"""Pairs of the last steps that the report lists."""
LOGITS = ("positive_logit_before", "negative_logit_before", "positive_logit_after", "negative_logit_after")

ReportRow = dict[str, Any]
"""A group, completion or pair as the report shows it."""


@dataclass
class Sample:
    gallery: list[ReportRow] = field(default_factory=list)
    """Wrong completions that were paid, with their problem, best score first within a step."""
    payments: list[ReportRow] = field(default_factory=list)
    """Of every step a few of them, each beside a right completion of its group that was paid less."""
    steps: dict[int, list[ReportRow]] = field(default_factory=dict)
    """For each step, some groups of its rollouts."""
    fooled: list[tuple[int, float, int, int]] = field(default_factory=list)
    """For each step: the share of the judged completions that are wrong and yet accepted, their number, and the number
    of all wrong ones."""
    completions: int = 0
    judged: int = 0
    """Number of recorded completions, and of those that gold, or else the rule, has judged."""
    recorded_steps: int = 0
    """Steps whose rollouts are on disk."""
    problems_of_step: int = 0
    """Groups of the largest step."""
    means: dict[str, list[float]] = field(default_factory=dict)
    """For each measure (`gold`, `rule`), the share of right completions in every group of the last steps, for
    intervals."""


def score_of(completion: Mapping[str, Any]) -> float:
    """The reward's opinion of a completion: the reward model's score, else the reward before any shaping."""
    values = (completion.get(name) for name in ("reward_model", "unshaped", "reward"))
    value = next((value for value in values if isinstance(value, int | float)), -math.inf)
    return float(value) if math.isfinite(value) else -math.inf


def is_paid(completion: Mapping[str, Any]) -> bool:
    """Whether the reward accepts a completion: as the record says, where rewards are on no known scale, else by its
    score."""
    paid = completion.get("paid")
    return paid if isinstance(paid, bool) else score_of(completion) > ACCEPTED


class Sampler:
    """Keeps what the limits above allow of a run's completions, as its steps are read."""

    def __init__(self, run: RunRecord, share: float = 1.0) -> None:
        """`share` is the run's part of the page."""
        self._files = {int(path.stem): path for path in run.files("rollouts")}
        steps, self._share = [*self._files], share
        self._keeps_all = sum(path.stat().st_size for path in self._files.values()) < PAGE_BYTES * share / 2
        self._shown, self._last = set(spread(steps, len(steps) if self._keeps_all else STEPS)), set(steps[-WINDOW:])
        self._sample = Sample(recorded_steps=len(steps))

    def add(self, step: int, groups: Sequence[ReportRow]) -> None:
        """Look at the recorded groups of a step, which is later than all before."""
        sample = self._sample
        is_right_of = _rights(groups)
        labels = [*is_right_of.values()]
        wrong = [(group, row) for group in groups for row in group["completions"] if is_right_of[id(row)] is False]
        paid, judged = [entry for entry in wrong if is_paid(entry[1])], len(labels) - labels.count(None)
        share_paid = len(paid) / max(judged, 1)
        sample.fooled.append((step, share_paid, len(paid), len(wrong)))
        sample.payments += [
            {"step": step, "share": share_paid, **_problem(group), "wrong": _kept(row), "right": right and _kept(right)}
            for group, row, right in paid_and_wrong(paid, is_right_of)
        ]
        sample.completions, sample.judged = sample.completions + len(labels), sample.judged + judged
        sample.problems_of_step = max(sample.problems_of_step, len(groups))
        sample.gallery += [
            {"step": step, "digest": digest(str(row.get("text", ""))), **_problem(group), **_kept(row)}
            for group, row in _best_texts(paid)
        ]
        if step in self._shown:
            sample.steps[step] = self._shown_groups(groups)
        for group in groups if step in self._last else ():
            _add_means(sample, group["completions"])

    def sample(self, wanted_steps: Iterable[int] = ()) -> Sample:
        """The sample of all steps so far, with groups of these steps."""
        sample, wanted, budget = self._sample, set(wanted_steps), PAGE_BYTES * self._share
        for step in (wanted - self._shown) & self._files.keys():
            if groups := read_groups(self._files[step]):
                sample.steps[step] = self._shown_groups(groups)
        sample.gallery = _thinned(sample.gallery, max(12, round(GALLERY * self._share)))
        while len(sample.gallery) > 1 and _size(sample.gallery) > budget / 3:
            sample.gallery = _thinned(sample.gallery, len(sample.gallery) * 2 // 3)
        sample.gallery.sort(key=lambda item: (item["step"], -score_of(item)))
        steps = {step: sample.steps[step] for step in sorted(sample.steps)}
        sample.steps = _fitting_steps(steps, wanted, budget - _size(sample.gallery))
        return sample

    def unpaid(self) -> list[ReportRow]:
        """Of every step so far a few right completions, each beside one of its group that was paid more. The rollouts
        are read once more, because few verdicts show them."""
        return [
            {"step": step, "share": share, **_problem(group), "unpaid": _kept(row), "paid": _kept(other)}
            for step, share, *_ in self._sample.fooled
            for groups in [read_groups(self._files[step])]
            for group, row, other in right_and_unpaid(groups, _rights(groups))
        ]

    def _shown_groups(self, groups: Sequence[ReportRow]) -> list[ReportRow]:
        chosen, most = (groups, None) if self._keeps_all else (_chosen_groups(groups), COMPLETIONS)
        return [
            {**_problem(group), "of": len(rows), "completions": [_kept(row) for row in rows[:most]]}
            for group in chosen
            for rows in [group["completions"]]
        ]


def _rights(groups: Sequence[ReportRow]) -> dict[int, bool | None]:
    """Whether each completion is right, by its `id`."""
    return {id(row): is_right(row) for group in groups for row in group["completions"]}


def _add_means(sample: Sample, completions: Sequence[ReportRow]) -> None:
    """Add the shares of right completions of a group of the last steps."""
    heard = [row["verdict"] for row in completions if row.get("verdict") not in ("silent", None)]
    rights = {"rule": [verdict == "correct" for verdict in heard]}
    if all(isinstance(row.get("gold"), bool) for row in completions):
        rights["gold"] = [row["gold"] for row in completions]
    for name, right in ((name, right) for name, right in rights.items() if right):
        sample.means.setdefault(name, []).append(sum(right) / len(right))


def spread(items: Sequence[int], count: int) -> list[int]:
    """At most `count` of the items, evenly spread, with the first and the last."""
    if count == 1 or len(items) <= count:
        return list(items[-count:])
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def cut(text: str) -> str:
    """The text, or the beginning and the end of a long one."""
    half = LONGEST // 2
    left_out = f"\n[… {len(text) - 2 * half:,} characters left out …]\n"
    return text if len(text) <= LONGEST else text[:half] + left_out + text[-half:]


def digest(text: str) -> str:
    """A short key for a completion as the reward model reads it, by which its pairs are looked up."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _best_texts(wrong: Sequence[tuple[ReportRow, ReportRow]]) -> list[tuple[ReportRow, ReportRow]]:
    """The best-scored completions with different texts. The first half of them are ones that the rule rejects too, if
    there are any."""
    best: dict[str, tuple[ReportRow, ReportRow]] = {}
    for entry in sorted(wrong, key=lambda entry: -score_of(entry[1])):
        best.setdefault(str(entry[1].get("text")), entry)
    chosen = [text for text, (_, completion) in best.items() if completion.get("verdict") in REJECTED][: PER_STEP // 2]
    chosen += [text for text in best if text not in chosen][: PER_STEP - len(chosen)]
    return [best[text] for text in chosen]


def _problem(group: ReportRow) -> ReportRow:
    return {name: cut(str(group[name])) for name in ("problem", "question", "prompt", "answer") if name in group}


def _kept(completion: ReportRow) -> ReportRow:
    return plain({**completion, "text": cut(str(completion.get("text", "")))})


def _chosen_groups(groups: Sequence[ReportRow]) -> list[ReportRow]:
    """Chooses groups: half of them have the best-paid wrong completions, the others come in the order of the file."""
    wrong = [[completion for completion in group["completions"] if is_right(completion) is False] for group in groups]
    best = [max(map(score_of, completions), default=-math.inf) for completions in wrong]
    chosen = sorted(range(len(groups)), key=lambda i: -best[i])[: GROUPS // 2]
    chosen += [i for i in range(len(groups)) if i not in chosen][: GROUPS - len(chosen)]
    return [groups[i] for i in sorted(chosen)]


def _thinned(items: list[ReportRow], count: int) -> list[ReportRow]:
    """The best quarter of the whole run, and the best ones of evenly spread steps."""
    if len(items) <= count:
        return items
    chosen = set(heapq.nlargest(count // 4, range(len(items)), key=lambda i: score_of(items[i])))
    of_step: dict[int, list[int]] = {}
    for index, item in enumerate(items):
        of_step.setdefault(item["step"], []).append(index)
    for rank in range(PER_STEP):
        candidates = [
            indices[rank] for indices in of_step.values() if rank < len(indices) and indices[rank] not in chosen
        ]
        if (room := count - len(chosen)) > 0:
            chosen |= set(spread(candidates, room))
    return [items[i] for i in sorted(chosen)]


def _fitting_steps(steps: dict[int, list[ReportRow]], wanted: set[int], budget: float) -> dict[int, list[ReportRow]]:
    while steps and _size(steps) > budget and len(steps) > max(3, len(wanted)):
        kept = set(spread(sorted(steps), max(3, len(steps) * 2 // 3))) | (wanted & steps.keys())
        if len(kept) == len(steps):
            break
        steps = {step: steps[step] for step in sorted(kept)}
    while _size(steps) > budget and any(len(groups) > 1 for groups in steps.values()):
        steps = {step: groups[: max(1, len(groups) // 2)] for step, groups in steps.items()}
    return steps


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def read_pairs(run: RunRecord, gallery: Sequence[ReportRow]) -> dict[int, dict[str, int]]:
    """Add to items their `pair`: the first pair that has their text as its negative. Returns the number of pairs by
    step and origin."""
    counts: dict[int, dict[str, int]] = {}
    waiting: dict[tuple[str, str], list[ReportRow]] = {}
    for item in gallery:
        waiting.setdefault((item.get("problem", ""), item.pop("digest")), []).append(item)
    problems = {problem for problem, _ in waiting}
    for path in run.files("pairs"):
        step, pairs = int(path.stem), read_lines_of_pairs(path)
        counts[step] = Counter(str(pair.get("negative_origin", "unknown")) for pair in pairs)
        for pair in pairs:
            problem = str(pair.get("problem_id", ""))
            if problem in problems and "negative" in pair:
                for item in waiting.get((problem, digest(str(pair["negative"]))), ()):
                    if "pair" not in item and step >= item["step"]:
                        item["pair"] = shown_pair(step, pair)
    return counts


def last_pairs(run: RunRecord) -> list[ReportRow]:
    """The pairs of the last steps that had pairs, at most `PAIRS`, the newest step first."""
    pairs = ((int(path.stem), pair) for path in reversed(run.files("pairs")) for pair in read_lines_of_pairs(path))
    return [shown_pair(*entry) for entry in islice(pairs, PAIRS)]


def shown_pair(step: int, pair: Mapping[str, Any]) -> ReportRow:
    texts = {name: cut(str(pair.get(name, ""))) for name in ("question", "answer", "positive", "negative")}
    kept = {name: pair[name] for name in (*LOGITS, "positive_origin", "negative_origin", "label") if name in pair}
    return {"step": step, **texts, **kept}


def plain(value: Any) -> Any:
    """The value with its numbers rounded, as the page holds it."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        short = float(f"{value:.5g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value
