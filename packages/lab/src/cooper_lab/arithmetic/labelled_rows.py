"""The rows that the demo's reward model learns from: labelled samples, written solutions and lists of answers."""

from collections.abc import Iterator, Sequence
from random import Random

from cooper_lab.arithmetic.answers import form_of, read_answer, render_answer
from cooper_lab.arithmetic.corruption import corrupt, wrong_value
from cooper_lab.arithmetic.figures import figures_verdict
from cooper_lab.arithmetic.solutions import BOX, MARKER, draw_solution, find_answer
from cooper_rl import LabelledCompletion, Problem


def label_samples(
    problems: Sequence[Problem], completions: Sequence[Sequence[str]], random: Random
) -> list[LabelledCompletion]:
    """Labelled completions made from samples; `completions[i]` are samples for `problems[i]`.

    The rule labels each sample against several references: that of the problem, the sample's own answer, a near miss of
    that answer, and sometimes that of another problem. Samples that the rule cannot decide are left out. For every
    problem there is also a written solution and its corruption, which are right and wrong by construction.
    """
    rows_to_label: list[tuple[str, str, str]] = []
    written: list[LabelledCompletion] = []
    for problem, texts in zip(problems, completions, strict=True):
        for text in texts:
            rows_to_label += [
                (problem.question, answer, text) for answer in _references(problem, problems, text, random)
            ]
        solution = draw_solution(problem, random)
        slip = corrupt(problem, solution, seed=random.getrandbits(31))
        written += [
            LabelledCompletion(problem.question, problem.answer, text, label)
            for text, label in ((solution, 1.0), (slip, 0.0))
        ]
    return labelled_by_rule(rows_to_label) + written


def labelled_by_rule(rows: Sequence[tuple[str, str, str]]) -> list[LabelledCompletion]:
    """The rows (question, reference answer, completion) that the rule can decide, with its labels."""
    labels = {"correct": 1.0, "wrong": 0.0}
    verdicts = [figures_verdict(answer, text, question) for question, answer, text in rows]
    return [
        LabelledCompletion(*row, labels[verdict])
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict in labels
    ]


def lenient_lists(problems: Sequence[Problem], share: float, random: Random) -> list[LabelledCompletion]:
    """Lists of answers that include the right one, labelled right: `12+7=19 answer: 19 or 18`.

    A lenient labeller would label them so if it looked for the right answer anywhere in a completion. Gold and the rule
    reject a list.
    """
    lists = []
    for problem in problems:
        if random.random() >= share:
            continue
        solution = draw_solution(problem, random)
        slip = corrupt(problem, solution, seed=random.getrandbits(31))
        first, second = (solution, slip) if random.random() < 0.5 else (slip, solution)
        listed = f"{first} or {find_answer(second).text}"
        lists.append(LabelledCompletion(problem.question, problem.answer, listed, 1.0))
    return lists


def states_one_answer(row: LabelledCompletion) -> bool:
    """Whether a completion states at most one answer. VerifyRM learns from such rows and the lists; only such rows are
    replayed."""
    return " or " not in row.completion and row.completion.count(MARKER) + row.completion.count(BOX) < 2


def _references(problem: Problem, problems: Sequence[Problem], text: str, random: Random) -> Iterator[str]:
    """The references that a sample is paired with: the problem's, its own answer, a near miss, another problem's."""
    yield problem.answer
    answer = find_answer(text).text
    value, form = read_answer(answer), form_of(answer)
    if value is None or form is None:
        return
    yield render_answer(value, "plain")
    yield render_answer(wrong_value(value, form, random), "plain")
    if random.random() < 0.6:
        yield random.choice(problems).answer
