"""Writes the problems and the warm-up rows of the real-model runs, with no question in two of the files.

    python -m benchmarks.real_model.data ../shared/data/problems OUT_DIR

`warm_up.jsonl`: ASDiv problems whose formula is one plain equation, and that equation as the completion.
`train.jsonl`, `test.jsonl`: easy problems of MAWPS, without repeated questions. `svamp.jsonl`: the second test set, its
easy problems. Easy is a short question with two numbers and a whole answer. MAWPS has no solutions: the
boxed answer stands for one, so that a problem nobody solved still has a positive. `operation` is the first of + - * /
that leads from the two numbers, in either order, to the answer.
"""

import argparse
import json
import re
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

TEST = 256
LONGEST = 300
"""Characters of the longest warm-up question that is kept. Longer ones cost more than they add."""
LONGEST_EASY = 160
"""Characters of the longest question of a problem that counts as easy."""
NUMBER = r"\d+(?:\.\d+)?"
PLAIN = re.compile(r"(?P<left>[\d+\-*/(). ]+)=(?P<right>\d+(\.\d+)?)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    svamp = [
        {"question": f"{row['Body'].rstrip(' .')}. {row['Question']}", "answer": number(row["Answer"])}
        for row in json.loads((given.problems / "svamp.json").read_text(encoding="utf-8"))
    ]
    mawps = [
        {"question": row["input"], "answer": number(row["target"])} for row in rows(given.problems / "mawps.jsonl")
    ]
    random = Random(0)
    random.shuffle(svamp)
    random.shuffle(mawps)
    svamp, mawps = unseen(svamp, seen), unseen(mawps, seen)
    easy = [row for row in mawps if is_easy(row)]
    write(given.out / "svamp.jsonl", [row for row in svamp if is_easy(row)][:TEST])
    write(given.out / "test.jsonl", [row | {"operation": operation(row)} for row in easy[:TEST]])
    write(
        given.out / "train.jsonl",
        [
            row | {"solution": f"The answer is \\boxed{{{row['answer']}}}.", "operation": operation(row)}
            for row in easy[TEST:]
        ],
    )
    write(given.out / "warm_up.jsonl", unseen(warm_up(rows(given.problems / "asdiv.jsonl")), seen))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def number(value: float) -> str:
    """`7` for 7.0, `0.25` for 0.25."""
    return f"{value:.10g}"


def is_easy(row: dict[str, str], longest: int = LONGEST_EASY) -> bool:
    """Whether the question is short (at most `longest` characters) and has two numbers, and the answer is a whole
    number."""
    numbers = re.findall(NUMBER, row["question"])
    return len(numbers) == 2 and len(row["question"]) <= longest and row["answer"].isdecimal()


def operation(row: dict[str, str]) -> str:
    """That of an easy problem, or `other`."""
    one, two = map(Fraction, re.findall(NUMBER, row["question"]))
    found = {"+": one + two, "-": abs(one - two), "*": one * two}
    if one and two:
        found["/"] = max(one, two) / min(one, two)
    return next((name for name, value in found.items() if value == Fraction(row["answer"])), "other")


def warm_up(asdiv: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Question and completion where the formula is one equation that leads to the answer."""
    found = []
    for row in asdiv:
        match = PLAIN.fullmatch(row["formula"])
        stated = re.match(r"\d+(\.\d+)?", row["answer"])
        if match and stated and Fraction(stated.group()) == Fraction(match["right"]):
            steps = re.sub(r"\s*([+*/-])\s*", r" \1 ", match["left"]).strip()
            completion = solved(steps, match["right"])
            found.append({"question": f"{row['body']} {row['question']}", "completion": completion})
    return found


def solved(steps: str, answer: str) -> str:
    """A completion that the warm-up shows, such as ` 7 + 2 = 9. The answer is \\boxed{9}.`"""
    return f" {steps} = {answer}. The answer is \\boxed{{{answer}}}."


def unseen(found: list[dict[str, str]], seen: set[str]) -> list[dict[str, str]]:
    """The rows whose question, but for case and punctuation, was not seen before and is not too long."""
    kept = []
    for row in found:
        key = re.sub(r"\W+", " ", row["question"].lower()).strip()
        if key not in seen and len(row["question"]) <= LONGEST:
            seen.add(key)
            kept.append(row)
    return kept


def write(path: Path, kept: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    print(f"{path.name}: {len(kept)} rows")


if __name__ == "__main__":
    main()
