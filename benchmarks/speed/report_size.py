"""Measures how large the report of a long run is and what it takes to write it.

    python benchmarks/speed/report_size.py runs/demo/cooper --steps 200 --steps 2000

The runs are made from one that is on disk. Its steps are repeated, and every step gets `--completions` of `--tokens`
tokens: texts of the run strung together, a token having four characters. CPU seconds are those of `cooper report`.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Literal

from cooper_audit.report.report import write_report
from cooper_audit.run.run_record import RunRecord, read_lines, read_record

CHARACTERS = 4
"""Characters of a token, about as many as in English text."""
GROUP = 8
"""Completions of a problem."""
Row = dict[str, Any]


class Lengthened:
    """The completions of a run with more of its texts behind their own and, if wanted, log-probabilities."""

    def __init__(self, texts: list[str], tokens: int, logprobs: bool):
        self._texts, self._tokens, self._logprobs = texts, tokens, logprobs
        self._random = Random(0)

    def group(self, group: Row) -> Row:
        return {**group, "completions": [self._completion(one) for one in group["completions"][:GROUP]]}

    def _completion(self, completion: Row) -> Row:
        text = completion["text"]
        while len(text) < self._tokens * CHARACTERS:
            text += "\n" + self._random.choice(self._texts)
        text = text[: self._tokens * CHARACTERS]
        made = {name: value for name, value in completion.items() if name not in ("pieces", "logprobs")}
        made |= {"text": text, "tokens": self._tokens}
        if self._logprobs:
            made["pieces"] = [text[i : i + CHARACTERS] for i in range(0, len(text), CHARACTERS)]
            made["logprobs"] = [round(-self._random.expovariate(2.0), 3) for _ in made["pieces"]]
        return made


def long_run(source: Path, folder: Path, steps: int, arguments: argparse.Namespace, logprobs: bool) -> None:
    """A run of so many steps in the folder, made of the steps of the source."""
    run = read_record(source)
    metrics, recorded = [row for row in run.metrics if row["step"] > 0], list(read_lines_of(run, "rollouts"))
    pairs = list(read_lines_of(run, "pairs"))
    texts = [completion["text"] for groups in recorded for group in groups for completion in group["completions"]]
    longer = Lengthened(texts, arguments.tokens, logprobs)
    for name in ("rollouts", "pairs"):
        (folder / name).mkdir(parents=True)
    shutil.copy(source / "config.yaml", folder)
    write_lines(folder / "metrics.jsonl", [{**metrics[step % len(metrics)], "step": step + 1} for step in range(steps)])
    for step in range(steps):
        groups = recorded[step % len(recorded)][: arguments.completions // GROUP]
        write_lines(folder / "rollouts" / f"{step + 1:06d}.jsonl", [longer.group(group) for group in groups])
        write_lines(folder / "pairs" / f"{step + 1:06d}.jsonl", pairs[step % len(pairs)])


def read_lines_of(run: RunRecord, folder: Literal["rollouts", "pairs"]) -> Iterator[list[Row]]:
    """The lines of every step."""
    return (read_lines(path) for path in run.files(folder))


def write_lines(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def measure(source: Path, steps: int, arguments: argparse.Namespace, logprobs: bool) -> str:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        long_run(source, folder, steps, arguments, logprobs)
        on_disk = sum(path.stat().st_size for path in (folder / "rollouts").iterdir()) / 1e6
        start = time.process_time()
        page = write_report(folder)
        seconds = time.process_time() - start
        size = page.stat().st_size / 1e6
    kept = "every step" if logprobs else "no"
    return f"| {steps:,} | {kept} | {on_disk:.0f} MB | {size:.2f} MB | {seconds:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder, such as that of a run of `cooper demo`")
    parser.add_argument("--steps", type=int, action="append", help="steps of a run; repeat for several")
    parser.add_argument("--completions", type=int, default=64, help="completions of a step")
    parser.add_argument("--tokens", type=int, default=200, help="tokens of a completion")
    arguments = parser.parse_args()
    print("| steps | log-probabilities | rollouts on disk | page | CPU seconds |\n|---|---|---|---|---|")
    for logprobs in (False, True):
        for steps in arguments.steps or [200, 2000]:
            print(measure(arguments.run, steps, arguments, logprobs))


if __name__ == "__main__":
    main()
