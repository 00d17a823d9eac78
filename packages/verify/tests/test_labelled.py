"""Labelled data: which rows are read and which are refused, and that no problem is on both sides of a split."""

import json
from pathlib import Path

import pytest

from cooper_base.data.answer import Answer
from cooper_base.data.labelled import LabelledCompletion, read_labelled, split_by_problem
from cooper_base.errors import InputError
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.verdict_file import verify_file

ROW = {"question": "2+2?", "reference_answer": "4", "completion": "It is 4.", "label": 1}


def write_jsonl(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_jsonl_csv_and_parquet_read_alike(tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from pyarrow import Table

    jsonl = write_jsonl(tmp_path / "rows.jsonl", ROW, {**ROW, "label": False, "model": "ignored"})
    csv = tmp_path / "rows.csv"
    csv.write_text("label,completion,reference_answer,question\n1.0,It is 4.,4,2+2?\nFalse,It is 4.,4,2+2?\n")
    parquet.write_table(Table.from_pylist([ROW, {**ROW, "label": 0}]), tmp_path / "rows.parquet")

    def fields(path: Path) -> list[tuple]:
        return [(row.question, row.answer, row.completion, row.label) for row in read_labelled(path)]

    assert fields(jsonl) == [("2+2?", "4", "It is 4.", 1.0), ("2+2?", "4", "It is 4.", 0.0)]
    assert fields(csv) == fields(jsonl)
    assert fields(tmp_path / "rows.parquet") == fields(jsonl)


def test_a_numeric_reference_reads_as_it_is_written(tmp_path: Path):
    path = write_jsonl(tmp_path / "rows.jsonl", {**ROW, "reference_answer": 43.0})
    assert read_labelled(path)[0].answer == "43"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"label": 0.3}, "'label' is 0.3"),
        ({"label": None}, "'label' is None"),
        ({"question": " "}, "'question' is empty"),
        ({"reference_answer": None}, "'reference_answer' is empty"),
        ({"completion": ["It is 4."]}, "'completion'"),
        ({"label": 10**400}, "'label' is 1000"),
        ({"label": 2}, "'label' is 2"),
        ({"label": "NaN"}, "'label' is 'NaN'"),
        ({"label": [1]}, "'label' is [1]"),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_field(tmp_path: Path, change: dict, named: str):
    path = write_jsonl(tmp_path / "rows.jsonl", ROW, {**ROW, **change})
    with pytest.raises(InputError) as caught:
        read_labelled(path)
    assert f"{path}:2" in str(caught.value)
    assert named in str(caught.value)


def test_the_verdicts_of_cooper_verify_are_labels(tmp_path: Path, caplog):
    answers = [{"question": f"{n}+{n}?", "answer": 2 * n, "completion": text} for n, text in enumerate(("0", "3", "?"))]
    data = write_jsonl(tmp_path / "answers.jsonl", *answers)
    verify_file(data, tmp_path / "verdicts.jsonl", rule=NumericRule())
    found = [
        (row.question, row.answer, row.completion, row.label) for row in read_labelled(tmp_path / "verdicts.jsonl")
    ]
    assert found == [("0+0?", "0", "0", 1.0), ("1+1?", "2", "3", 0.0)]
    assert "1 rows without a verdict of correct or wrong are left out: 1 unparsed" in caplog.text


def test_a_label_of_the_data_goes_before_the_verdict_and_verdicts_alone_of_no_use_are_refused(tmp_path: Path):
    kept = read_labelled(write_jsonl(tmp_path / "kept.jsonl", {**ROW, "label": 0, "verdict": "correct"}))
    assert [row.label for row in kept] == [0.0]
    unread = {name: value for name, value in ROW.items() if name != "label"} | {"verdict": "unparsed"}
    with pytest.raises(InputError, match=r"no verdict is correct or wrong \(1 unparsed\)"):
        read_labelled(write_jsonl(tmp_path / "unread.jsonl", unread))


