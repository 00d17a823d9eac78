"""Audits the rollouts of another trainer: checks a sample of each step, and writes a run's folder with a verdict."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import yaml

from cooper_audit.rollouts.formats import PLAIN
from cooper_audit.rollouts.labels import Labels, label_key, write_to_label
from cooper_audit.rollouts.reading import Choose, Decode, Source, read_steps
from cooper_audit.rollouts.references import References
from cooper_audit.rollouts.rollout import Rollout, digest_of, recorded, short_hash, step_file
from cooper_audit.rollouts.suspicion import leaked, several_answers, suspicions, unread_form
from cooper_audit.run.change_points import WINDOW
from cooper_audit.run.evidence import finding_of
from cooper_audit.run.finding import ACCUSED, Finding
from cooper_audit.run.lenient import ends_in, is_estimate, otherwise, unexplained
from cooper_audit.run.pay_tracks import BESIDE, LEVEL, PAY
from cooper_audit.run.table import ALL_COLUMNS, COLUMNS, Groups, GroupSums, JudgedRow, payment_shares, sums_of
from cooper_audit.run.verdict import name_of, said_line
from cooper_base.config.base import Config
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_base.files.durable import by_step
from cooper_base.files.journal import Journal
from cooper_base.files.owned_folder import OwnedFolder
from cooper_base.revisions import revisions
from cooper_verify.faults import FAULTS_FILE, faults_written_to, isolated
from cooper_verify.grader import asked_texts
from cooper_verify.rules.kinds.maths import MathsRule, rule_settings
from cooper_verify.rules.other_answers import mark_an_answer
from cooper_verify.rules.rule import RULES, Rule, RuleConfig, verdict_metrics
from cooper_verify.rules.verifier import Verifier

SAMPLE = 256
COMMAND = "cooper audit"
DIGITS = 9
"""Digits behind the point of a group's sum of rewards: that of rewards normalised by group is 0, and not their
rounding."""
UNGRADED = "reward/no_opinion"
"""The metric of the share of completions that the reward says nothing of, as in a run of Cooper's."""
RESULTS = ("audit.json", "config.yaml", "metrics.jsonl", "report.html")
"""The files of an audit that is finished. They go before a file that they are about changes."""
NO_STEPS = (
    "Nothing says to which training step a row belongs, so there is no course to judge, as in evaluations of several "
    "models. Name the place of the step with --map step=…; if each file is a step of one run, in the order "
    "of their names, write --map 'step=$file'."
)


@dataclass(frozen=True)
class Options:
    """What decides the result of an audit, besides the rollouts."""

    rule: RuleConfig = field(default_factory=MathsRule)
    sample: int | None = SAMPLE
    """Rows of a step that are checked, in whole groups; None checks all."""
    labels: Labels = field(default_factory=dict)
    references: References | None = None
    text: bool = True
    """Whether the folder holds the completions' texts."""
    unread_is_wrong: bool = False
    """Whether an answer is wrong in which the rule finds nothing and that states no right one in another form."""


@dataclass(frozen=True)
class Audit:
    """The result: `directory` is a run's folder."""

    directory: Path
    finding: Finding
    source: Source
    steps: list[int]
    checked: int
    """Rows with a verdict."""
    to_label: Path | None = None
    """A file of completions to label, where no check says anything."""
    basis: Sequence[str] = ()
    """What the verdict rests on."""
    ungraded: Mapping[int, float] = field(default_factory=dict)
    """By step the share of the rows that have no reward, or whose grading failed."""

    def lines(self) -> list[str]:
        """The result for a terminal."""
        found, source = self.finding, self.source
        named = source.format.name if source.format else "?"
        steps = f"{len(self.steps)} steps" if source.has_steps else "unknown steps"
        lines = [f"{source.rows} rows of {steps}, format {named}; {self.checked} rows checked"]
        if source.format and source.format.name == PLAIN:
            by_name = {name: path for name, path in source.format.paths.items() if name not in source.format.given}
            columns = [f"{name}={'the file’s place' if path[:1] == '$' else path}" for name, path in by_name.items()]
            lines.append(f"columns by their names: {', '.join(columns) or 'none'}; another is --map FIELD=PATH")
        if source.rewards:
            total = "the sum of " if len(source.rewards) > 1 else ""
            lines.append(f"reward: {total}{', '.join(source.rewards)}; another is --map reward=…")
        lines += [f"left out: {rows} × {why}" for why, rows in source.left_out.items()]
        if self.ungraded:
            step, share = max(self.ungraded.items(), key=lambda item: item[1])
            lines.append(f"no reward: {100 * share:.0f} % of the rows of step {step}, the largest share; no zeros")
        onset = found.onset if found.state in ACCUSED else None
        said = said_line(name_of(found.state, is_audit=True), onset, found.sentence)
        lines += [said, *found.guards, *self.basis]
        if self.to_label:
            lines.append(f"label these completions, then repeat with --labels: {self.to_label}")
        return lines


