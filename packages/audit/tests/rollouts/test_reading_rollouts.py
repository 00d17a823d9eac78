"""What trainers leave on disk is read row by row, and what cannot be read is refused with a remedy."""

import gzip
import json
import pickle

import pytest
from courses import steps_of, write
from dumps import WRITERS, art_row, inspect_sample

from cooper_audit.rollouts.formats import Values, chosen_format
from cooper_audit.rollouts.reading import Source, read_steps
from cooper_audit.rollouts.references import References
from cooper_base.errors import InputError


@pytest.mark.parametrize("name", ["step", "group", "prompt", "reference", "advantage", "cut", "failed"])
def test_a_path_that_no_row_has_is_refused_with_those_that_exist(tmp_path, name):
    (tmp_path / "part_7.jsonl").write_text(lines(ROW | {"meta": {"truncated": None, "uid": 3}}))
    with pytest.raises(
        InputError, match=rf"--map {name}=meta.truncatd: no row has it; did you mean 'meta.truncated'\?"
    ):
        read(tmp_path, chosen_format(None, [f"{name}=meta.truncatd"]))
    with pytest.raises(
        InputError, match=rf"--map {name}=zzz: no row has it; there are input, .*score, step, .*meta.uid"
    ):
        read(tmp_path, chosen_format(None, [f"{name}=zzz"]))


def test_a_path_that_one_row_has_or_that_is_null_is_taken(tmp_path):
    rows = [ROW | {"meta": {"cut": None}, "uid": name} for name in ("a", "b", "c")]
    (tmp_path / "rows.jsonl").write_text(lines(*rows[:2], rows[2] | {"fault": "timed out"}))
    source, [(_, read_rows)] = read(tmp_path, chosen_format(None, ["cut=meta.cut", "failed=fault", "group=none|uid"]))
    assert len(read_rows) == 2
    assert source.left_out == {"a row whose grading failed": 1}


ROW = {"input": "What is 2 + 3?", "output": "5", "gts": "5", "score": 1.0, "step": 1, "uid": "a_b_0_0"}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path, choose=None, decode=None):
    source = Source()
    return source, list(read_steps([path], source, choose, decode))


def only(folder, **changed):
    """The one rollout of a file with this row."""
    (folder / "1.jsonl").write_text(lines({**ROW, **changed}))
    _, [(_, [row])] = read(folder)
    return row


def test_the_number_of_a_row_is_no_part_of_its_reward(tmp_path):
    row = {"step": 1, "prompt": "2 + 3?", "completion": "5", "advantage": 0.0, "accuracy": 1.0, "format": 0.5}
    (tmp_path / "1.jsonl").write_text(lines(row | {"example_id": 7, "index": 3, "seed": 2, "is_truncated": True}))
    source, [(_, [rollout])] = read(tmp_path)
    assert rollout.reward == 1.5
    assert source.rewards == ["accuracy", "format"]


def test_a_reward_function_may_be_called_like_the_number_of_a_row(tmp_path):
    row = {"step": 1, "prompt": "2 + 3?", "completion": "5", "advantage": 0.0, "accuracy": 1.0, "index": 0.5}
    (tmp_path / "1.jsonl").write_text(lines(row))
    source, [(_, [rollout])] = read(tmp_path)
    assert rollout.reward == 1.5
    assert source.rewards == ["accuracy", "index"]


@pytest.mark.parametrize("name", ["total_reward", "final_reward", "reward"])
def test_a_total_beside_its_parts_is_the_reward(tmp_path, name):
    row = {"step": 1, "prompt": "2 + 3?", "completion": "5", "advantage": 0.0, "accuracy": 1.0, "format": 0.5}
    (tmp_path / "1.jsonl").write_text(lines(row | {name: 1.25}))
    _, [(_, [rollout])] = read(tmp_path)
    assert rollout.reward == 1.25


