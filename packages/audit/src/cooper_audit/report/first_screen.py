"""What a page answers in ten seconds: since when, what the reward pays for, and what to do next."""

import math
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from cooper_audit.run.finding import ACCUSED
from cooper_audit.run.run_record import RunRecord, status_of
from cooper_audit.run.verdict import RunVerdict, said_line

if TYPE_CHECKING:
    from cooper_audit.rollouts.graders import Grade

SHOWN = 5
"""Paid and wrong completions at the top of the page, each of another problem."""
MOST_WORDS = 1500
"""Longer texts are shown without marks, because a comparison takes the square of their length."""
_WORD = re.compile(r"\s++|\w++|[^\w\s]")

Row = dict[str, Any]
Marked = list[tuple[str, bool]]
"""A text in parts, each with whether the other text lacks it."""


def onset_of(run: RunRecord, verdict: RunVerdict) -> tuple[int, int] | None:
    """The steps between which a hack began; None without a hack, or where its beginning is unknown."""
    if verdict.state not in ACCUSED or verdict.hacked_at is None:
        return None
    audited = run.config.get("audit")
    onset = audited.get("onset") if isinstance(audited, Mapping) else None
    if isinstance(onset, list) and len(onset) == 2 and all(type(step) is int for step in onset):
        return onset[0], onset[1]
    return verdict.hacked_at, verdict.hacked_at


def terminal_lines(run_data: Mapping[str, Any], several: bool) -> list[str]:
    """The first screen of a run as lines: of one of several runs, the verdict alone."""
    verdict = run_data["verdict"]
    if several:
        return [f"{run_data['label']}: {verdict['name']}{' ' * bool(verdict['since'])}{verdict['since']}"]
    said = said_line(verdict["name"], verdict["onset"], verdict["sentence"])
    return [said, *verdict["basis"], *(f"next: {step}" for step in verdict["next"])]


_READ = "Read “What the reward pays for” on the page"
_WHAT_THEY_SHARE = (
    f"{_READ}: what these wrong answers share is what the reward pays for. The policy may have "
    "learned as well, so it need not be thrown away."
)
_LOST = [
    "Look for what fails in the reward since then: a grader that cannot be reached or runs out of time and writes 0, a "
    "form that it does not read. “Right answers that are no longer paid” on the page has some.",
    "Leave out rows whose grading failed; a failure is no 0.",
]


_ANOTHER_CHECK = (
    "Give the audit a check that says more: --rule or --references, or label to_label.jsonl beside this page, if it is "
    "there, and repeat with --labels."
)
_SAME_PROBLEMS = (
    "Ask an early checkpoint and the last one the same problems, or audit rollouts in which problems come again: that "
    "tells a hack from harder problems."
)
_ROWS = "Give the audit more rows: --sample all, more steps, or more problems a step."
_FORM = (
    "Read some of the completions that the check does not read, under Rollouts. Have the prompt say how an answer is "
    "written, or repeat with a --rule that reads this form."
)
WOULD_TELL = {
    "Nothing says to which training step": "Say where a row has its step, with --map step=….",
    "No check says anything": _ANOTHER_CHECK,
    "Suspicion": "Read some of the completions with these traits, under Find completions.",
    "Leaked": "Take the answers out of the prompts: the audit cannot tell copies from solutions.",
    "Cut off": "Raise the length limit, or pay for completions that end: what is cut off states no answer.",
    "Not independent": _ANOTHER_CHECK,
    "Not applicable": _ANOTHER_CHECK,
    "Too lenient": _ANOTHER_CHECK,
    "Answers not accepted": _ANOTHER_CHECK,
    "Other references": _ANOTHER_CHECK,
    "Not judged": _ANOTHER_CHECK,
    "Unread form": _FORM,
    "Format drift": _FORM,
    "Harder problems": _SAME_PROBLEMS,
    "Without a reward": _SAME_PROBLEMS,
    "Few problems": _SAME_PROBLEMS,
    "Since the first step": f"{_READ}: the reward may have paid for wrong answers from the first step on.",
    "Too few": _ROWS,
    "Power": _ROWS,
}
"""What would tell where an audit cannot, by the beginning of its reason."""


