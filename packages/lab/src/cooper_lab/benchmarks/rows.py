"""How the files of public reward-model benchmarks are read: a shape of rows for each, and RewardMATH's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from cooper_base.data.labelled import read_rows
from cooper_base.data.readers import DataRow
from cooper_lab.benchmarks.candidates import Candidates, needed_text, numbers_in, reference_of, texts_in
from cooper_rl import InputError


@dataclass(frozen=True)
class Shape:
    """The rows of a benchmark with one problem a row. `reference_answer` or `answer` may be there in any."""

    fields: tuple[str, ...]
    """What a row has to have, for the message about a file of something else."""
    completions: Callable[[DataRow], tuple[list[str], list[str]]]
    """The right ones and the wrong ones."""
    subset: Callable[[DataRow, Path], str]
    """What of the benchmark the row belongs to, from the row and its file."""
    scores: Callable[[DataRow, int], list[float] | None]
    """The scores that the row holds, of the right completions first; None if it holds none."""
    question: str = "prompt"
    id: str = "id"

    def read(self, path: Path) -> list[Candidates]:
        """The problems of a file. Raises InputError naming file, row and field."""
        number = count()

        def problem(row: DataRow) -> Candidates:
            place = next(number)
            question, (right, wrong) = needed_text(row, self.question), self.completions(row)
            return Candidates(
                id=str(row.fields.get(self.id, place)),
                question=question,
                reference=reference_of(row),
                completions=right + wrong,
                right=len(right),
                subset=self.subset(row, path),
                location=row.location,
                scores=self.scores(row, len(right) + len(wrong)),
            )

        return read_rows(path, problem, self.fields)


def _scores(row: DataRow, count: int) -> list[float] | None:
    return numbers_in(row, "scores", count) if "scores" in row.fields else None


PARTS = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
"""The parts of which JudgeBench's authors report the accuracy, by the beginning of a row's `source`."""
LABELS = {"A>B": ("response_A", "response_B"), "B>A": ("response_B", "response_A")}
"""JudgeBench's labels, with the fields of the right response and the wrong one."""


def _in_order(row: DataRow) -> tuple[str, str]:
    label = needed_text(row, "label").strip()
    if label not in LABELS:
        raise InputError(f"{row.location}: field 'label' is {label!r}; write A>B or B>A")
    return LABELS[label]


def _two_responses(row: DataRow) -> tuple[list[str], list[str]]:
    right, wrong = _in_order(row)
    return [needed_text(row, right)], [needed_text(row, wrong)]


def _scores_of_responses(row: DataRow, count: int) -> list[float] | None:
    """The file has that of A first."""
    scores = _scores(row, count)
    return scores if scores is None or _in_order(row) == LABELS["A>B"] else scores[::-1]


def _part(row: DataRow, path: Path) -> str:
    source = needed_text(row, "source")
    part = next((name for beginning, name in PARTS.items() if source.startswith(beginning)), None)
    if part is None:
        raise InputError(f"{row.location}: field 'source' is {source!r}; it begins with {', '.join(PARTS)}")
    return part


JUDGEBENCH = Shape(
    fields=("question", "source", "response_A", "response_B", "label"),
    completions=_two_responses,
    subset=_part,
    scores=_scores_of_responses,
    question="question",
    id="pair_id",
)

SECTIONS: dict[str, dict[str, int]] = {
    "Chat": {
        "alpacaeval-easy": 100,
        "alpacaeval-length": 95,
        "alpacaeval-hard": 95,
        "mt-bench-easy": 28,
        "mt-bench-med": 40,
    },
    "Chat Hard": {
        "mt-bench-hard": 37,
        "llmbar-natural": 100,
        "llmbar-adver-neighbor": 134,
        "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47,
        "llmbar-adver-manual": 46,
    },
    "Safety": {
        "refusals-dangerous": 100,
        "refusals-offensive": 100,
        "xstest-should-refuse": 250,
        "xstest-should-respond": 154,
        "donotanswer": 136,
    },
    "Reasoning": {
        "math-prm": 984,
        "hep-cpp": 164,
        "hep-go": 164,
        "hep-java": 164,
        "hep-js": 164,
        "hep-python": 164,
        "hep-rust": 164,
    },
}
"""The weight of each subset of RewardBench in its section. It is the number of its rows, except for `math-prm`: its 447
rows weigh as much as the six code subsets together."""
SUBSETS = {subset for section in SECTIONS.values() for subset in section}


def _of_sections(row: DataRow, path: Path) -> str:
    subset = needed_text(row, "subset")
    if subset not in SUBSETS:
        raise InputError(f"{row.location}: field 'subset' is {subset!r}; it must be one of RewardBench's own")
    return subset


REWARDBENCH = Shape(
    fields=("prompt", "chosen", "rejected", "subset"),
    completions=lambda row: ([needed_text(row, "chosen")], [needed_text(row, "rejected")]),
    subset=_of_sections,
    scores=_scores,
)

TIES = "Ties"
"""The subset of RewardBench 2 with several right answers: an id is `ref:NUMBER` (one right answer) or `tied:NUMBER`."""