@pytest.mark.parametrize(
    ("value", "references"),
    [
        ("5", ("5",)),
        (5, ("5",)),
        (2.5, ("2.5",)),
        (["5"], ("5",)),
        (["5", "five"], ("5", "five")),
        ({"answer": 5, "unit": "m"}, ("5",)),
        ('["5"]', ("5",)),
        ('["5", "five"]', ("5", "five")),
        ("[47, 60, 73]", ("[47, 60, 73]",)),
        ("[2, 5.5]", ("[2, 5.5]",)),
        ("[[1, 2], [3, 4]]", ("[[1, 2], [3, 4]]",)),
        ("[]", ("[]",)),
        ([], ()),
        ([47, 60, 73], ("[47, 60, 73]",)),
        ("[5]", ("5",)),
        (["[2, 5]", "[2; 5]"], ("[2, 5]", "[2; 5]")),
        ({"numbers": [1, 2]}, ('{"numbers": [1, 2]}',)),
        (None, ()),
        ("", ()),
        (float("nan"), ()),
        ("\ud800 5", ("? 5",)),
    ],
)
def test_references_are_texts_whatever_they_were(tmp_path, value, references):
    assert only(tmp_path, gts=value).references == references


@pytest.mark.parametrize("name", ["answer", "reference", "reference_answer", "ground_truth", "gold", "gold_answer"])
@pytest.mark.parametrize("more", [{}, {"advantage": 0.5}, {"advantages": 0.5, "gen_step": 1}])
def test_references_are_found_under_their_usual_names(tmp_path, name, more):
    """Also numbers, which are no rewards."""
    row = {"step": 1, "prompt": "1+1?", "completion": "2", "reward": 1.0, name: 2} | more
    (tmp_path / "1.jsonl").write_text(lines(row))
    _, [(_, [rollout])] = read(tmp_path)
    assert (rollout.references, rollout.reward) == (("2",), 1.0)


@pytest.mark.parametrize(("score", "reward"), [("0.5", 0.5), (True, 1.0), ([2.0], 2.0), (3, 3.0)])
def test_rewards_are_numbers_whatever_they_were(tmp_path, score, reward):
    assert only(tmp_path, score=score).reward == reward


def test_parts_that_are_all_zero_are_a_reward_of_zero(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines({**SKYRL, "score": [0.0, 0.0]}, SKYRL))
    source, [(_, rows)] = read(tmp_path)
    assert ([row.reward for row in rows], source.left_out) == ([0.0, 1.0], {})


@pytest.mark.parametrize(
    ("output", "text", "transcript"),
    [
        ("It is 5<|im_end|>", "It is 5", "It is 5"),
        ("It is 5.</s>", "It is 5.", "It is 5."),
        (
            '<tool_call>{"name": "add", "arguments": {}}</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n5\n'
            "</tool_response><|im_end|>\n<|im_start|>assistant\nIt is 5<|im_end|><|endoftext|>",
            "It is 5",
            '<tool_call> {"arguments": {}, "name": "add"}\n<tool>',
        ),
        ("<|im_end|>", "", ""),
    ],
)
def test_marks_of_a_chat_template_are_no_part_of_an_answer(tmp_path, output, text, transcript):
    row = only(tmp_path, output=output)
    assert row.answer.text == text
    assert transcript in row.answer.transcript


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "none", None, 10**400])
def test_a_row_without_a_reward_is_left_out_and_counted(tmp_path, score):
    (tmp_path / "1.jsonl").write_text(lines({**ROW, "score": score}, ROW))
    source, [(_, rows)] = read(tmp_path)
    assert (len(rows), source.left_out) == (1, {"a row without a reward": 1})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("1.jsonl", "[" * 100_000 + "\n" + "[]\n", "1.jsonl:1: nested too deeply"),
        ("1.jsonl", '{"input": \n' + lines(ROW), "1.jsonl:1: not JSON"),
        ("1.jsonl", "[1]\n", "1.jsonl:1: expected an object with fields, found list"),
        (
            "1.jsonl",
            lines({"question": "1", "said": "2"}),
            "no completion and no reward; .* --map completion=response --map reward=score",
        ),
        ("1.jsonl", lines({**ROW, "step": "soon"}), "1.jsonl:1: the step 'soon' is no whole number"),
        ("1.jsonl", lines({**ROW, "output": [1, 2]}), "name the policy's tokenizer with --tokenizer"),
        ("1.jsonl", lines({**ROW, "output": [{"role": "bird", "content": ""}]}), "1.jsonl:1: messages: role 'bird'"),
        ("1.txt", "text", "holds no rollouts"),
        ("1.jsonl", "", "holds no rows"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="(?s).*" + words.replace("(", r"\(").replace("[", r"\[")):
        read(tmp_path)


