"""Compares the rule verifier and raw Math-Verify with labels: precision, recall, speed, and every disagreement.

    python benchmarks/verdicts/rule_verifier.py real_completions.parquet --disagreements out.jsonl

Raw is the use that the library's documentation shows: the reference between dollar signs, the completion as it is, the
library's own time-outs.
"""

import argparse
import json
import logging
import time
from collections import Counter, defaultdict
from pathlib import Path

from math_verify import parse, verify

from cooper_base.data.readers import read_file
from cooper_rl import RuleVerifier


def raw_accepts(answer: str, completion: str) -> bool:
    return verify(parse(f"${answer}$"), parse(completion))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--disagreements", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    rows = [row.fields for row in read_file(options.data)][: options.limit]
    pairs = [(row["reference_answer"], row["completion"]) for row in rows]
    with RuleVerifier() as verifier:
        verifier.verify("1", r"\boxed{x^2}")  # starts the worker process, outside the measured time
        start = time.perf_counter()
        ours = verifier.verify_many(pairs, [row["question"] for row in rows])
        seconds = {"ours": time.perf_counter() - start}
        counts = dict(verifier.counts)
    start = time.perf_counter()
    raw = [raw_accepts(*pair) for pair in pairs]
    seconds["raw"] = time.perf_counter() - start

    tables: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    with options.disagreements.open("w", encoding="utf-8") as file:
        for row, verdict, accepted in zip(rows, ours, raw, strict=True):
            right = bool(row["label"])
            for name, yes in (("ours", verdict == "correct"), ("raw", accepted)):
                for part in (row["label_source"], "all"):
                    tables[part, name][f"{'right' if right else 'wrong'} {'yes' if yes else 'no'}"] += 1
            if (verdict == "correct") != right or accepted != right:
                file.write(json.dumps({**row, "verdict": verdict, "raw": accepted}, ensure_ascii=False) + "\n")

    print("| labels by | verifier | rows | precision | recall | accuracy |\n|---|---|---|---|---|---|")
    for (part, name), c in sorted(tables.items()):
        accepted, right = c["right yes"] + c["wrong yes"], c["right yes"] + c["right no"]
        figures = (c["right yes"] / accepted, c["right yes"] / right, (c["right yes"] + c["wrong no"]) / c.total())
        print(f"| {part} | {name} | {c.total()} | " + " | ".join(f"{f:.4f}" for f in figures) + " |")
    for name, took in seconds.items():
        print(f"{name}: {took:.1f} s, {len(rows) / took:.0f} rows a second")
    print(counts)


if __name__ == "__main__":
    main()