def audit_folder(out: Path) -> OwnedFolder:
    """The folder of an audit, locked until it is closed. Raises InputError for one that holds anything which no audit
    has written, and for one in which another audit is writing.
    """
    return OwnedFolder(out, COMMAND)


def audit(
    rollouts: Sequence[Path],
    out: Path | OwnedFolder,
    options: Options = Options(),
    choose: Choose | None = None,
    decode: Decode | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Read rollouts, check a sample of every step, and write the run folder `out` with the verdict.

    Repeated after an interruption it continues, with the same result. `progress` is called with the steps done and 0.
    Raises InputError for rollouts that cannot be read, and as `audit_folder` does.
    """
    with (
        nullcontext(out) if isinstance(out, OwnedFolder) else audit_folder(out) as folder,
        faults_written_to(folder.path / FAULTS_FILE),
    ):
        return _audit(rollouts, folder, options, choose, decode, progress)


def _audit(
    rollouts: Sequence[Path],
    folder: OwnedFolder,
    options: Options,
    choose: Choose | None,
    decode: Decode | None,
    progress: Callable[[int, int], None] | None,
) -> Audit:
    out, source, groups = folder.path, Source(), Groups()
    metrics, kept = dict[int, dict[str, float]](), dict[int, list[Any]]()
    folder.check(*_results(folder))
    folder.folder("rollouts")
    settings = _fingerprint(options)
    with Journal(out / "audited.jsonl", {"command": COMMAND}) as journal, closing(Verifier(options.rule)) as verifier:
        for said, rows in read_steps(rollouts, source, choose, decode):
            step = 1 if said is None else said
            for later in [kept_step for kept_step in kept if kept_step >= step]:  # the run was resumed before it
                del kept[later], metrics[later]
            key = f"{settings} {step} {digest_of(rows)}"
            if (done := journal.get(key)) is None or not folder.holds(step_file(out, step), done["file"]):
                _withdraw(folder)
                done = _audited(step, rows, options, verifier, folder)
                journal.put(key, done)
            metrics[step], kept[step] = done["metrics"], [done["groups"], done["scored"]]
            if progress is not None:
                progress(len(kept), 0)
    for step, path in by_step(out / "rollouts", ".jsonl").items():
        if step not in kept:
            _withdraw(folder)
            folder.remove(path)
    for step in sorted(kept):
        sums, scored = kept[step]
        groups.add(step, [GroupSums(*group) for group in sums], scored)
    ungraded = _ungraded(source, kept)
    for step in kept:
        metrics[step] |= {UNGRADED: ungraded.get(step, 0.0)}
    finding = _with_texts(finding_of(groups), out, sorted(kept), bool(groups.scored))
    if not source.has_steps:
        finding = replace(finding, state="unknown", sentence=NO_STEPS, guards=(), onset=None)
    basis = finding.basis(_check(options, len(groups.scored), round(sum(_rows_by_step(kept).values()))))
    _write_run(folder, metrics, finding, basis, source, options)
    to_label = None if groups.scored else write_to_label(folder)
    return Audit(out, finding, source, sorted(kept), len(groups.scored), to_label, basis, ungraded)


def _with_texts(finding: Finding, out: Path, steps: Sequence[int], checked: bool) -> Finding:
    """The finding with what only texts say: answers that stand in the prompts, so that right ones may be copies; the
    form that a check does not read; of what it does not judge, what became frequent and is paid.
    """
    guards = {guard.split(":")[0] for guard in finding.guards}
    if finding.state in ("healthy", "nothing learned"):
        first, last = (list(recorded(out, part)) for part in (steps[:WINDOW], steps[-WINDOW:]))
        if doubt := leaked(last) or several_answers(first, last):
            sentence = f"{finding.sentence} But what it accepts may be copied or guessed."
            return replace(finding, state="unknown", sentence=sentence, guards=(*finding.guards, doubt))
    if not checked or "Not judged" in guards:
        rows = (row for row in recorded(out, steps) if not is_judged(row["verdict"]))
        return replace(finding, guards=(*finding.guards, *map(str, suspicions(rows))))
    if guards & {"Unread form", "Format drift"} and (form := unread_form(recorded(out, steps[-WINDOW:]))):
        return replace(finding, guards=(*finding.guards, form))
    return finding


def _check(options: Options, checked: int, rows: int) -> str:
    """What the check is, in a sentence."""
    if not checked:
        return ""
    rule = RULES.kind_of(options.rule) if isinstance(options.rule, Config) else type(options.rule).__name__
    named = "labels of yours" if options.labels else f"the rule {rule}"
    how = "" if options.labels else ", which compares the answer that a completion ends in with the reference"
    how += ", what it does not read being wrong" if options.unread_is_wrong else ""
    return f"Check: {named}{how}; it judges {checked} of {rows} completions."


def _ungraded(source: Source, kept: Mapping[int, Sequence[Any]]) -> dict[int, float]:
    """By step the share of the rows that have no reward, where there are any."""
    counts = {1 if step is None else step: count for step, count in source.ungraded.items()}
    rows = _rows_by_step(kept)
    return {step: count / (count + rows.get(step, 0)) for step, count in sorted(counts.items())}


def _rows_by_step(kept: Mapping[int, Sequence[Any]]) -> dict[int, float]:
    at = COLUMNS.index("rows")
    return {step: sum(sums[at] for _, _, sums, *_ in groups) for step, (groups, _) in kept.items()}


def _fingerprint(options: Options) -> str:
    """A hash of all that decides what is written of a step, besides its rows."""
    values = {**rule_settings(options.rule), "sample": options.sample, "text": options.text}
    values |= {"unread_is_wrong": options.unread_is_wrong, "labels": sorted(options.labels.items())}
    values |= {"columns": [*ALL_COLUMNS, *PAY, *BESIDE, *LEVEL]}
    return short_hash(json.dumps(values, sort_keys=True, default=str), repr(options.references))


def _withdraw(folder: OwnedFolder) -> None:
    """Delete the results, which are about rollouts that change now."""
    folder.remove(*_results(folder))


def _results(folder: OwnedFolder) -> list[Path]:
    return [folder.path / name for name in RESULTS]


def _audited(
    step: int, rows: Sequence[Rollout], options: Options, verifier: Rule, folder: OwnedFolder
) -> dict[str, Any]:
    """Check a step's sample, write it, and return the step's metrics, the sums of its groups and the hash of what was
    written, as JSON values.
    """
    by_group: dict[str, list[Rollout]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    sampled = _sampled(by_group, options.sample)
    if (known := options.references) is not None:
        for name in sampled:
            own = by_group[name]
            by_group[name] = [row if row.references else replace(row, references=known.of(row.prompt)) for row in own]
    verdicts = _verdicts([row for name in sampled for row in by_group[name]], options, verifier)
    judged = iter(verdicts)
    lines, sums, scored, verdict_rows = [], [], [], []
    for name, group in by_group.items():
        advantages = _advantages(group)
        of_group = [next(judged) for _ in group] if name in sampled else None
        sums.append(_sums(group, advantages, of_group))
        if of_group is not None:
            said: list[Verdict] = [checked.verdict for checked in of_group]
            verdict_rows.append(said)
            scored += [[row.reward, v == "correct"] for row, v in zip(group, said, strict=True) if is_judged(v)]
            lines.append(_line(group, advantages, said, options.text))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    sha256 = folder.write(step_file(folder.path, step), text)
    metrics = _metrics(rows, by_group, verdict_rows)
    metrics |= payment_shares([(group.kind, [*group.right, *group.otherwise], group.wrong) for group in sums])
    return {"metrics": metrics, "groups": sums, "scored": scored, "file": sha256}


def _sampled(by_group: Mapping[str, Sequence[Rollout]], most: int | None) -> dict[str, None]:
    """Groups for at least `most` rows, by a hash of their problem, so that a problem is checked whenever it comes."""
    taken, rows = [], 0
    for name in sorted(by_group, key=lambda name: (_problem_key(by_group[name][0]), name)):
        if most is not None and rows >= most:
            break
        taken.append(name)
        rows += len(by_group[name])
    chosen = set(taken)
    return {name: None for name in by_group if name in chosen}


def _problem_key(row: Rollout) -> str:
    return short_hash(row.prompt)


@dataclass(frozen=True)
class _Checked:
    verdict: Verdict
    """That of the label, or else the rule's best one over the references."""
    silent: bool
    """Whether the rule is silent, also where a label is not."""
    ends: bool
    """Whether the text ends in the words of a reference."""
    otherwise: bool | None
    """Where the check finds no answer: whether the text states a right one in another form; None if that is unknown."""
    last: str
    """A hash of the last word, if neither question nor reference explains it."""


def _verdicts(rows: Sequence[Rollout], options: Options, verifier: Rule) -> list[_Checked]:
    """What the check says of each row."""
    labels = [
        options.labels.get(label_key(row.prompt, row.answer.transcript)) if options.labels else None for row in rows
    ]
    ruled: list[Verdict] = ["silent" for _ in rows]
    references = [row.references for row in rows]
    for place in range(max(map(len, references), default=0)):
        asked = [i for i, own in enumerate(references) if len(own) > place and ruled[i] != "correct"]
        problems = [Problem(rows[i].group, rows[i].question, references[i][place]) for i in asked]
        texts = [(problem, rows[i].answer.text) for problem, i in zip(problems, asked, strict=True)]
        said: list[Verdict] = isolated(
            "rule", verifier.verify_problems, texts, lambda _: "unparsed", asked_texts, users_too=True
        )
        for i, verdict in zip(asked, said, strict=True):
            if verdict == "correct" or place == 0:
                ruled[i] = verdict
    for i, row in enumerate(rows):
        if ruled[i] == "wrong" and is_estimate(row.answer.text, row.references):  # in a form that the rule rejects
            ruled[i] = "unparsed"
    cut = [i for i, row in enumerate(rows) if row.cut and ruled[i] == "correct"]
    for i, has_mark in zip(cut, mark_an_answer([rows[i].answer.text for i in cut]), strict=True):
        if not has_mark:  # a number of a thought that goes on is no answer
            ruled[i] = "unparsed"
    read = isolated(
        "what a row ends in",
        _ends_of,
        [*zip(rows, ruled, strict=True)],
        lambda _: (False, None, ""),
        lambda judged: (judged[0].question, *judged[0].references, judged[0].answer.text),
    )
    return [
        _Checked(
            verdict if label is None else ("correct" if label else "wrong"),
            verdict == "silent",
            ends,
            False if options.unread_is_wrong and right is None else right,
            last,
        )
        for label, verdict, (ends, right, last) in zip(labels, ruled, read, strict=True)
    ]


def _ends_of(judged: Sequence[tuple[Rollout, Verdict]]) -> list[tuple[bool, bool | None, str]]:
    """`ends`, `otherwise` and `last` of each row with this verdict."""
    return [
        (
            any(ends_in(row.answer.text, reference, row.question) for reference in row.references),
            _otherwise(row) if verdict == "unparsed" else None,
            short_hash(word) if (word := unexplained(row.answer.text, [row.question, *row.references])) else "",
        )
        for row, verdict in judged
    ]


def _otherwise(row: Rollout) -> bool | None:
    """Whether the final reply states a right answer in another form. Where it does not hold the right one and an
    earlier reply may, as before the user's thanks, nobody knows.
    """
    said = otherwise(row.answer.text, row.references, row.question, is_cut=row.cut is True)
    earlier = [turn["content"] for turn in (row.answer.messages or ())[:-1] if turn["role"] == "assistant"]
    is_open = any(otherwise(text, row.references, row.question) is not False for text in earlier)
    return None if said is False and is_open else said


def is_judged(verdict: Verdict) -> bool:
    """Whether the check says yes or no."""
    return verdict not in ("silent", "timeout")


def _advantages(group: Sequence[Rollout]) -> list[float]:
    """The trainer's advantages, or the rewards less the group's mean."""
    mean = fmean(row.reward for row in group)
    return [row.reward - mean if row.advantage is None else row.advantage for row in group]


def _sums(group: Sequence[Rollout], advantages: Sequence[float], checked: Sequence[_Checked] | None) -> GroupSums:
    """The rows kept of a group. If the group is not sampled, none of its rows is checked."""
    first = group[0]
    paid = math.fsum(row.reward for row in group)
    given = {"rows": len(group), "reward": round(paid, DIGITS)}
    given |= {"silent": sum(row.silent for row in checked or ()), "characters": sum(len(row.question) for row in group)}
    rows = [
        JudgedRow(
            row.reward, advantage, said.verdict == "correct", said.verdict != "unparsed", said.otherwise, said.ends
        )
        for row, advantage, said in zip(group, advantages, checked or (), strict=checked is not None)
        if is_judged(said.verdict)
    ]
    words = [said.last for said in checked or () if said.verdict == "correct" and said.last and not said.ends]
    return sums_of(_problem_key(first), (*first.references, "")[0], rows, given, words, first.data_set)


def _line(
    group: Sequence[Rollout], advantages: Sequence[float], verdicts: Sequence[Verdict], text: bool
) -> dict[str, Any]:
    first = group[0]
    completions = [
        {
            "text": row.answer.text if text else "",
            **({"transcript": row.answer.transcript} if text and row.answer.messages is not None else {}),
            **({} if row.cut is None else {"stop_reason": "length" if row.cut else "stop"}),
            "reward": row.reward,
            "verdict": verdict,
            "advantage": advantage,
            "paid": advantage > 0,
            "location": row.location,
        }
        for row, advantage, verdict in zip(group, advantages, verdicts, strict=True)
    ]
    shown = first.question if text else ""
    answer = " or ".join(first.references) if text else ""
    named = {"set": first.data_set} if first.data_set else {}
    return {
        **{"problem": first.group, "question": shown, "answer": answer, "prompt": first.prompt if text else ""},
        **named,
        "completions": completions,
    }


def _metrics(
    rows: Sequence[Rollout], by_group: Mapping[str, Sequence[Rollout]], verdicts: Sequence[Sequence[Verdict]]
) -> dict[str, float]:
    rewards = [row.reward for row in rows]
    spreads = [
        max(rollout.reward for rollout in group) - min(rollout.reward for rollout in group)
        for group in by_group.values()
    ]
    metrics = {"reward/mean": fmean(rewards), "reward/std": pstdev(rewards), "reward/group_spread": fmean(spreads)}
    metrics["audit/characters"] = fmean(len(row.answer.text) for row in rows)
    metrics["audit/repeated"] = 1 - len({(row.group, row.answer.text) for row in rows}) / len(rows)
    if known := [row.cut for row in rows if row.cut is not None]:
        metrics["rollout/cut_off_rate"] = fmean(known)
    return metrics | verdict_metrics(verdicts)


def _write_run(
    folder: OwnedFolder,
    metrics: Mapping[int, Mapping[str, float]],
    finding: Finding,
    basis: Sequence[str],
    source: Source,
    options: Options,
) -> None:
    rows = "".join(json.dumps({"step": step, **metrics[step]}) + "\n" for step in sorted(metrics))
    named = source.format.name if source.format else "unknown"
    settings = {
        "kind": "audit",
        "name": folder.path.resolve().name,
        "steps": max(metrics),
        "problems": {"source": ", ".join(str(path) for path in source.files[:3])},
        "rule": rule_settings(options.rule),
        "format": named,
        "audit": {
            "state": finding.state,
            "sentence": finding.sentence,
            "guards": list(finding.guards),
            "basis": list(basis),
            "onset": list(finding.onset) if finding.onset else None,
        },
    }
    noted = "".join(f"# {name}: {value}\n" for name, value in revisions().items())
    figures = {name: asdict(change) for name, change in finding.figures.items()}
    result = {**settings["audit"], "figures": figures, "rows": source.rows, "left_out": source.left_out}
    texts = {
        "metrics.jsonl": rows,
        "config.yaml": noted + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True),
        "audit.json": json.dumps(result, indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        folder.write(folder.path / name, text)
