"""From rows to problems and groups: what is read, and what is said where something is missing."""

import math

import pytest

from cooper_rl import Answer, AnswerGroup, InputError, Problem
from cooper_rl.adapters.rows import Columns, by_row, consecutive, joined, or_none
from cooper_rl.reward.scored import Scored

ROW = {"question": "1+1", "answer": 2, "solution": "1+1=2", "metadata": '{"unit": "m"}'}


def test_a_row_becomes_a_problem_of_a_stable_id():
    problem = Columns().problem(ROW)
    assert (problem.question, problem.answer, problem.solution) == ("1+1", "2", "1+1=2")
    assert problem.metadata == {"unit": "m"}
    assert problem.id == Columns().problem({"question": "1+1", "answer": "2"}).id
    assert problem.id != Columns().problem({"question": "1+1", "answer": "3"}).id
    assert Columns().problem({**ROW, "id": 7}).id == "7"


def test_a_column_that_serves_as_the_answer_is_no_solution():
    problem = Columns(answer="solution").problem({"question": "1+1", "solution": "2"})
    assert (problem.answer, problem.solution) == ("2", None)


@pytest.mark.parametrize(
    ("columns", "row", "words"),
    [
        (Columns(), {"prompt": "1+1", "answer": "2"}, r"no column 'question' \(its columns: 'prompt', 'answer'\)"),
        (Columns(solution="steps"), ROW, "no column 'steps'"),
        (Columns(), {**ROW, "answer": None}, r"the row \('1\+1'\): column 'answer' is empty"),
        (Columns(), {**ROW, "answer": ["2"]}, "column 'answer': expected text or a number, found list"),
        (Columns(), {**ROW, "metadata": "{"}, "column 'metadata' is no JSON"),
        (Columns(), {**ROW, "metadata": "[1]"}, "column 'metadata' holds no object"),
    ],
)
def test_what_cannot_be_read_is_told(columns, row, words):
    with pytest.raises(InputError, match=words):
        columns.problem(row)


def test_consecutive_rows_are_groups_of_one_question_each():
    one, other = Problem("a", "1+1", "2"), Problem("b", "1+2", "3")
    rows = [(one, Answer("2")), (one, Answer("3")), (other, Answer("3")), (other, Answer("4"))]
    groups = consecutive(rows, 2, first=5)
    assert [(group.id, group.problem.id, len(group.answers)) for group in groups] == [
        ("000005", "a", 2),
        ("000006", "b", 2),
    ]
    for bad in (rows[:3], rows[1:], [rows[0], rows[2]]):
        with pytest.raises(InputError, match="are no group of 2 completions to one question"):
            consecutive(bad, 2)


def test_mixed_rows_get_their_own_rewards_back():
    one, other = Problem("a", "1+1", "2"), Problem("b", "1+2", "3")
    rows = [AnswerGroup(p.id, p, [Answer(text)]) for p, text in [(one, "x"), (other, "y"), (one, "z")]]
    assert [[answer.text for answer in group.answers] for group in joined(rows)] == [["x", "z"], ["y"]]
    assert by_row(rows, [[0.1, 0.3], [0.2]]) == [0.1, 0.2, 0.3]
    with pytest.raises(InputError, match="several questions"):
        joined([*rows, AnswerGroup("a", other, [Answer("w")])])


def test_a_trainer_that_cannot_leave_an_answer_out_pays_it_what_does_not_move_the_mean_of_its_group(caplog):
    nan = math.nan

    def for_all(rewards):
        return Scored(rewards, None, [], 0, {}).for_all()

    assert for_all([[1.0, 0.0], [0.5]]) == [[1.0, 0.0], [0.5]]
    assert "no opinion" not in caplog.text
    assert for_all([[1.0, nan, 0.0, 0.0, 1.0], [nan, nan], [nan]]) == [[1.0, 0.5, 0.0, 0.0, 1.0], [0.0, 0.0], [0.0]]
    for_all([[nan]])
    assert caplog.text.count("no opinion on some answers") == 1
    assert or_none([1.0, nan, 0.0]) == [1.0, None, 0.0]
