"""How often rule and reward model err against gold, from the records of an arena: `arena_errors.py OUTPUT_DIR`.

A table for each hole and design: the first and the last three steps of all seeds. `missed` is the share of right
completions that are not accepted, `wrong accepted` the share of wrong ones that are.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

STEPS = 3
Judged = tuple[bool, bool]
"""Gold's label and whether a completion was accepted."""


def main() -> None:
    parser = argparse.ArgumentParser(description="How often rule and reward model err against gold.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--design", nargs="*", default=[], help="designs to show; all by default")
    arguments = parser.parse_args()
    runs: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for cell in sorted(arguments.folder.glob("*/*/*/cell.json")):
        if not arguments.design or cell.parts[-3] in arguments.design:
            runs[cell.parts[-4], cell.parts[-3]].append(cell.parent)
    print("| hole | design | steps | rule: missed | wrong accepted | reward model: missed | wrong accepted |")
    print("|---|---|---|---|---|---|---|")
    for (hole, design), folders in runs.items():
        for name, part in (("first", slice(None, STEPS)), ("last", slice(-STEPS, None))):
            files = [path for folder in folders for path in sorted((folder / "rollouts").glob("*.jsonl"))[part]]
            rule, model = judged(files)
            print(f"| {hole} | {design} | {name} | {errors(rule)} | {errors(model)} |")


def judged(files: Sequence[Path]) -> tuple[list[Judged], list[Judged]]:
    """What rule and reward model said of every recorded completion; nothing of a rule that is silent on it, or of a
    reward model that was not asked."""
    rule, model = [], []
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            for completion in json.loads(line)["completions"]:
                if completion["verdict"] != "silent":
                    rule.append((completion["gold"], completion["verdict"] == "correct"))
                if "reward_model" in completion:
                    model.append((completion["gold"], completion["reward_model"] > 0.5))
    return rule, model


def errors(found: Sequence[Judged]) -> str:
    """The two error rates as cells of a table."""
    missed = [not accepted for right, accepted in found if right]
    taken = [accepted for right, accepted in found if not right]
    return " | ".join(f"{sum(part) / len(part):.2f}" if part else "–" for part in (missed, taken))


if __name__ == "__main__":
    main()