def test_a_missing_field_and_an_empty_file_are_refused(tmp_path: Path):
    path = write_jsonl(tmp_path / "rows.jsonl", *[{"question": "2+2?", "completion": "4", "label": 1}] * 30)
    with pytest.raises(InputError, match="'reference_answer' is missing") as caught:
        read_labelled(path)
    assert str(caught.value).count("\n") == 0
    assert f"(and 29 more rows, to {path}:30)" in str(caught.value)
    with pytest.raises(InputError, match="holds no rows"):
        read_labelled(write_jsonl(tmp_path / "empty.jsonl"))


@pytest.mark.parametrize("label", ["label", "gold_correct"])
@pytest.mark.parametrize("reference", ["reference_answer", "answer"])
def test_what_cooper_verify_reads_is_trained_on_under_the_same_names(tmp_path: Path, reference: str, label: str):
    row = {"question": "2+2?", reference: "4", "completion": "4", label: 0, "verdict": "correct"}
    (read,) = read_labelled(write_jsonl(tmp_path / "rows.jsonl", row))
    assert (read.answer, read.label) == ("4", 0.0)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"answer": ""}, "field 'answer' is empty"),
        ({"reference_answer": ""}, "field 'reference_answer' is empty"),
        ({"answer": ["4"]}, "field 'answer': "),
        ({"answer": "4", "gold_correct": "perhaps"}, "field 'gold_correct' is 'perhaps'"),
        ({"answer": "4", "label": "perhaps"}, "field 'label' is 'perhaps'"),
        ({"answer": "", "reference_answer": ""}, "field 'reference_answer' is empty"),
    ],
)
def test_a_message_names_the_field_of_the_file(tmp_path: Path, changed: dict, named: str):
    row = {"question": "2+2?", "completion": "4", **changed}
    row |= {} if {"label", "gold_correct"} & changed.keys() else {"label": 1}
    with pytest.raises(InputError) as caught:
        read_labelled(write_jsonl(tmp_path / "rows.jsonl", row))
    assert f"rows.jsonl:1: {named}" in str(caught.value)


def test_an_empty_completion_is_a_legitimate_wrong_answer(tmp_path: Path):
    path = write_jsonl(tmp_path / "rows.jsonl", {**ROW, "completion": "", "label": 0})
    assert read_labelled(path)[0].completion == ""


def test_no_problem_is_both_trained_on_and_held_out():
    rows = [
        LabelledCompletion(text.format(problem), "1", str(sample), 1.0)
        for problem in range(40)
        for sample, text in enumerate(["How many {}?", " how  many {}?\n", "HOW MANY {}?"])
    ]
    train, held_out = split_by_problem(rows, 0.25, seed=3)
    names = [{" ".join(row.question.lower().split()) for row in side} for side in (train, held_out)]
    assert not names[0] & names[1]
    assert len(held_out) == 30
    assert len(train) + len(held_out) == len(rows)
    assert split_by_problem(rows, 0.25, seed=3) == (train, held_out)
    assert split_by_problem(rows, 0.25, seed=4) != (train, held_out)


def test_one_problem_cannot_be_split():
    with pytest.raises(InputError, match="at least two"):
        split_by_problem([LabelledCompletion("q", "1", "1", 1.0), LabelledCompletion("Q ", "1", "2", 0.0)], 0.5, seed=0)


def test_what_verify_writes_about_chats_is_labelled_data(tmp_path: Path):
    """A chat of one reply is that text, and a run of several turns is what a reward model reads of it."""
    reply = {"role": "assistant", "content": "It is 4."}
    called = [
        {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 2}}]},
        {"role": "tool", "content": "4"},
        reply,
    ]
    row = {"question": "2+2?", "answer": "4"}
    rows = write_jsonl(tmp_path / "rows.jsonl", *({**row, "completion": chat} for chat in ([reply], called)))
    verify_file(rows, tmp_path / "verdicts.jsonl")
    single, run = read_labelled(tmp_path / "verdicts.jsonl")
    assert (single.completion, single.label, run.label) == ("It is 4.", 1.0, 1.0)
    assert run.completion == Answer.of(called).transcript
    assert "<tool>" in run.completion
