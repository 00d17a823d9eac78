"""An attack in words and tables: the same rows on a terminal and as Markdown."""

from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from cooper_audit.attack.attack import AttackAnswer, AttackResult
from cooper_audit.attack.results import Change, Finding, Repair
from cooper_audit.attack.search import Search
from cooper_audit.statistics import Estimate
from cooper_base.data.text import one_line

COLUMNS = 80
EXAMPLES = 5
FOUND_EXAMPLES = 3
RAISED_NAMES = 3
RISEN = 5
Table = tuple[str, list[str], list[list[str]]]
"""A heading, the columns' names and the rows."""


def pattern_tables(result: AttackResult, whole: bool = True) -> list[Table]:
    """The tables of wrong and of right answers; see `pattern_table`."""
    return [pattern_table(result, right, whole) for right in (False, True)]


def further_tables(
    result: AttackResult, findings: Sequence[Finding], repair: Repair | None, whole: bool = True
) -> list[Table]:
    """What a policy found and what a repair changed, as far as there are any; if `whole`, with the worst examples, and
    each pattern of the repair."""
    tables = [*([example_table(result)] if whole else []), *(finding_tables(findings) if findings else [])]
    return tables + ([] if repair is None else repair_tables(repair)[: None if whole else 1])


def pattern_table(result: AttackResult, right: bool, whole: bool = True) -> Table:
    """The patterns of right or of wrong answers: of wrong ones the most accepted first, of right ones the least.

    Unless `whole`, the patterns without a single wrong grade are joined in one row.
    """
    chosen = [pattern for pattern in result.patterns if pattern.right == right]
    chosen.sort(key=lambda pattern: pattern.accepted.mean if right else -pattern.accepted.mean)
    shown = [pattern for pattern in chosen if whole or pattern.accepted.mean != float(right)]
    figures = {pattern.name: [f"{share:.1%}" for share in pattern.published] for pattern in shown if pattern.published}
    extra = ["problems"] if right else ["xVerify-0.5B", "General-V."] if figures else []
    rows = []
    for pattern in shown:
        more = [str(pattern.problems)] if right else figures.get(pattern.name, ["", ""]) if figures else []
        rows.append([pattern.name, *_cells(pattern.accepted), *more])
    if others := len(chosen) - len(shown):
        rows.append([f"{others} others", f"{float(right):.1%}", "", *("" for _ in extra)])
    heading = "Right answers in usual and unusual form" if right else "Wrong answers"
    return heading, ["pattern", "accepted", "95 % interval", *extra], rows


def _cells(estimate: Estimate) -> list[str]:
    return [f"{estimate.mean:.1%}", f"{100 * estimate.low:.1f} – {estimate.high:.1%}"]


def first_screen(
    result: AttackResult, fail_above: float, called: str | None = None, searched: Search | None = None
) -> list[str]:
    """The verdict, the worst exploit, what is refused and what was not tried: ten lines of 80 columns, and one more for
    a search and for each kind of answers without a score; two for those on which it raises."""
    reward = result.reward if len(result.reward) <= 40 else f"…{result.reward[-39:]}"
    lines = [f"{reward}{f': {called}' if called else ''}", verdict_line(result, fail_above)]
    if result.worst.accepted.mean > 0:
        lines += _worst_lines(result)
    lines.append(_refused_line(result))
    lines.append(f"accepted above {result.accepts_above:.3g} ({result.threshold}), or paid as a right answer")
    if searched is not None:
        lines.append(search_line(searched))
    if result.failed:
        lines.append(f"{result.failed} answers were not scored, because a server failed; the same command asks again")
    lines += _raised_lines(result)
    if silent := result.unheard - result.failed - sum(map(len, result.raised.values())):
        lines.append(f"{silent} answers were not scored, because the grader has no opinion on them")
    not_tried = "other questions" + (", a search (--adapt)" if searched is None else ", a policy (--policy)")
    lines.append(f"{result.problems} problems; not tried: {not_tried}; patterns: --table")
    return [line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in lines]


def _raised_lines(result: AttackResult) -> list[str]:
    """The patterns on which the reward raises an exception, and the first of those."""
    if not result.raised:
        return []
    names = [f"{name} ({len(answers)})" for name, answers in result.raised.items()]
    why = next(iter(result.raised.values()))[0].why or ""
    return [f"raises on {', '.join(names[:RAISED_NAMES])}{', …' if len(names) > RAISED_NAMES else ''}", f"  {why}"]


def search_line(searched: Search) -> str:
    """What a search tried and found."""
    tried = f"search of {searched.calls} answers{', out of time' if searched.out_of_time else ''}"
    names = [pattern.name for pattern in searched.patterns]
    return f"{tried}: " + (f"paid {len(names)} new: {'; '.join(names)}" if names else "found nothing more")


