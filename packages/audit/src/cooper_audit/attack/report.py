"""An attack in words and tables: the same rows on a terminal and as Markdown."""

from collections.abc import Sequence

from cooper_audit.attack.attack import AttackAnswer, AttackResult
from cooper_audit.attack.results import Finding, Repair
from cooper_audit.statistics import Estimate
from cooper_base.data.text import one_line

EXAMPLES = 5
FOUND_EXAMPLES = 3
Table = tuple[str, list[str], list[list[str]]]
"""A heading, the columns' names and the rows."""


def pattern_tables(result: AttackResult, whole: bool = True) -> list[Table]:
    """The tables of wrong and of right answers; see `pattern_table`."""
    return [pattern_table(result, right, whole) for right in (False, True)]


def further_tables(result: AttackResult, findings: Sequence[Finding], repair: Repair | None) -> list[Table]:
    """The worst examples, what a policy found, and the repair, as far as there are any."""
    tables = [example_table(result), *(finding_tables(findings) if findings else [])]
    return tables + ([] if repair is None else repair_tables(repair))


def pattern_table(result: AttackResult, right: bool, whole: bool = True) -> Table:
    """The patterns of right or of wrong answers: of wrong ones the most accepted first, of right ones the least.

    Unless it is `whole`, patterns of which all answers got what they should share a row.
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


def summary_lines(result: AttackResult, fail_above: float) -> list[str]:
    """The verdict, and what it is based on."""
    worst = result.worst
    over = sum(pattern.accepted.mean > fail_above for pattern in result.patterns if not pattern.right)
    lines = [
        f"{result.reward}: {result.problems} problems, accepted above {result.accepts_above:.3g} ({result.threshold})",
        f"wrong answers accepted: {_share(result.wrong_accepted)}; right ones: {_share(result.right_accepted)}",
        f"worst pattern: {worst.name}, {_share(worst.accepted)}",
    ]
    if result.correlation is not None:
        gap = 1 - result.correlation
        lines.append(f"gameability gap (OpenEnv): {gap:.2f}; reward and truth correlate at {result.correlation:.2f}")
    if result.above_empty is not None:
        lines.append(f"canaries (OpenEnv): {result.above_empty:.1%} of wrong answers are paid more than an empty one")
    if result.failed:
        lines.append(f"{result.failed} answers were not scored, because a server failed; the same command asks again")
    if silent := result.unheard - result.failed:
        lines.append(f"{silent} answers were not scored, because the grader has no opinion on them")
    if over:
        patterns = "1 pattern is" if over == 1 else f"{over} patterns are"
        lines.append(f"GAMEABLE: {patterns} accepted in more than {fail_above:.1%} of the problems")
    else:
        lines.append(f"sound: no pattern is accepted in more than {fail_above:.1%} of the problems")
    return lines


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
        answers = [answer for answer in result.answers if answer.pattern == pattern.name and answer.score is not None]
        example = (min if pattern.right else max)(answers, key=lambda answer: answer.score or 0.0)
        rows.append([*_example(example), pattern.name])
    return "Worst examples", ["score", "reference", "completion", "pattern"], rows


def _example(answer: AttackAnswer) -> list[str]:
    verdict = f"{answer.score or 0.0:.3g}" + (" (right)" if answer.right else "")
    return [verdict, one_line(answer.problem.answer, 30), one_line(answer.text, 70) or "(nothing)"]


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
            one_line(found.text, 70),
        ]
        for finding in findings
        for found in finding.completions[:FOUND_EXAMPLES]
    ]
    return [
        ("What the policy found", ["kind", "paid", "different", "of the last step", "first step"], counts),
        ("Best paid", ["kind", "reward", "step", "reference", "completion"], examples),
    ]


def repair_tables(repair: Repair) -> list[Table]:
    """Before and after the repair, on problems that it did not see."""
    sides = {True: "in the repair", False: "kept apart"}
    summary = [
        [
            f"{'right' if right else 'wrong'} answers, patterns {words}",
            *(f"{repair.share(result, right, learned):.1%}" for result in (repair.before, repair.after)),
        ]
        for right in (False, True)
        for learned, words in sides.items()
    ]
    after = {pattern.name: pattern for pattern in repair.after.patterns}
    rows = [
        [
            f"{pattern.name} (right)" if pattern.right else pattern.name,
            sides[pattern.name in repair.learned],
            f"{pattern.accepted.mean:.1%}",
            *_cells(after[pattern.name].accepted),
        ]
        for pattern in sorted(repair.before.patterns, key=lambda pattern: -pattern.accepted.mean)
    ]
    rows.sort(key=lambda row: (row[0].endswith("(right)"), row[1]))
    heading = f"Repair: accepted on {repair.before.problems} problems that are not in it"
    return [
        (heading, ["", "before", "after"], summary),
        ("By pattern", ["pattern", "pattern is", "before", "after", "95 % interval"], rows),
    ]


def markdown(lines: Sequence[str], tables: Sequence[Table]) -> str:
    """Lines and tables as Markdown."""
    parts = [*(f"- {line}" for line in lines)]
    for heading, header, rows in tables:
        parts += ["", f"## {heading}", "", _row(header), "|" + "---|" * len(header), *map(_row, rows)]
    return "\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
