"""Writes recorded runs of Cooper as the rollouts of other trainers, audits them and prints a table of verdicts.

    PYTHONPATH=packages/audit/tests/rollouts python benchmarks/runs/audit_dumps.py RUN... --out FOLDER [--formats trl …]

What a run's record knows and a trainer would not write (gold labels, verdicts) is left out of the dumps. The onset is
compared with that of the run's own gold labels, by the same statistics.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from dumps import WRITERS, Row

from cooper_audit.rollouts import audit
from cooper_audit.rollouts.auditing import Audit, Options
from cooper_audit.rollouts.labels import label_key
from cooper_audit.rollouts.references import References
from cooper_audit.run.run_record import read_groups


def rows_of(run: Path) -> Iterator[tuple[int, list[Row]]]:
    """Each step with its rows: prompt, completion, reference, reward, advantage, group and place in the group."""
    for path in sorted((run / "rollouts").glob("*.jsonl")):
        rows = []
        for number, group in enumerate(read_groups(path)):
            for place, one in enumerate(group["completions"]):
                known = {"prompt": group["prompt"], "answer": group["answer"], "id": group["problem"]}
                rows.append(
                    known | {"group": number, "place": place} | {k: one[k] for k in ("text", "reward", "advantage")}
                )
        yield int(path.stem), rows


def gold_of(run: Path) -> dict[str, bool]:
    """The gold labels of a run, as an audit takes labels."""
    groups = (group for path in (run / "rollouts").glob("*.jsonl") for group in read_groups(path))
    return {label_key(group["prompt"], one["text"]): one["gold"] for group in groups for one in group["completions"]}


def onset_of(result: Audit) -> str:
    return "–" if result.finding.onset is None else "{} to {}".format(*result.finding.onset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--formats", nargs="+", default=list(WRITERS), choices=list(WRITERS))
    asked = parser.parse_args()
    print(
        "| run | by gold | its onset |", " | ".join(asked.formats), "| onset |\n|" + "---|" * (len(asked.formats) + 4)
    )
    for run in asked.runs:
        results = {}
        for name in asked.formats:
            folder = asked.out / run.name / name
            for step, rows in () if folder.exists() else rows_of(run):
                WRITERS[name](folder, step, rows)
            results[name] = audit([folder], asked.out / run.name / f"{name}-audit", options_for(run, name))
        gold = Options(labels=gold_of(run))
        truth = audit([asked.out / run.name / asked.formats[0]], asked.out / run.name / "gold-audit", gold)
        states = " | ".join(result.finding.state for result in results.values())
        onsets = " / ".join(dict.fromkeys(onset_of(result) for result in results.values()))
        print(f"| {run.name} | {truth.finding.state} | {onset_of(truth)} | {states} | {onsets} |", flush=True)


def options_for(run: Path, name: str) -> Options:
    """NeMo-RL writes no reference, so its audit is given the questions with their answers."""
    if name != "nemo-rl":
        return Options()
    return Options(references=References({row["prompt"]: row["answer"] for _, rows in rows_of(run) for row in rows}))


if __name__ == "__main__":
    main()