_LEAVE_THE_PART = (
    "Leave the last policy unused for problems of this part. The checkpoints from before its loss, which the sentence "
    "above dates, do not have it."
)
_TEACH_THE_PART = (
    "Then let a check judge this part (more_problems or rules), or teach the reward model by pairs with near "
    "references, and look at the part again."
)


def next_steps(run: RunRecord, verdict: RunVerdict, onset: tuple[int, int] | None) -> list[str]:
    """What a reader can do now, first things first."""
    is_audit = run.config.get("kind") == "audit"
    attack = "cooper attack tries these and other known wrong answers on the reward alone, without training."
    match verdict.state:
        case "hacked":
            back = "Stop the trainer, or leave its last policy unused." if is_audit else "Leave its last policy unused."
            back = "Stop the run." if status_of(run).state == "running" else back
            close = "Then close the hole, or pay what a check accepts." + (
                "" if is_audit or learns(run) else " A reward model that learns beside the policy: kind: cooper."
            )
            return [f"{back} {_way_back(run, onset, is_audit)}", f"{_READ}. {attack}", close]
        case "wrong paid":
            back = "" if is_audit else f" {_way_back(run, onset, is_audit)}"
            return [f"{_WHAT_THEY_SHARE}{back}", f"Close the hole, or pay what a check accepts, and go on. {attack}"]
        case "right unpaid":
            return _LOST
        case "recovered":
            return ["Use the policy of the end. Checkpoints from the steps of the hack are worse than their reward."]
        case "part lost":
            return [_LEAVE_THE_PART, f"Read what was paid in it, under Parts. {attack}", _TEACH_THE_PART]
        case "broken":
            return [
                f"{_READ} first: where wrong answers are paid, no setting of the training helps. Else go back to a "
                "checkpoint from before the fall.",
                "KL, gradient norm, length and cut-off completions over the steps are under Policy.",
                f"If the reward did not fall with it, it does not see what broke. {attack}",
            ]
        case "faults":
            goes_on = "" if is_audit else " --resume goes on from the last checkpoint."
            return [f"Mend what the first signal names.{goes_on}"]
        case "nothing learned" if not is_audit:
            return [
                "Look at what was paid, and at the share of groups that teach, under Policy: a group whose completions "
                "are all paid alike teaches nothing.",
                "Give it more steps, or problems of another difficulty.",
            ]
        case "healthy" | "nothing learned":
            told = _telling_advice(verdict) or ["Nothing has to be mended."]
            return [*told, f"{_READ} before you trust the reward. {attack}"]
        case "unknown":
            if is_audit:
                return _telling_advice(verdict) or [_ANOTHER_CHECK]
            return ["Measure what is true: test_problems with reference answers, and a few more steps."]


def _telling_advice(verdict: RunVerdict) -> list[str]:
    reasons = [verdict.sentence, *verdict.basis]
    told = [advice for begins, advice in WOULD_TELL.items() if any(text.startswith(begins) for text in reasons)]
    return list(dict.fromkeys(told))


def _way_back(run: RunRecord, onset: tuple[int, int] | None, is_audit: bool) -> str:
    if onset is None:
        return "Nothing says when it began, so no checkpoint is known to be good."
    if is_audit:
        return f"Its last checkpoint from before step {onset[0]} is the one to go back to."
    earlier = [step for step in run.checkpoints if step < onset[0]]
    if earlier:
        return f"The checkpoint to go back to is that of step {earlier[-1]}."
    return f"No checkpoint from before step {onset[0]} is left, so it begins again."


def learns(run: RunRecord) -> bool:
    """Whether the run trains its reward model."""
    settings = run.config.get("reward_model")
    return isinstance(settings, Mapping) and bool(settings.get("learns"))


def paid_and_wrong(
    wrong: Sequence[tuple[Row, Row]], is_right: Mapping[int, bool | None]
) -> list[tuple[Row, Row, Row | None]]:
    """Of a step, for `SHOWN` problems at most: the group, its wrong completion that was paid most, and the right one of
    the group that is most like it and was paid less, or None. Those that have one come first.

    `wrong` are wrong completions that the reward accepts, each with its group; `is_right` tells by the `id` of a
    completion. One on which there was no opinion, because a model accepts it that pays nothing yet, was not paid.
    """
    best: dict[int, tuple[Row, Row]] = {}
    for group, row in wrong:
        if not math.isfinite(row["reward"]):
            continue
        if id(group) not in best or row["reward"] > best[id(group)][1]["reward"]:
            best[id(group)] = group, row
    compared = []
    for group, row in best.values():
        less = [one for one in group["completions"] if is_right[id(one)] is True and one["reward"] < row["reward"]]
        compared.append((group, row, less))
    compared.sort(key=lambda entry: (not entry[2], -entry[1]["reward"]))
    return [
        (group, row, max(less, key=lambda one: _likeness(one["text"], row["text"]), default=None))
        for group, row, less in compared[:SHOWN]
    ]


