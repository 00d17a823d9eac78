"""Writes rows as the rollouts of other trainers, in the shapes that the code of each writes."""

import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
"""prompt, answer, text, reward, advantage, `group` (its number in the step), `place` in the group, the problem's id."""


def write_lines(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def verl_v0(out: Path, step: int, rows: list[Row]) -> None:
    named = [
        {"input": r["prompt"], "output": r["text"], "gts": r["answer"], "score": r["reward"], "step": step}
        for r in rows
    ]
    random.Random(step).shuffle(named)
    write_lines(out / f"{step}.jsonl", [row | {"acc": str(row["score"])} for row in named])


def verl_v1(out: Path, step: int, rows: list[Row]) -> None:
    known = ("input", "output", "gts", "score")
    named = [dict(zip(known, (r["prompt"], r["text"], r["answer"], r["reward"]), strict=True)) for r in rows]
    uids = [f"{step}-{r['group']}-a_b_{r['place']}_0" for r in rows]
    write_lines(out / f"{step}.jsonl", [row | {"step": step, "uid": uid} for row, uid in zip(named, uids, strict=True)])


def trl(out: Path, step: int, rows: list[Row]) -> None:
    import pandas

    table = {"step": [step] * len(rows), "prompt": [r["prompt"] for r in rows], "completion": [r["text"] for r in rows]}
    table |= {"reward_model": [r["reward"] for r in rows], "answer": [r["answer"] for r in rows]}
    out.mkdir(parents=True, exist_ok=True)
    frame = pandas.DataFrame(table | {"advantage": [r["advantage"] for r in rows]})
    frame.to_parquet(out / f"completions_{step:05d}.parquet")


def swift(out: Path, step: int, rows: list[Row]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    table = {
        "step": [str(step)] * len(rows),
        "prompt": [r["prompt"] for r in rows],
        "completion": [r["text"] for r in rows],
    }
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
        nodes = [
            {"message": {"role": role, "content": text}, "sampled": role == "assistant"} for role, text in messages
        ]
        nodes[1]["parent"] = 0
        task = {"type": "Task", "data": {"prompt": r["prompt"], "answer": r["answer"]}, "key": r["id"]}
        rewards = {"model": {"score": r["reward"] * 2, "weight": 0.5}, "turns": None}
        episodes.append(
            {"id": "e", "traces": [{"task": task, "agent": {"trainable": True}, "nodes": nodes, "rewards": rewards}]}
        )
    for subset in ("all", "effective"):
        write_lines(out / "rollouts" / f"step_{step}" / "train" / subset / "traces.jsonl", episodes)


def verifiers(out: Path, step: int, rows: list[Row]) -> None:
    named = [
        {"example_id": r["group"], "prompt": [{"role": "user", "content": r["prompt"]}], "answer": r["answer"]}
        | {"completion": [{"role": "assistant", "content": r["text"]}], "reward": r["reward"], "is_truncated": False}
        for r in rows
    ]
    write_lines(out / f"step_{step}" / "results.jsonl", named)


def art(out: Path, step: int, rows: list[Row]) -> None:
    import pandas

    out.mkdir(parents=True, exist_ok=True)
    pandas.DataFrame([art_row(r) for r in rows]).to_parquet(out / f"{step:04d}.parquet")


def art_row(row: Row) -> Row:
    turns = [("user", row["prompt"], False), ("assistant", row["text"], True)]
    messages = [
        {"role": role, "content": text, "tool_calls": None, "tool_call_id": None, "trainable": trained}
        for role, text, trained in turns
    ]
    metadata = json.dumps({"answer": row["answer"]})
    return {"group_index": row["group"], "reward": row["reward"], "metadata": metadata, "messages": messages}


def inspect(out: Path, step: int, rows: list[Row]) -> None:
    folder = out / f"step_{step}"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "2026-11-27_sums.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for r in rows:
            name = f"samples/{r['group']}_epoch_{r['place']}.json"
            archive.writestr(name, json.dumps(inspect_sample(r) | {"epoch": r["place"]}))


def inspect_sample(row: Row) -> Row:
    asked = {"role": "user", "content": row["prompt"], "source": "input"}
    said = {"role": "assistant", "content": row["text"], "source": "generate"}
    output = {"choices": [{"message": said, "stop_reason": "stop"}], "completion": row["text"]}
    sample = {"id": row["group"], "epoch": 1, "input": row["prompt"], "target": row["answer"], "output": output}
    return sample | {"messages": [asked, said], "scores": {"right": {"value": row["reward"]}}}


WRITERS: dict[str, Callable[[Path, int, list[Row]], None]] = {
    "verl-v1": verl_v1,
    "verl-v0": verl_v0,
    "trl": trl,
    "ms-swift": swift,
    "nemo-rl": nemo_rl,
    "prime-rl": prime_rl,
    "verifiers": verifiers,
    "art": art,
    "inspect": inspect,
}