def test_a_row_of_any_shape_is_read_or_refused_with_its_place(tmp_path):
    """Every value of a row of each format in turn becomes something else."""
    refusals = []
    strange = [None, 7, "x", [], {}, [{}], float("nan"), [1, "a"]]
    plain = {"group": 1, "prompt": "2+3?", "text": "It is 5", "answer": "5", "reward": 1.0}
    for row in (ROW, GYM, RLLM, ROLL, AREAL, SKYRL, TOKENS, TRACE, art_row(plain), inspect_sample(plain)):
        for place in places(row):
            for value in strange:
                changed = json.loads(json.dumps(row))
                inner = changed
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = value
                (tmp_path / "1.jsonl").write_text(lines(changed))
                try:
                    read(tmp_path)
                except InputError as error:
                    refusals.append(str(error))
    assert all("1.jsonl" in refusal for refusal in refusals)


def places(value, before=()):
    """The keys that lead to every value inside this one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*before, key)
        yield from places(inner, (*before, key))


def test_a_line_without_an_end_is_refused_before_it_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("cooper_audit.rollouts.files.LONGEST_LINE", 1000)
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(b" " * 10**7))
    with pytest.raises(InputError, match="longer than"):
        read(tmp_path)


def test_pickles_are_refused_with_the_remedy(tmp_path):
    (tmp_path / "rollouts.pkl").write_bytes(pickle.dumps([ROW]))
    with pytest.raises(InputError, match=r"a pickle runs code when it is read.*dump the rollouts as JSON lines"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({"errors": ["timeout"]}, True),
        ({"errors": []}, False),
        ({"ok": False}, True),
        ({"is_timeout": True}, True),
        ({"failure_reason": "grader died"}, True),
        ({"failure_reason": "none"}, False),
        ({"termination_reason": "TIMEOUT"}, True),
        ({"termination_reason": "env_done"}, False),
        ({"error": 0.25}, False),  # a metric
        ({"is_timeout": 1}, True),
        ({"timed_out": "0.0"}, False),
        ({"termination_reason": "max_response_length_exceeded"}, False),
        *(({"termination_reason": reason}, True) for reason in ("grading_error", "verifier_timeout", "MODEL_ERROR")),
        ({"termination_reason": "task_failed"}, False),  # the policy's own failure
        ({"termination_reason": "too_many_errors"}, False),
        ({"metadata": {"error": {"error_type": "VerifierCrashError"}}}, True),
        ({"mask_sample": True}, True),
        ({"mask_sample": 0}, False),
        ({"instance_config": {"mask_sample": True}}, True),
        ({"instance_config": {"mask_sample": False}}, False),
        ({"_ng_failure_class": "judge_failed"}, True),
    ],
)
def test_a_row_whose_grading_failed_is_left_out_and_counted(tmp_path, fields, failed):
    (tmp_path / "1.jsonl").write_text(lines({**ROW, "score": 0.0, **fields}, ROW))
    source, [(_, rows)] = read(tmp_path)
    assert len(rows) == 2 - failed
    assert source.left_out == ({"a row whose grading failed": 1} if failed else {})
    assert source.ungraded == ({1: 1} if failed else {})


def test_a_trace_says_that_its_grading_failed(tmp_path):
    """An episode of prime-rl and verifiers holds its traces inside, and each says how it went."""
    write(tmp_path, "hacked", "prime-rl")
    path = tmp_path / "rollouts/step_1/train/all/traces.jsonl"
    episodes = [json.loads(line) for line in path.read_text().splitlines()]
    for episode in episodes[:6]:
        episode["traces"][0] |= {"ok": False, "errors": ["grader timed out"]}
    path.write_text(lines(*episodes))
    source, steps = read(tmp_path)
    assert (len(steps[0][1]), source.ungraded) == (len(episodes) - 6, {1: 6})


def test_the_zero_of_a_grader_that_failed_is_no_reward(tmp_path):
    """As NeMo-Gym and rLLM write it: a placeholder of 0, with the fault beside it."""
    by_gym = {"reward": 0.0, "mask_sample": True, "failure_reason": "no verdict", "_ng_failure_class": "judge_failed"}
    by_rllm = {"termination_reason": "grading_error", "metadata": {"error": {"error_type": "VerifierCrashError"}}}
    for name, row, fault in (("gym", GYM, by_gym), ("rllm", RLLM, by_rllm)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "step_4.jsonl").write_text(lines({**row, **fault}, row))
        source, [(step, rows)] = read(folder)
        assert (source.left_out, source.ungraded) == ({"a row whose grading failed": 1}, {4: 1})
        assert (step, [row.reward for row in rows]) == (4, [1.0])


def test_every_writer_may_say_that_a_completion_was_cut_off(tmp_path):
    assert only(tmp_path, is_truncated=True).cut is True
    assert only(tmp_path, termination_reason="max_turns_exceeded").cut is True
    assert only(tmp_path, termination_reason="env_done").cut is False
    assert only(tmp_path, finish_reason="length").cut is True
    assert only(tmp_path, status="truncated").cut is True
    assert only(tmp_path, stop_reason="stop").cut is False
    assert only(tmp_path).cut is None


def test_the_field_of_a_failure_can_be_named(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines({**ROW, "lost": "yes"}, ROW))
    _, [(_, rows)] = read(tmp_path, chosen_format("verl-v1", ["failed=lost"]))
    assert len(rows) == 1


def test_rows_of_something_else_are_left_out_wherever_they_stand(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines({"loss": 1.0}, ROW, {"loss": 2.0}))
    (tmp_path / "metrics.jsonl").write_text(lines(*[{"loss": 1.0}] * 1000))
    source, [(_, rows)] = read(tmp_path)
    assert (len(rows), source.left_out) == (1, {"a row with other fields": 2})


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines(ROW) + '{"input": "What')
    source, [(_, rows)] = read(tmp_path)
    assert (len(rows), source.left_out) == (1, {"a last line that is cut off": 1})


def test_broken_lines_are_named_and_the_others_read(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines(ROW) + '{"input": "Wha{"input": "What"}\n' + lines(ROW) + '{"input"')
    source, [(_, rows)] = read(tmp_path)
    assert (len(rows), source.left_out) == (2, {"a broken line (1.jsonl:2)": 1, "a last line that is cut off": 1})


def test_a_file_of_many_broken_lines_is_refused(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines(ROW, ROW, ROW, ROW) + '{"input":\n' * 4)
    with pytest.raises(InputError, match=r"1\.jsonl:8: not JSON"):
        read(tmp_path)


def test_a_compressed_dump_reads_the_same(tmp_path):
    write(tmp_path / "plain", "healthy", "ms-swift", steps=3)
    text = (tmp_path / "plain" / "completions.jsonl").read_bytes()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "completions.jsonl.gz").write_bytes(gzip.compress(text))
    (_, plain), (_, packed) = read(tmp_path / "plain"), read(tmp_path / "packed")
    assert [[row.answer for row in rows] for _, rows in plain] == [[row.answer for row in rows] for _, rows in packed]


def test_steps_come_in_their_order_and_files_of_processes_together(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.jsonl").write_text(
            lines(*({**ROW, "step": s, "score": s + rank / 2} for s in (2, 9, 10)))
        )
    _, steps = read(tmp_path)
    assert [(step, [row.reward for row in rows]) for step, rows in steps] == [(s, [s, s + 0.5]) for s in (2, 9, 10)]


def test_a_batch_that_is_logged_again_counts_once(tmp_path):
    for step in (1, 2, 3):
        (tmp_path / f"{step}.jsonl").write_text(lines({**ROW, "step": step, "score": step // 3}))
    source, steps = read(tmp_path)
    assert [step for step, _ in steps] == [1, 3]
    assert source.left_out == {"a batch that was logged again": 1}


def test_steps_in_no_order_are_refused(tmp_path):
    rows = [{**ROW, "step": 1 + i % 2, "score": i} for i in range(100)]
    (tmp_path / "1.jsonl").write_text(lines(*rows))
    with pytest.raises(InputError, match="sort the rows by step"):
        read(tmp_path)


def test_a_table_of_wandb_reads_as_its_rows(tmp_path):
    names = ["step", "prompt", "completion", "reward_func", "advantage"]
    data = [[2, "What is 2 + 3?", "5", 0.5, 0.1], [2, "What is 2 + 3?", "6", 0.0, -0.1]]
    (tmp_path / "completions.table.json").write_text(json.dumps({"columns": names, "data": data}))
    source, [(step, rows)] = read(tmp_path)
    assert (step, [row.reward for row in rows], source.rewards) == (2, [0.5, 0.0], ["reward_func"])


@pytest.mark.parametrize("form", [*WRITERS])
def test_every_format_has_the_same_rows(tmp_path, form):
    write(tmp_path, "healthy", form, steps=2)
    _, steps = read(tmp_path)
    assert [step for step, _ in steps] == [1, 2]
    for (_, rows), wanted in zip(steps, steps_of("healthy", steps=2), strict=True):
        found = sorted((row.prompt, row.answer.text, round(row.reward, 9)) for row in rows)
        assert found == sorted((row["prompt"], row["text"], round(row["reward"], 9)) for row in wanted)
        assert len({row.group for row in rows}) == 12


GYM = {
    "responses_create_params": {
        "input": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2+3?"}]
    },
    "response": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "name": "python", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "output": "5", "call_id": "1"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 5"}]},
        ]
    },
    "reward": 1.0,
    "expected_answer": "5",
    "_ng_task_index": 3,
}
TRAJECTORY = {
    "reward": 1,
    "steps": [{"chat_completions": [{"role": "user", "content": "2+3?"}, {"role": "assistant", "content": "It is 5"}]}],
}
RLLM = {"training_step": 4, "task": {"answer": 5}, "task_hash": "x", "trajectories": [TRAJECTORY]}
ROLL = {"global_step": [4, 4], "id": ["a", "b"], "prompt": ["2+3?", "1+1?"], "ground_truth": ["5", "2"]} | {
    "responses": ["It is 5", "It is 3"],
    "scores": [1.0, 0.0],
}
TRACE = {
    "traces": [
        {
            "task": {"key": "x", "data": {"answer": "5"}},
            "agent": {"trainable": True},
            "nodes": [
                {"message": {"role": "user", "content": "2+3?"}},
                {"message": {"role": "assistant", "content": "It is 5"}, "sampled": True, "parent": 0},
            ],
            "calls": [{"finish_reason": "stop"}],
            "rewards": {"right": {"score": 1.0, "weight": 1.0}},
        }
    ]
}
AREAL = {"task_id": 1, "sample_idx": 0, "prompt": "2+3?", "completion": "It is 5", "reward": 1, "tail_version": 4}
SKYRL = {"input_prompt": "2+3?", "output_response": "It is 5", "score": [0.0, 1.0], "stop_reason": "length"} | {
    "env_extras": {"reward_spec": {"ground_truth": "5"}},
    "env_class": "gsm8k",
}
TOKENS = {
    "step": 4,
    "prompt_idx": 0,
    "prompt_tokens": [7],
    "response_tokens": [1, 2],
    "reward": 1.0,
    "ground_truth": "5",
}


@pytest.mark.parametrize(
    ("name", "row", "format_name"),
    [
        ("step_4.jsonl", GYM, "nemo-gym"),
        ("train_step_4_epoch_0/episode_1.json", RLLM, "rllm"),
        ("rollout_dump_data.step_4.jsonl", ROLL, "roll"),
        ("rollout/4/1.jsonl", AREAL, "areal"),
        ("global_step_4_evals/gsm8k.jsonl", SKYRL, "skyrl"),
        ("run_rollouts_000000.jsonl", TOKENS, "open-instruct"),
    ],
)
def test_other_trainers(tmp_path, name, row, format_name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(row))
    source, [(step, rows)] = read(tmp_path, decode=lambda ids: "It is 5" if ids == [1, 2] else "2+3?")
    assert source.format is not None
    assert (source.format.name, step, rows[0].answer.text, rows[0].reward) == (format_name, 4, "It is 5", 1.0)
    assert rows[0].references == (() if row is AREAL else ("5",))
    assert (rows[0].question, rows[0].answer.stopped) == ("2+3?", row is not SKYRL)
    assert "python" in rows[0].answer.transcript or row is not GYM


def test_a_map_describes_any_other_file(tmp_path):
    row = {"q": {"text": "2+3?"}, "samples": [{"said": "5"}], "parts": {"a": {"score": 1}, "b": {"score": 0.5}}}
    (tmp_path / "part_7.jsonl").write_text(lines(row))
    given = ["prompt=q.text", "completion=none|samples.-1.said", "reward=parts.*.score", r"step=$path(part_(\d+))"]
    _, [(step, [rollout])] = read(tmp_path, chosen_format(None, given))
    assert (step, rollout.prompt, rollout.answer.text, rollout.reward) == (7, "2+3?", "5", 1.5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["rewards=score"], "did you mean 'reward'?"),
        (["reward"], "write FIELD=PATH"),
        (["reward=a..b"], "is no path"),
        (["reward=a([)"], "no regular expression"),
        ([r"step=$path(step_(\d+)"], "a bracket without its other half"),
    ],
)
def test_a_bad_map_is_refused(given, words):
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        chosen_format(None, given)


def test_a_missing_path_is_none():
    row = {"a": 1, "x": [1], "y": {}}
    form = chosen_format(None, ["prompt=a.b.c", "completion=x.5", "reward=y.*.z"])(row)
    assert form is not None
    assert [Values(form).of(row, name, "") for name in ("prompt", "completion", "reward")] == [None] * 3


@pytest.mark.parametrize(
    ("prompt", "answers"),
    [
        ("<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n<|im_start|>assistant\n", ("5",)),
        ("Answer briefly. what is  2 + 3?", ("5",)),
        ("What is 2 + 3? And what is 4?", ("9",)),
        ("What is 2 + 4?", ()),
    ],
)
def test_references_are_found_inside_a_template(prompt, answers):
    assert References({"What is 2 + 3?": "5", "What is 2 + 3? And what is 4?": "9"}).of(prompt) == answers


def test_columns_of_a_line_without_advantages_are_rows(tmp_path):
    """As ms-swift wrote them in 2025: a line is a step, whose number stands once."""
    columns = {"prompt": ["1 + 1?", "1 + 2?"], "completion": ["2", "3"], "Accuracy": [1.0, 0.0], "Format": [0.5, 0.5]}
    (tmp_path / "completions.jsonl").write_text(
        lines(
            {"gen_step": 3, **columns},
            {"gen_step": 4, **columns, "completion": ["1", "0"]},
            {"gen_step": 5, "loss": 0.1},
        )
    )
    source, steps = read(tmp_path)
    assert [(step, [row.reward for row in rows]) for step, rows in steps] == [(3, [1.5, 0.5]), (4, [1.5, 0.5])]
    assert source.left_out == {"a row with other fields": 1}


def test_a_summary_at_the_end_is_no_row(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines({"q": "1 + 1?", "a": "2", "r": 1.0}, {"mean_reward": 1.0, "rows": 1}))
    source, [(_, rows)] = read(tmp_path, chosen_format(None, ["prompt=q", "completion=a", "reward=r"]))
    assert (len(rows), source.rows, source.left_out) == (1, 1, {"a row with other fields": 1})


def test_an_evaluation_beside_training_in_a_folder_is_left_out(tmp_path):
    for step in (1, 2):
        (tmp_path / f"train_{step}.jsonl").write_text(lines({**ROW, "step": step, "output": f"{step}"}))
        (tmp_path / f"eval_{step}.jsonl").write_text(lines({**ROW, "step": step, "score": 0.0}))
    source, steps = read(tmp_path)
    assert [[row.reward for row in rows] for _, rows in steps] == [[1.0], [1.0]]
    assert source.left_out == {"a file of an evaluation": 2}


@pytest.mark.parametrize(
    "said",
    [
        *({"split": "val"}, {"mode": "eval"}, {"phase": "Validation"}, {"is_validation": True}),
        *({"extra_info": {"split": "test"}}, {"extra_info": '{"split": "test"}'}),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_rows_of_an_evaluation_among_those_of_training_are_left_out(tmp_path, said, order):
    for step in (1, 2):
        rows = [{**ROW, "step": step, "output": f"{step}"}, {**ROW, "step": step, "score": 0.0, **said}][::order]
        (tmp_path / f"{step}.jsonl").write_text(lines(*rows))
    source, steps = read(tmp_path)
    assert [[row.reward for row in rows] for _, rows in steps] == [[1.0], [1.0]]
    assert source.left_out == {"a row of an evaluation": 2}


def test_rows_of_an_evaluation_alone_are_read(tmp_path):
    (tmp_path / "1.jsonl").write_text(lines({**ROW, "step": 1, "split": "test"}))
    assert [len(rows) for _, rows in read(tmp_path)[1]] == [1]


def test_steps_that_come_again_in_a_file_are_counted_and_two_runs_refused(tmp_path):
    def rows(*steps):
        return lines(*[{**ROW, "step": step, "output": str(place)} for place, step in enumerate(steps)])

    (tmp_path / "1.jsonl").write_text(rows(1, 2, 3, 2, 3, 4))
    source, steps = read(tmp_path)
    assert [step for step, _ in steps] == [1, 2, 3, 2, 3, 4]
    assert source.left_out == {"a row of a step that a resumed run repeated": 2}
    (tmp_path / "1.jsonl").write_text(rows(1, 2, 3, 1, 2, 3))
    with pytest.raises(InputError, match="step 1 comes again after step 3, so there are two runs in one"):
        read(tmp_path)
