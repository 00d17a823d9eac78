"""The fields of widely used data sets become questions, answers and solutions."""

from typing import Any

import pytest

from cooper_base.data.mappings import READY_MADE, BadValue, Mapping, join_sentences, last_boxed, map_row, text_of
from cooper_base.data.readers import DataRow
from cooper_base.errors import InputError

CASES = {
    "gsm8k": (
        {"question": "Q?", "answer": "He has 2*600 = <<2*600=1200>>1200 eggs.\n#### 1,200"},
        ("Q?", "1200", "He has 2*600 = 1200 eggs.\nThe answer is \\boxed{1200}."),
    ),
    "svamp": (
        {"ID": "chal-9", "Body": "Paco had 3 pears", "Question": "How many?", "Answer": 51.0},
        ("Paco had 3 pears. How many?", "51", None),
    ),
    "asdiv": ({"body": "B.", "question": "How many? ", "answer": "15 (balls)"}, ("B. How many?", "15", None)),
    "mawps": ({"input": "Q ?", "target": 0.25}, ("Q ?", "0.25", None)),
    "math": (
        {"problem": "P", "solution": r"First \boxed{1}, then $\boxed{\frac{1}{2}}.$"},
        ("P", r"\frac{1}{2}", r"First \boxed{1}, then $\boxed{\frac{1}{2}}.$"),
    ),
    "math500": (
        {"problem": "P", "answer": "p - q", "solution": r"So \boxed{p - q}.", "unique_id": "test/1.json"},
        ("P", "p - q", r"So \boxed{p - q}."),
    ),
    "olympiadbench": (
        {"id": 7, "context": None, "question": "Q", "final_answer": ["$69$,$84$"], "solution": ["One.", "Other."]},
        ("Q", "69,84", "One.\nThe answer is \\boxed{69,84}."),
    ),
    "math_odyssey": (
        {
            "question": "The value is\n\t\n\\end{problem}\t\n\\noindent",
            "answer": "$x^4-10x^2+1.$ \\\\\n\n\\noindent",
            "reasoning": "Because.",
        },
        ("The value is", "x^4-10x^2+1", "Because.\nThe answer is \\boxed{x^4-10x^2+1}."),
    ),
    "deepmath": (
        {"question": "Q", "final_answer": "$0$", "r1_solution_1": "So \\boxed{0}", "r1_solution_2": "b"},
        ("Q", "0", "So \\boxed{0}"),
    ),
}


def test_every_ready_made_mapping_has_a_case():
    rows_of_trainers = {"verl", "open_instruct", "prime_rl"}  # test_rows_of_trainers.py
    assert CASES.keys() | rows_of_trainers == READY_MADE.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_ready_made_mapping_reads_its_data_set(name: str):
    fields, expected = CASES[name]
    problem = map_row(DataRow("data:3", fields), READY_MADE[name], "data-3")
    assert (problem.question, problem.answer, problem.solution) == expected


def test_ids_come_from_the_field_then_the_key_then_the_location():
    fields = {"question": "Q", "answer": "1", "key": "k7"}
    assert map_row(DataRow("f:1", fields, "Problem_1"), Mapping(("question",), "answer", id="key"), "f-1").id == "k7"
    assert map_row(DataRow("f:1", fields, "Problem_1"), Mapping(("question",), "answer"), "f-1").id == "Problem_1"
    assert map_row(DataRow("f:1", fields), Mapping(("question",), "answer"), "f-1").id == "f-1"


def test_metadata_keeps_the_other_fields_and_the_problem_its_location():
    row = DataRow("f:1", {"question": "Q", "answer": "1", "level": 5, "long": "x", "location": "Paris"})
    problem = map_row(row, Mapping(("question",), "answer", omit=("long",)), "f-1")
    assert problem.metadata == {"level": 5, "location": "Paris"}
    assert problem.location == "f:1"


@pytest.mark.parametrize(
    ("value", "text"),
    [(43.0, "43"), (0.1, "0.1"), (1e-7, "0.0000001"), (-2.5, "-2.5"), (10**30, str(10**30)), (" a ", "a"), (None, "")],
)
def test_numbers_read_as_people_write_them(value: Any, text: str):
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"\boxed{2}", "2"),
        (r"\boxed{\text{a {b} c}} done", r"\text{a {b} c}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"$\boxed 3$ apples", "3"),
        (r"\fbox{B}", "B"),
    ],
)
def test_the_last_box_holds_the_answer(solution: str, answer: str):
    assert last_boxed(solution) == answer


@pytest.mark.parametrize("solution", ["no box", r"\boxed{1", ""])
def test_a_solution_without_a_closed_box_is_a_bad_row(solution: str):
    with pytest.raises(BadValue):
        last_boxed(solution)


def test_sentences_get_a_full_stop_when_joined():
    assert join_sentences(["", "He had 4", "How many now"]) == "He had 4. How many now"
    assert join_sentences(["He had 4!", "How many?"]) == "He had 4! How many?"


def test_an_error_about_a_missing_field_names_line_field_and_nearest_name():
    with pytest.raises(InputError, match=r"a\.jsonl:7: field 'question' is missing; did you mean 'qestion'"):
        map_row(DataRow("a.jsonl:7", {"qestion": "Q", "answer": "1"}), Mapping(("question",), "answer"), "a-7")


@pytest.mark.parametrize("value", [["1", "2"], {"value": 1}, True, float("inf"), -float("inf")])
def test_an_answer_of_the_wrong_type_is_an_input_error(value: Any):
    with pytest.raises(InputError, match=r"a\.jsonl:7: field 'answer': expected text or a number"):
        map_row(DataRow("a.jsonl:7", {"question": "Q", "answer": value}), Mapping(("question",), "answer"), "a-7")


@pytest.mark.parametrize("fields", [{"question": "Q", "answer": None}, {"question": "  ", "answer": "1"}])
def test_an_empty_field_is_a_bad_row(fields: dict):
    with pytest.raises(BadValue, match="is empty"):
        map_row(DataRow("f:1", fields), Mapping(("question",), "answer"), "f-1")


def test_a_gsm8k_row_without_its_mark_is_a_bad_row():
    with pytest.raises(BadValue, match="field 'answer' has no '####"):
        map_row(DataRow("f:1", {"question": "Q", "answer": "7"}), READY_MADE["gsm8k"], "f-1")
