"""Counts the rule's verdicts on the table of answers in its tests, by class.

    python benchmarks/verdicts/answer_table.py packages/verify/tests/rules/answers.jsonl

Uses only `maths_verdict` of `cooper_verify.rules.verdicts.symbolic`, so PYTHONPATH may point at another checkout.
"""

import argparse
import json
import logging
from collections import Counter, defaultdict
from pathlib import Path

from cooper_verify.rules.verdicts.symbolic import maths_verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in options.table.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kind = f"{'right' if row['right'] else 'wrong'} {maths_verdict(row['reference'], row['completion'])}"
        counts[row["class"]].update([kind])
        counts["all"].update([kind])
    columns = [f"{truth} {verdict}" for truth in ("right", "wrong") for verdict in ("correct", "wrong", "unparsed")]
    print("| answers | " + " | ".join(f"{truth}: `{verdict}`" for truth, verdict in map(str.split, columns)) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in [*(name for name in counts if name != "all"), "all"]:
        print(f"| {name} | " + " | ".join(str(counts[name][column]) for column in columns) + " |")


if __name__ == "__main__":
    main()