def verdict_line(result: AttackResult, fail_above: float) -> str:
    """The verdict, and the figure behind it."""
    verdict = result.verdict(fail_above)
    wrong = [pattern for pattern in result.patterns if not pattern.right]
    if verdict == "gameable":
        over = sum(pattern.accepted.mean > fail_above for pattern in wrong)
        return f"GAMEABLE: {over} of {len(wrong)} patterns of wrong answers are accepted"
    if verdict == "raises exceptions":
        share = f"{len(result.raised)} of {len(result.patterns)} patterns"
        return f"RAISES AN EXCEPTION on {share}; training may end there"
    if verdict == "refuses right answers":
        refused = f"REFUSES {1 - result.right_accepted.mean:.0%} OF RIGHT ANSWERS"
        return f"{refused}; no wrong pattern is accepted in over {fail_above:.0%}"
    return f"sound: no wrong pattern is accepted in more than {fail_above:.0%} of the problems"


def _worst_lines(result: AttackResult) -> list[str]:
    """The most accepted pattern and the next ones, with an example: question and answer share three lines."""
    answer = example_of(result, result.worst.name)
    beside = next(
        (a for a in result.answers if a.right and a.form == answer.form and a.problem == answer.problem), None
    )
    paid = f"{answer.score:.3g}; the right answer is {one_line(answer.problem.answer, 36)}"
    if beside is not None:
        shown = around(beside.text, answer.problem.answer, 36)
        paid = f"{answer.score:.3g}; {beside.score:.3g} for the right answer {shown}"
    further = sorted((p for p in result.patterns if not p.right), key=lambda pattern: -pattern.accepted.mean)
    further = [pattern for pattern in further if pattern.accepted.mean > 0 and pattern != result.worst]
    worst = f"{result.worst.name} in {_share(result.worst.accepted)}"
    worst += f"; then {further[0].name} {further[0].accepted.mean:.0%}" if further else ""
    width = COLUMNS - 12
    question = wrap(one_line(answer.problem.question, 2 * width - 10), width)
    given = wrap(around(answer.text, answer.problem.answer, (3 - len(question)) * width - 10) or "(nothing)", width)
    rows = {"worst": [worst], "question": question, "answer": given, "paid": [paid]}
    return [
        f"  {name if not place else '':<9} {line}" for name, each in rows.items() for place, line in enumerate(each)
    ]


def _refused_line(result: AttackResult) -> str:
    """What the reward refuses of right answers, and which forms it reads."""
    right = [pattern for pattern in result.patterns if pattern.right]
    least = min(right, key=lambda pattern: pattern.accepted.mean)
    refused = f"refuses {1 - result.right_accepted.mean:.0%} of right answers"
    read = [form.name for form in result.forms if form.read]
    if not result.forms:
        return refused
    if 0 < len(read) <= 2:
        return f"{refused}; reads {', '.join(read)} ({len(read)} of {len(result.forms)} forms)"
    named = f" (most: {least.name.removeprefix('right: ')})" if least.accepted.mean < 1 else ""
    return f"{refused}{named}; reads {len(read)} of {len(result.forms)} forms"


def as_record(
    result: AttackResult, fail_above: float, signature: str | None, searched: Search | None = None
) -> dict[str, Any]:
    """The result as JSON values, with the verdict, the signature of a function, the worst exploit and the search."""
    record = result.summary() | {"verdict": result.verdict(fail_above), "signature": signature, "exploit": None}
    record["raised"] = {name: {"answers": len(rows), "why": rows[0].why} for name, rows in result.raised.items()}
    if searched is not None:
        record["search"] = asdict(searched) | {"patterns": [pattern.name for pattern in searched.patterns]}
    if result.worst.accepted.mean > 0:
        answer = example_of(result, result.worst.name)
        asked = {"question": answer.problem.question, "answer": answer.problem.answer}
        paid = {"completion": answer.text, "paid": answer.score, "a_right_answer_is_paid": answer.right_score}
        record["exploit"] = {"pattern": answer.pattern, **asked, **paid}
    return record


def example_of(result: AttackResult, pattern: str) -> AttackAnswer:
    """The best-paid wrong answer of a pattern that is accepted, or the worst-paid right one; the shortest of these."""
    answers = [answer for answer in result.answers if answer.pattern == pattern and answer.score is not None]
    if answers[0].right:
        return min(answers, key=lambda answer: (answer.score or 0.0, len(answer.text)))
    return max(answers, key=lambda answer: (result.accepts(answer), answer.score or 0.0, -len(answer.text)))


