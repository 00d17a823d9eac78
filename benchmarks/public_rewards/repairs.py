"""Repairs of the demo's reward model over five seeds: which are refused, and what each gained and lost.

    python benchmarks/public_rewards/repairs.py benchmarks/results/repairs.json --work /tmp/repairs
    python benchmarks/public_rewards/repairs.py page.json --work /tmp/page --size page   # the example of docs/attack.md

    python benchmarks/public_rewards/repairs.py benchmarks/results/repairs.json --table  # the table of docs/attack.md

A seed draws the problems, the answers, the policy that searches, and the order of the repair. Interrupted, the same
command goes on. A seed takes about one CPU minute, of the page's size about six.
"""

import argparse
import json
import subprocess
from pathlib import Path
from statistics import mean
from typing import Any

from cooper_audit.statistics import mean_interval

ASSETS = Path(__file__).resolve().parents[2] / "packages/lab/src/cooper_lab/arithmetic/assets"
SIZES = {
    "small": ("--limit", "20", "--repair-steps", "12"),
    "page": ("--limit", "60", "--policy", "embedded", "--adapt", "20", "--repair-steps", "40"),
}
SETTINGS = (
    *("reward_model.max_input_tokens=160", "reward_model.learning_rate=6e-4"),
    f"cooptimization.replay.labelled={ASSETS / 'labelled.jsonl'}",
)


def repaired(seed: int, work: Path, size: str) -> dict[str, Any]:
    """The exit code of the page's command with this seed, and what the repair changed."""
    out = work / f"seed{seed}"
    command = ["cooper", "attack", str(ASSETS / "reward_model"), "--seed", str(seed), "--out", str(out)]
    command += [*SIZES[size], "--repair", str(work / f"repaired{seed}"), *SETTINGS]
    code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
    result = json.loads((out / "attack.json").read_text(encoding="utf-8"))
    after = result["repaired"]
    shares = {"before": result["wrong_accepted"], "after": after["wrong_accepted"]}
    return {"seed": seed, "size": size, "exit_code": code, "refused": after["refused"], "wrong_accepted": shares} | {
        name: after[name] for name in ("groups", "changes")
    }


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each seed: whether the repair is refused and for what, and the changes in points with intervals. Below
    them the means over seeds, with Student's interval of the change."""
    lines = ["| seed | refused for | " + " | ".join(group["name"] for group in rows[0]["groups"]) + " |"]
    lines.append("|" + "---|" * (2 + len(rows[0]["groups"])))
    for row in rows:
        risen = [c["name"] for c in row["changes"] if not c["right"] and c["difference"]["low"] > 0]
        refused = ", ".join(f"`{name}`" for name in risen) if row["refused"] else "kept"
        cells = [
            f"{100 * group['before']:.0f} to {100 * group['after']:.0f} % ({100 * group['difference']['low']:+.0f} to "
            f"{100 * group['difference']['high']:+.0f})"
            for group in row["groups"]
        ]
        lines.append(f"| {row['seed']} | {refused} | " + " | ".join(cells) + " |")
    means = []
    for groups in zip(*(row["groups"] for row in rows), strict=True):
        before, after = (mean(100 * group[when] for group in groups) for when in ("before", "after"))
        _, low, high = mean_interval([100 * (group["after"] - group["before"]) for group in groups])
        means.append(f"{before:.0f} to {after:.0f} % ({low:+.0f} to {high:+.0f})")
    refused = sum(row["refused"] for row in rows)
    lines.append(f"| mean of {len(rows)} | {refused} of {len(rows)} refused | " + " | ".join(means) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write a row for each seed, as they end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--work", type=Path, help="Folder for the attacks and the models.")
    parser.add_argument("--table", action="store_true", help="Print the table of the results.")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    args = parser.parse_args()
    rows = json.loads(args.results.read_text(encoding="utf-8")) if args.results.exists() else []
    if args.table:
        print(table(rows), end="")
        return
    args.work.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        if all(row["seed"] != seed for row in rows):
            rows.append(repaired(seed, args.work, args.size))
            args.results.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    refused = sum(row["refused"] for row in rows)
    print(f"{refused} of {len(rows)} repairs are refused")


if __name__ == "__main__":
    main()
