"""Rows of no trainer's format whose columns say what they are, and tables whose values are texts."""

import csv
import json

import pytest

from cooper_audit.rollouts.auditing import audit
from cooper_audit.rollouts.formats import chosen_format
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


@pytest.mark.parametrize("written", [dict, json.dumps, repr])
@pytest.mark.parametrize("inside", [("reward_model", "ground_truth"), ("extra_info", "answer"), ("metadata", "target")])
def test_a_reference_inside_of_an_object_is_found(tmp_path, written, inside):
    """As verl's data sets keep it, and as a table holds an object."""
    place, name = inside
    row = {"prompt": "2 + 3?", "response": "5", "reward": 1.0, "global_step": 7}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row | {place: written({"style": "rule", name: "5"})}) + "\n")
    assert read(tmp_path)[1][0].references == ("5",)


@pytest.mark.parametrize(
    ("reward", "read_as"),
    [({"accuracy": 1.0, "format": 0.5}, 1.5), ({"accuracy": 1.0, "format": 0.5, "total": 0.75}, 0.75)],
)
@pytest.mark.parametrize("names", [("prompt", "completion", "rewards", "step"), ("query", "output", "reward", "step")])
def test_a_reward_that_is_given_in_parts_is_their_total(tmp_path, names, reward, read_as):
    row = dict(zip(names, ("2 + 3?", "5", reward, 7), strict=True))
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert read(tmp_path)[1][0].reward == read_as


@pytest.mark.parametrize("names", [("responses", "rewards"), ("completions", "scores")])
def test_a_line_may_be_a_group(tmp_path, names):
    texts, paid = names
    row = {"step": 7, "prompt": "2 + 3?", texts: ["5", "6", "7"], paid: [1.0, 0.0, 0.5], "answer": ["5", "five", "V"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row | {"advantages": [0.5, -0.5, 0.0]}) + "\n")
    _, rollouts = read(tmp_path)
    assert [(r.answer.text, r.reward, r.advantage) for r in rollouts] == [("5", 1, 0.5), ("6", 0, -0.5), ("7", 0.5, 0)]
    assert {rollout.group for rollout in rollouts} == {rollouts[0].group}
    assert rollouts[0].references == ("5", "five", "V")


@pytest.mark.parametrize("name", ["rollout_7.jsonl", "7.jsonl", "step_7/samples.jsonl", "epoch_2/train-iter007.jsonl"])
def test_the_step_is_in_the_name_of_the_file_or_its_folder(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps({"query": "2 + 3?", "response": "5", "reward": 1.0}) + "\n")
    assert read(tmp_path)[1][0].step == 7


def test_the_number_of_a_shard_says_nothing(tmp_path):
    (tmp_path / "part-00007.jsonl").write_text(json.dumps({"query": "2 + 3?", "response": "5", "reward": 1.0}) + "\n")
    assert read(tmp_path)[1][0].step is None


def test_a_refusal_says_which_columns_are_known_and_what_is_lacking(tmp_path):
    row = {"text": "2 + 3?", "solution_str": "5", "score": 1.0, "ground_truth": "5"}
    (tmp_path / "1.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match=r"have solution_str as completion, .*, no prompt; .* --map prompt=question$"):
        read(tmp_path)


def test_rows_that_lack_nothing_and_are_not_of_the_format_that_was_named_say_so(tmp_path):
    row = {"prompt": "2 + 3?", "completion": "5", "reward": 1.0}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(
        InputError, match=r"completion as completion, reward as reward; name another --format, or none$"
    ):
        list(read_steps([tmp_path], Source(), chosen_format("verl-v1")))


@pytest.mark.parametrize("given", [["prompt=text"], ["prompt=text", "completion=solution_str", "reward=score"]])
def test_what_the_map_does_not_name_is_known_by_its_name(tmp_path, given):
    row = {"text": "2 + 3?", "solution_str": "5", "score": 1.0, "ground_truth": "5", "step": 7}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    [(step, [rollout])] = read_steps([tmp_path], Source(), chosen_format(None, given))
    assert (step, rollout.prompt, rollout.answer.text, rollout.references) == (7, "2 + 3?", "5", ("5",))


@pytest.mark.parametrize("column", ["data_source", "dataset", "task_name"])
def test_the_data_set_of_a_problem_is_kept(tmp_path, column):
    row = {"prompt": "2 + 3?", "completion": "5", "reward": 1.0, "step": 1, "answer": "5", column: "sums"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    audit([tmp_path], tmp_path / "out")
    assert json.loads((tmp_path / "out" / "rollouts" / "000001.jsonl").read_text())["set"] == "sums"