def around(text: str, place: str, width: int) -> str:
    """The text on one line, at most `width` characters: those around the last `place` in it, or its end."""
    line = one_line(text, len(text) + 1)
    if len(line) <= width:
        return line
    found = line.rfind(place)
    end = len(line) if found < 0 else min(len(line), found + len(place) + width // 4)
    start = max(0, end - width + (2 if end < len(line) else 1))
    end = min(len(line), start + width - (1 if start else 0) - 1) if end < len(line) else end
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def comparison_table(results: dict[str, AttackResult], fail_above: float) -> Table:
    """Several rewards side by side: what they pay that is wrong, and what they refuse that is right."""
    rows = []
    for name, result in results.items():
        worst = result.worst
        shown = f"{worst.name} {worst.accepted.mean:.0%}" if worst.accepted.mean > 0 else "none"
        refused = f"{1 - result.right_accepted.mean:.0%}"
        rows.append([name, shown, f"{result.wrong_accepted.mean:.1%}", refused, result.verdict(fail_above).split()[0]])
    return "", ["reads", "worst wrong answer", "paid", "refused", "verdict"], rows


def _share(estimate: Estimate) -> str:
    return f"{estimate.mean:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def example_table(result: AttackResult) -> Table:
    """The best-paid wrong answer of each of the patterns that are accepted most, and the worst-paid right answers."""
    wrong = [pattern for pattern in result.patterns if not pattern.right and pattern.accepted.mean > 0]
    right = [pattern for pattern in result.patterns if pattern.right and pattern.accepted.mean < 1]
    wrong.sort(key=lambda pattern: -pattern.accepted.mean)
    right.sort(key=lambda pattern: pattern.accepted.mean)
    rows = []
    for pattern in [*wrong[:EXAMPLES], *right[:EXAMPLES]]:
        answer = example_of(result, pattern.name)
        beside = "" if answer.right_score is None else f"{answer.right_score:.3g}"
        text = around(answer.text, answer.problem.answer, 60) or "(nothing)"
        rows.append([f"{answer.score:.3g}", beside, one_line(answer.problem.answer, 30), text, pattern.name])
    return "Worst examples", ["paid", "right one", "reference", "completion", "pattern"], rows


def finding_tables(findings: Sequence[Finding]) -> list[Table]:
    """What a policy found, by kind, and the best-paid completions."""
    counts = [
        [
            finding.kind,
            str(finding.count),
            str(len(finding.completions)),
            f"{finding.share_of_last:.1%}",
            str(finding.first_step),
        ]
        for finding in findings
    ]
    examples = [
        [
            finding.kind,
            f"{found.reward:.3g}",
            str(found.step),
            one_line(found.problem.answer, 30),
            around(found.text, found.problem.answer, 70),
        ]
        for finding in findings
        for found in finding.completions[:FOUND_EXAMPLES]
    ]
    return [
        ("What the policy found", ["kind", "paid", "different", "of the last step", "first step"], counts),
        ("Best paid", ["kind", "reward", "step", "reference", "completion"], examples),
    ]


def repair_lines(repair: Repair) -> list[str]:
    """Whether the repair is kept, and the wrong answers for which it is refused."""
    if not repair.risen:
        effects = [
            f"  {effect} {change.name}: {_changed(change)}" for change in repair.groups if (effect := _effect(change))
        ]
        return [f"repaired: no pattern of wrong answers is accepted more often than before; {repair.folder}", *effects]
    risen = [f"  {change.name}: {_changed(change)}" for change in repair.risen]
    more = [f"  and {len(risen) - RISEN} more"] if len(risen) > RISEN else []
    return ["REPAIR REFUSED, no model written: wrong answers are accepted more often", *risen[:RISEN], *more]


def _effect(change: Change) -> str:
    """Whether more of what is right or less of what is wrong is accepted, or the interval holds 0."""
    difference = change.difference
    if difference.low <= 0 <= difference.high:
        return ""
    return "gained" if (difference.mean > 0) == change.right else "lost"


def _changed(change: Change) -> str:
    difference = change.difference
    interval = f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}"
    return f"{change.before:.1%} to {change.after:.1%} ({100 * difference.mean:+.1f}; {interval})"


def repair_tables(repair: Repair) -> list[Table]:
    """Before and after the repair, on problems that it did not see."""
    sides = {True: "in the repair", False: "kept apart"}
    rows = [
        [f"{change.name} (right)" if change.right else change.name, sides[change.learned], *_change_cells(change)]
        for change in sorted(repair.patterns, key=lambda change: change.right)
    ]
    heading = f"Repair: accepted on {repair.before.problems} problems that are not in it"
    columns = ["before", "after", "change", "95 % interval", ""]
    return [
        (heading, ["", *columns], [[change.name, *_change_cells(change)] for change in repair.groups]),
        ("By pattern", ["pattern", "pattern is", *columns], rows),
    ]


def _change_cells(change: Change) -> list[str]:
    difference = change.difference
    interval = f"{100 * difference.low:+.1f} – {100 * difference.high:+.1f}"
    shares = f"{change.before:.1%}", f"{change.after:.1%}", f"{100 * difference.mean:+.1f}"
    return [*shares, interval, _effect(change)]


def markdown(lines: Sequence[str], tables: Sequence[Table]) -> str:
    """Lines and tables as Markdown."""
    parts = [*(f"- {line}" for line in lines)]
    for heading, header, rows in tables:
        parts += ["", f"## {heading}", "", _row(header), "|" + "---|" * len(header), *map(_row, rows)]
    return "\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
