"""Writes recorded runs of Cooper as the rollouts of other trainers, audits them and prints a table of verdicts.

    python benchmarks/audit_dumps.py RUN... --out FOLDER [--formats verl-v1 trl …]

What a run's record knows and a trainer would not write (gold labels, verdicts) is left out of the dumps. The onset is
compared with that of the run's own gold labels, by the same statistics.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cooper_rl.audit import audit
from cooper_rl.audit.references import References
from cooper_rl.audit.auditing import Audit, Options, label_key
from cooper_rl.observe.run_record import read_groups

Row = dict[str, Any]


def rows_of(run: Path) -> Iterator[tuple[int, list[Row]]]:
    """Each step with its rows: prompt, completion, reference, reward, advantage, group and place in the group."""
    for path in sorted((run / "rollouts").glob("*.jsonl")):
        rows = []
        for number, group in enumerate(read_groups(path)):
            for place, one in enumerate(group["completions"]):
                known = {"prompt": group["prompt"], "answer": group["answer"], "id": group["problem"]}
                rows.append(known | {"group": number, "place": place} | {k: one[k] for k in ("text", "reward", "advantage")})
        yield int(path.stem), rows


def write_lines(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def verl_v0(out: Path, step: int, rows: list[Row]) -> None:
    named = [{"input": r["prompt"], "output": r["text"], "gts": r["answer"], "score": r["reward"], "step": step} for r in rows]
    random.Random(step).shuffle(named)
    write_lines(out / f"{step}.jsonl", [row | {"acc": str(row["score"])} for row in named])


def verl_v1(out: Path, step: int, rows: list[Row]) -> None:
    known = ("input", "output", "gts", "score")
    named = [dict(zip(known, (r["prompt"], r["text"], r["answer"], r["reward"]), strict=True)) for r in rows]
    uids = [f"{step}-{r['group']}-a_b_{r['place']}_0" for r in rows]
    write_lines(out / f"{step}.jsonl", [row | {"step": step, "uid": uid} for row, uid in zip(named, uids, strict=True)])


def trl(out: Path, step: int, rows: list[Row]) -> None:
    import pandas  # noqa: PLC0415

    table = {"step": [step] * len(rows), "prompt": [r["prompt"] for r in rows], "completion": [r["text"] for r in rows]}
    table |= {"reward_model": [r["reward"] for r in rows], "answer": [r["answer"] for r in rows]}
    out.mkdir(parents=True, exist_ok=True)
    frame = pandas.DataFrame(table | {"advantage": [r["advantage"] for r in rows]})
    frame.to_parquet(out / f"completions_{step:05d}.parquet")


def swift(out: Path, step: int, rows: list[Row]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    table = {"step": [str(step)] * len(rows), "prompt": [r["prompt"] for r in rows], "completion": [r["text"] for r in rows]}
    table |= {"MyReward": [r["reward"] for r in rows], "advantages": [r["advantage"] for r in rows]}
    table |= {"solution": [r["answer"] for r in rows]}
    with (out / "completions.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(table) + "\n")


def nemo_rl(out: Path, step: int, rows: list[Row]) -> None:
    write_lines(
        out / f"train_data_step{step}.jsonl",
        [
            {"content": [[r["prompt"], r["text"]]], "rewards": [r["reward"]], "input_lengths": [9]}
            | {"advantages": [[r["advantage"]] * 2], "idx": i}
            for i, r in enumerate(rows)
        ],
    )


def prime_rl(out: Path, step: int, rows: list[Row]) -> None:
    episodes = []
    for r in rows:
        messages = [("user", r["prompt"]), ("assistant", r["text"])]
        nodes = [{"message": {"role": role, "content": text}, "sampled": role == "assistant"} for role, text in messages]
        nodes[1]["parent"] = 0
        task = {"type": "Task", "data": {"prompt": r["prompt"], "answer": r["answer"]}, "key": r["id"]}
        rewards = {"model": {"score": r["reward"] * 2, "weight": 0.5}, "turns": None}
        episodes.append({"id": "e", "traces": [{"task": task, "agent": {"trainable": True}, "nodes": nodes, "rewards": rewards}]})
    for subset in ("all", "effective"):
        write_lines(out / "rollouts" / f"step_{step}" / "train" / subset / "traces.jsonl", episodes)


def verifiers(out: Path, step: int, rows: list[Row]) -> None:
    named = [
        {"example_id": r["group"], "prompt": [{"role": "user", "content": r["prompt"]}], "answer": r["answer"]}
        | {"completion": [{"role": "assistant", "content": r["text"]}], "reward": r["reward"], "is_truncated": False}
        for r in rows
    ]
    write_lines(out / f"step_{step}" / "results.jsonl", named)


WRITERS: dict[str, Callable[[Path, int, list[Row]], None]] = {
    "verl-v1": verl_v1,
    "verl-v0": verl_v0,
    "trl": trl,
    "ms-swift": swift,
    "nemo-rl": nemo_rl,
    "prime-rl": prime_rl,
    "verifiers": verifiers,
}


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
    print("| run | by gold | its onset |", " | ".join(asked.formats), "| onset |\n|" + "---|" * (len(asked.formats) + 4))
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