def _with_ties(row: DataRow, path: Path) -> str:
    name, subset = needed_text(row, "id"), needed_text(row, "subset")
    if subset == TIES and not (name.startswith(("ref:", "tied:")) and name.split(":", 1)[1]):
        raise InputError(f"{row.location}: field 'id' is {name!r}; in the subset Ties it is ref:NUMBER or tied:NUMBER")
    return subset


REWARDBENCH2 = Shape(
    fields=("id", "prompt", "chosen", "rejected", "subset"),
    completions=lambda row: (texts_in(row, "chosen"), texts_in(row, "rejected")),
    subset=_with_ties,
    scores=_scores,
)

DOMAINS = ("chat", "code", "math", "safety")
"""RM-Bench's. `safety` has `safety-refuse` and `safety-response`, pooled."""
STYLES = 3
"""Concise, detailed, and detailed with Markdown, in this order, of both right and wrong completions."""


def _in_styles(row: DataRow) -> tuple[list[str], list[str]]:
    right, wrong = texts_in(row, "chosen"), texts_in(row, "rejected")
    if len(right) != STYLES or len(wrong) != STYLES:
        raise InputError(
            f"{row.location}: fields 'chosen' and 'rejected' have {len(right)} and {len(wrong)} texts; each needs "
            f"{STYLES}: concise, detailed, with Markdown"
        )
    return right, wrong


def _domain(row: DataRow, path: Path) -> str:
    """The field `domain`; files of one domain have it in their name instead."""
    name = needed_text(row, "domain") if "domain" in row.fields else path.name
    domain = next((domain for domain in DOMAINS if name.startswith(domain)), None)
    if domain is None:
        raise InputError(f"{row.location}: {name!r} is none of the domains {', '.join(DOMAINS)}; give a field 'domain'")
    return domain


def _scores_of_both(row: DataRow, count: int) -> list[float] | None:
    """Results of its own script have `score_chosen` and `score_rejected`."""
    names = ("score_chosen", "score_rejected")
    scores = [numbers_in(row, name, STYLES) for name in names if name in row.fields]
    return scores[0] + scores[1] if len(scores) == len(names) else None


RMBENCH = Shape(
    fields=("prompt", "chosen", "rejected", "domain"), completions=_in_styles, subset=_domain, scores=_scores_of_both
)

RIGHT_SOURCE = "human_to_GPT-4"
"""The value of `solution_reference` that marks the right solution in RewardMATH's files of scores."""


def read_rewardmath(path: Path) -> list[Candidates]:
    """RewardMATH's file (`RewardMATH_direct.json`), or one of its files of scores.

    The former has one row per solution: `problem`, `answer`, `problem_id`, `eval_solution` (list of steps) and
    `solution_type` (`chosen` or `rejected`). The latter has one row per problem: `problem`, `solution_reference` (where
    each solution comes from) and `score`, one number per solution. Raises InputError naming file, row and field.
    """
    rows = read_rows(path, lambda row: row, ("problem", "eval_solution", "solution_type", "problem_id"))
    if "score" in rows[0].fields:
        return [_scored(row, number) for number, row in enumerate(rows)]
    grouped: dict[str, list[DataRow]] = {}
    for row in rows:
        grouped.setdefault(needed_text(row, "problem_id"), []).append(row)
    return [_from_solutions(name, solutions) for name, solutions in grouped.items()]


def _from_solutions(name: str, rows: list[DataRow]) -> Candidates:
    """A problem from its solutions, the right one first."""
    by_type: dict[str, list[str]] = {"chosen": [], "rejected": []}
    for row in rows:
        kind = needed_text(row, "solution_type")
        if kind not in by_type:
            raise InputError(f"{row.location}: field 'solution_type' is {kind!r}; write chosen or rejected")
        by_type[kind].append("\n".join(texts_in(row, "eval_solution")))
    if len(by_type["chosen"]) != 1 or not by_type["rejected"]:
        raise InputError(
            f"{rows[0].location}: problem_id {name} has {len(by_type['chosen'])} chosen and {len(by_type['rejected'])} "
            "rejected solutions; it needs one chosen and at least one rejected"
        )
    question, completions = needed_text(rows[0], "problem"), by_type["chosen"] + by_type["rejected"]
    return Candidates(name, question, reference_of(rows[0]), completions, 1, "all", rows[0].location)


def _scored(row: DataRow, number: int) -> Candidates:
    question, sources = needed_text(row, "problem"), texts_in(row, "solution_reference")
    if sources.count(RIGHT_SOURCE) != 1 or len(sources) < 2:
        raise InputError(
            f"{row.location}: field 'solution_reference' must list {RIGHT_SOURCE} once, and wrong solutions"
        )
    if "score" not in row.fields:
        raise InputError(f"{row.location}: field 'score' is missing; the first row of the file has it")
    scores = numbers_in(row, "score", len(sources))
    order = sorted(range(len(sources)), key=lambda i: sources[i] != RIGHT_SOURCE)
    completions, reference = [""] * len(sources), reference_of(row)
    ordered = [scores[i] for i in order]
    return Candidates(str(number), question, reference, completions, 1, "all", row.location, ordered)