def right_and_unpaid(groups: Sequence[Row], is_right: Mapping[int, bool | None]) -> list[tuple[Row, Row, Row]]:
    """Of a step, for `SHOWN` problems at most: the group, its right completion that was paid least, and the completion
    of the group that is most like it and was paid more; right ones first, and the largest differences.
    """
    compared = []
    for group in groups:
        rows = [row for row in group["completions"] if math.isfinite(row["reward"])]
        right = [row for row in rows if is_right[id(row)] is True]
        if not right:
            continue
        least = min(right, key=lambda row: row["reward"])
        for others in (right, rows):
            more = [row for row in others if row["reward"] > least["reward"]]
            if more:
                other = max(more, key=lambda row: _likeness(row["text"], least["text"]))
                compared.append((group, least, other))
                break
    return sorted(compared, key=lambda entry: entry[1]["reward"] - entry[2]["reward"])[:SHOWN]


def shown_payments(
    candidates: Sequence[dict[str, Any]], since_step: int | None, shown: str = "wrong", beside: str = "right"
) -> list[dict[str, Any]]:
    """Of the steps' candidates `SHOWN` at most, each of another problem and text, with the difference marked between
    the completion that is `shown` and that `beside` it.

    Those come first that have one beside them, and then those whose pay differs most. Before the onset of a hack
    nothing is taken, if later steps have anything.
    """

    def telling(one: Row) -> tuple[bool, float, float]:
        other = one[beside]
        return other is None, -abs(one[shown]["reward"] - (other["reward"] if other else 0.0)), -one["share"]

    late = [one for one in candidates if since_step is not None and one["step"] >= since_step]
    chosen: list[dict[str, Any]] = []
    for one in sorted(late or candidates, key=telling):
        others = {text for other in chosen for text in (other["problem"], other["question"], other[shown]["text"])}
        if not others & {one["problem"], one["question"], one[shown]["text"]}:
            chosen.append(one)
        if len(chosen) == SHOWN:
            break
    for one in chosen:
        marks = marked(one[shown]["text"], one[beside]["text"]) if one[beside] else None
        if marks is not None:
            one[shown]["parts"], one[beside]["parts"] = marks
    return chosen


def marked(one: str, other: str) -> tuple[Marked, Marked] | None:
    """Two texts in parts, each with whether it differs; None for long texts, and for texts with little in common."""
    words, others = _WORD.findall(one), _WORD.findall(other)
    if max(len(words), len(others)) > MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < 0.2:
        return None
    left, right = [], []
    for what, i, j, k, m in matcher.get_opcodes():
        left.append(("".join(words[i:j]), what != "equal"))
        right.append(("".join(others[k:m]), what != "equal"))
    return [part for part in left if part[0]], [part for part in right if part[0]]


def _likeness(one: str, other: str) -> float:
    """The share of words that two texts have in common: quick, because it looks at every completion of a group."""
    words, others = set(_WORD.findall(one[-2000:])), set(_WORD.findall(other[-2000:]))
    return len(words & others) / max(1, len(words | others))


def grader_bars(grades: Sequence["Grade"]) -> list[dict[str, Any]]:
    """For the picture of graders: by grader, for each window, the share of what it pays that goes to rejected rows, or
    None, and in words."""
    bars: dict[str, list[dict[str, Any]]] = {}
    for grade in grades:
        share = None if math.isnan(grade.on_rejected) else grade.on_rejected
        unknown = "pays all alike" if grade.alike else "nothing is judged" if grade.read else "no opinion"
        words = unknown if share is None else f"{100 * share:.0f} %"
        bars.setdefault(grade.grader, []).append({"window": grade.window, "share": share, "words": words})
    return [{"grader": name, "windows": windows} for name, windows in bars.items()]
