"""What the parts of a recorded run add to its verdict: which is lost, since when, and paid completions of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from cooper_audit.run.lost_parts import TRUTHS, LostPart, PartsAlarm, lost_parts
from cooper_audit.run.parts import PartsRecord, PartsTable
from cooper_audit.run.run_record import RunRecord, read_rollouts
from cooper_audit.run.verdict import RunVerdict, Signal

EXAMPLES = 5
"""Paid completions that are shown of a lost part, each to another question."""
STEPS_READ = 8
"""Of so many of the steps since its loss, evenly spread."""


@dataclass(frozen=True)
class RunParts:
    record: PartsRecord
    table: PartsTable
    lost: Sequence[LostPart] = ()
    """By gold, or else by the rule."""
    seen: Sequence[tuple[int, LostPart]] = ()
    """By a sign that needs neither, each with the step at which the alarm saw it."""
    examples: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """By the name of a lost part: completions with their step, question, reference and reward."""

    @property
    def alarm_at(self) -> int | None:
        return self.seen[0][0] if self.seen else None

    @property
    def accused(self) -> Sequence[LostPart]:
        """The parts that a verdict calls lost: by gold or the rule, and by a sign where neither speaks of the part."""
        table = self.table
        judged = {part.name for part in table.parts if any(len(table.series(part.rows, truth)) for truth in TRUTHS)}
        return [*self.lost, *(one for _, one in self.seen if one.part.name not in judged)]


def parts_of(run: RunRecord, alarm: PartsAlarm | None = None) -> RunParts:
    """The parts of a run by an alarm that has been given all of its rollouts; without one, they are read."""
    if alarm is None:
        alarm = PartsAlarm()
        for step, groups in read_rollouts(run.directory):
            alarm.observe(step, groups)
    table = alarm.record.table()
    parts = RunParts(alarm.record, table, lost_parts(table), alarm.seen)
    shown = {one.part.name: one for one in (*(one for _, one in parts.seen), *parts.lost)}
    return replace(parts, examples={name: _examples(run, alarm.record, one) for name, one in shown.items()})


def with_parts(verdict: RunVerdict, parts: RunParts) -> RunVerdict:
    """The verdict with what is known of the parts. A run that is sound on average may be lost in a part."""
    if not parts.table.parts:
        return verdict
    accused = parts.accused
    signals = [Signal("bad", f"Lost in a part. {one.sentence}") for one in accused]
    names = {one.part.name for one in accused}
    signals += [
        Signal("bad" if one.part.name in names else "unknown", f"Alarm of a part at step {at}. {one.sentence}")
        for at, one in parts.seen
    ]
    if not signals:
        smallest = min(part.share for part in parts.table.parts)
        watched = f"{len(parts.table.parts)} parts of the problems, down to {100 * smallest:.0f} % of the completions"
        signals = [Signal("good", f"None of {watched}, has lost much of its accuracy or shows a sign of it")]
    alarms = [step for step in (verdict.alarm_at, parts.alarm_at) if step is not None]
    state, sentence = verdict.state, verdict.sentence
    if accused:
        state = "part lost" if state in ("healthy", "nothing learned", "unknown") else state
        what = "a part is" if len(accused) == 1 else f"{len(accused)} parts are"
        but = "But" if state == "part lost" else "And"
        sentence = f"{sentence} {but} {what} lost: {'; '.join(one.sentence for one in accused)}."
    elif parts.seen and not accused:
        sentence += f" The alarm went off for a part at step {parts.alarm_at}, and what judges it did not follow."
    return replace(
        verdict,
        state=state,
        sentence=sentence,
        signals=[*verdict.signals, *signals],
        alarm_at=min(alarms, default=None),
    )


def _examples(run: RunRecord, record: PartsRecord, lost: LostPart) -> list[dict[str, Any]]:
    """Completions of the part since its loss that were paid most, wrong ones where gold says so, one a question."""
    steps = [int(path.stem) for path in run.files("rollouts") if int(path.stem) >= lost.since]
    chosen = steps[:: max(1, len(steps) // STEPS_READ)]
    members = record.problems_of(lost.part.kinds[0])
    best: dict[str, dict[str, Any]] = {}
    for row in run.rollouts(chosen):
        is_of_part = row["problem"] in members and row.get("gold") is not True and isfinite(row["reward"])
        if is_of_part and row["reward"] > best.get(row["question"], {"reward": float("-inf")})["reward"]:
            best[row["question"]] = row
    kept = ("step", "problem", "question", "answer", "text", "reward", "reward_model", "verdict", "gold")
    shown = sorted(best.values(), key=lambda row: -row["reward"])[:EXAMPLES]
    return [{name: row[name] for name in kept if name in row} for row in shown]
