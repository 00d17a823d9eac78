"""Rows of no trainer's format whose columns say what they are, and tables whose values are texts."""

import csv
import json

import pytest

from cooper_audit.rollouts.reading import Source, read_steps
from cooper_base.errors import InputError


def read(path):
    source = Source()
    return source, [row for _, rows in read_steps([path], source) for row in rows]


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (("prompt", "response", "reward", "global_step", "label"), ("response", "global_step", "label")),
        (("Question", "Model Output", "Total Reward", "Iteration", "Ground Truth"), ("Model Output", "Iteration")),
        (("instruction", "generation", "score", "train-step", "gt"), ("generation", "train-step", "gt")),
    ],
)
def test_columns_are_known_by_their_names(tmp_path, names, paths):
    row = dict(zip(names, ("What is 2 + 3?", "It is 5.", 0.5, 7, "5"), strict=True))
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    source, [rollout] = read(tmp_path)
    assert source.format is not None
    assert source.format.name == "plain"
    assert set(paths) <= set(source.format.paths.values())
    said = (rollout.prompt, rollout.answer.text, rollout.reward, rollout.step, rollout.references)
    assert said == ("What is 2 + 3?", "It is 5.", 0.5, 7, ("5",))


@pytest.mark.parametrize("name", ["messages", "Conversation"])
def test_the_first_reply_of_a_chat_and_all_behind_it_are_the_completion(tmp_path, name):
    turns = [("user", "2 + 3?"), ("assistant", "Let me see."), ("user", "Go on."), ("assistant", "It is 5.")]
    row = {name: [{"role": role, "content": text} for role, text in turns], "score": 1, "target": "5"}
    (tmp_path / "iter_7.jsonl").write_text(json.dumps(row) + "\n")
    _, [rollout] = read(tmp_path)
    assert (rollout.step, rollout.prompt, rollout.answer.text) == (7, "2 + 3?", "It is 5.")


@pytest.mark.parametrize("lacking", ["prompt", "completion", "reward"])
def test_rows_without_one_of_the_three_are_refused(tmp_path, lacking):
    row = {"prompt": "2 + 3?", "completion": "5", "reward": 1.0, "step": 1, "answer": {"value": "5"}}
    (tmp_path / "rows.jsonl").write_text(json.dumps({n: value for n, value in row.items() if n != lacking}) + "\n")
    with pytest.raises(InputError, match=r"--map"):
        read(tmp_path)


def test_a_refusal_names_the_places_inside_of_objects(tmp_path):
    row = {"input": "2 + 3?", "output": "5", "gts": "5", "step": 1, "score": {"score": 1.0, "acc": True}}
    (tmp_path / "1.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match=r"score\.score, score\.acc"):
        read(tmp_path)


@pytest.mark.parametrize("written", [repr, json.dumps])
def test_a_table_of_texts_has_numbers_and_messages(tmp_path, written):
    """As pandas writes TRL's completions into a CSV file."""
    asked, said = [{"role": "user", "content": "It's 2 + 3?"}], [{"role": "assistant", "content": "It's 5"}]
    with (tmp_path / "completions.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["step", "prompt", "completion", "right", "form", "advantage", "answer"])
        table.writerow([3, written(asked), written(said), 1.0, 0.25, 0.1, 5])
    source, [rollout] = read(tmp_path)
    assert source.rewards == ["right", "form"]
    assert (rollout.prompt, rollout.answer.text, rollout.reward) == ("It's 2 + 3?", "It's 5", 1.25)


@pytest.mark.parametrize("text", ["[{'role': 'user', 'content': ", "[{'role': f()}]", "[{'content': 1}, 2]", "[1, 2]"])
def test_a_text_that_only_looks_like_messages_is_a_text(tmp_path, text):
    row = {"prompt": "2 + 3?", "completion": text, "reward": 1.0, "step": 1}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert read(tmp_path)[1][0].answer.text == text


def test_a_reference_beside_nemo_rls_own_fields_is_read(tmp_path):
    row = {"content": [["2 + 3?", "5"]], "rewards": [1.0], "input_lengths": [9], "idx": 0, "expected_answer": ["5"]}
    (tmp_path / "train_data_step3.jsonl").write_text(json.dumps(row) + "\n")
    assert read(tmp_path)[1][0].references == ("5",)


@pytest.mark.parametrize(
    ("row", "read_as"),
    [
        ({"step": 1, "global_step": 7}, {"step": 7}),
        ({"step": 7, "reward": 0.0, "total_reward": 0.5}, {"reward": 0.5}),
        ({"step": 7, "answer": "6", "ground_truth": "5"}, {"references": ("5",)}),
        ({"step": 7, "answer": "6", "target": "5", "reference_answer": "4"}, {"references": ("4",)}),
    ],
)
def test_of_two_names_the_one_that_can_mean_but_one_thing_counts(tmp_path, row, read_as):
    row = {"prompt": "2 + 3?", "completion": "It is 6.", "reward": 0.5} | row
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    _, [rollout] = read(tmp_path)
    assert {name: getattr(rollout, name) for name in read_as} == read_as


@pytest.mark.parametrize("column", ["answer", "label"])
def test_what_differs_among_the_completions_of_a_prompt_is_no_reference(tmp_path, column):
    """It is what each completion answered, or whether it is right, and in the last step all agree."""
    said = [[5, 6], [7, 7, 7, 8]], [[5, 6], [8, 7]], [[0, 0], [0, 0]]
    rows = [
        {"step": step, "prompt": prompt, "response": f"It is {answer}.", "reward": 1.0, column: str(answer)}
        for step, groups in enumerate(said)
        for prompt, answers in zip(("2 + 3?", "3 + 4?"), groups, strict=True)
        for answer in answers
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source, rollouts = read(tmp_path)
    assert {rollout.references for rollout in rollouts} == {()}
    assert [count for why, count in source.left_out.items() if "--map reference=" in why] == [len(rows)]


def test_a_prompt_that_comes_with_two_answers_leaves_the_others_their_references(tmp_path):
    rows = [
        {
            "step": 1,
            "prompt": f"{number} + 1?",
            "completion": "5",
            "reward": 1.0,
            "answer": number + 1 + place * (not number),
        }
        for number in range(4)
        for place in range(2)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, rollouts = read(tmp_path)
    assert all(rollout.references for rollout in rollouts)
