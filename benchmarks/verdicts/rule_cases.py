"""Counts the default rule's verdicts on its table of cases, by category.

    python benchmarks/verdicts/rule_cases.py packages/verify/tests/rules/rule_cases/maths.jsonl

Uses only `RuleVerifier.verify_problems`, so PYTHONPATH may point at an older checkout that has it.
"""

import argparse
import json
import logging
from collections import Counter, defaultdict
from pathlib import Path

from cooper_base.data.problem import Problem
from cooper_rl import RuleVerifier

COLUMNS = (
    "as expected",
    "accepted, not right",
    "right, not accepted",
    "`wrong`, not `unparsed`",
    "`unparsed`, not `wrong`",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows = [json.loads(line) for line in options.table.read_text(encoding="utf-8").splitlines()]
    asked = [(Problem("p", row.get("question", "?"), row["answer"]), row["completion"]) for row in rows]
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_problems(asked)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row, verdict in zip(rows, verdicts, strict=True):
        for category in (row["category"], "all"):
            counts[category].update([_column(row["verdict"], verdict)])
    print("| cases | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for category in [*(category for category in counts if category != "all"), "all"]:
        print(f"| {category} | " + " | ".join(str(counts[category][column]) for column in COLUMNS) + " |")


def _column(expected: str, verdict: str) -> str:
    if verdict == expected:
        return COLUMNS[0]
    if verdict == "correct":
        return COLUMNS[1]
    if expected == "correct":
        return COLUMNS[2]
    return COLUMNS[3] if expected == "unparsed" else COLUMNS[4]


if __name__ == "__main__":
    main()
