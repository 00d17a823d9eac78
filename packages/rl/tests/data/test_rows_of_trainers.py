"""Rows as other trainers' data sets have them: verl, open-instruct, prime-rl; fields inside fields; chats with answers.

The rows have the form in which those trainers' code writes or reads them: verl's `examples/data_preprocess`,
open-instruct's `rlvr_tokenize_v3`, and what PrimeIntellect's environments read of INTELLECT-2.
"""

import json

import pytest

from cooper_base.data.mappings import states
from cooper_rl import InputError
from cooper_rl.adapters.rows import Columns
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.kinds.maths import RuleVerifier

PAIRS = [(f"What is {a} + {a + 3}?", str(2 * a + 3)) for a in range(10)]
STEP_BY_STEP = 'Let\'s think step by step and output the final answer after "####".'


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def of_gsm8k_in_verl(index, question, answer):
    return {
        "data_source": "openai/gsm8k",
        "prompt": [user(f"{question} {STEP_BY_STEP}")],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": answer},
        "extra_info": {"split": "train", "index": index, "answer": f"So #### {answer}", "question": question},
    }


def of_maths_in_verl(index, question, answer):
    """math_dataset.py keeps no bare question."""
    row = of_gsm8k_in_verl(index, question, answer)
    return {**row, "extra_info": {"split": "train", "index": index}}


def of_skywork_in_verl(index, question, answer):
    """Its reference is a list of one, as JSON text."""
    row = of_gsm8k_in_verl(index, question, answer)
    return {**row, "reward_model": {"style": "rule", "ground_truth": json.dumps([answer])}}


def of_rlvr(index, question, answer):
    return {"messages": [user(question)], "ground_truth": answer, "dataset": "gsm8k"}


def of_rlvr_with_several_verifiers(index, question, answer):
    return {"messages": [user(question)], "ground_truth": [answer], "dataset": ["gsm8k"]}


def of_rlvr_with_a_reply(index, question, answer):
    """open-instruct leaves the last turn out, whatever it says."""
    return {"messages": [user(question), assistant("I would rather not.")], "ground_truth": answer, "dataset": "math"}


def of_prime(index, question, answer):
    return {
        "problem_id": f"vfm_{index}",
        "task_type": "verifiable_math",
        "prompt": question,
        "verification_info": json.dumps({"ground_truth": answer}),
        "metadata": json.dumps({"original_source": "made"}),
    }


FORMS = {
    of_gsm8k_in_verl: ("verl", "{}"),
    of_maths_in_verl: ("verl", f"{{}} {STEP_BY_STEP}"),
    of_skywork_in_verl: ("verl", "{}"),
    of_rlvr: ("open_instruct", "{}"),
    of_rlvr_with_several_verifiers: ("open_instruct", "{}"),
    of_rlvr_with_a_reply: ("open_instruct", "{}"),
    of_prime: ("prime_rl", "{}"),
}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_ten_rows_of_every_form_are_read(form, suffix, tmp_path):
    rows, path = [form(i, *pair) for i, pair in enumerate(PAIRS)], tmp_path / f"rows{suffix}"
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
        parquet.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    format, question_as = FORMS[form]
    with RuleVerifier(workers=1) as rule:
        problems = load_problems(ProblemsConfig.model_validate({"source": str(path), "format": format}), rule).problems
    assert [problem.answer for problem in problems] == [answer for _, answer in PAIRS]
    assert [problem.question for problem in problems] == [question_as.format(question) for question, _ in PAIRS]
    if format == "prime_rl":
        assert problems[3].id == "vfm_3"
        assert problems[3].messages is None
    else:
        chat = rows[3].get("prompt", rows[3].get("messages"))
        assert problems[3].messages == chat[:1]
        assert problems[3].metadata.get("data_source", problems[3].metadata.get("dataset"))


def write(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_any_field_inside_another_has_a_dotted_name(tmp_path):
    row = {"task": {"text": "1+1?", "more": {"gold": ["2"]}}, "extra": '{"rate": 0.5, "name": "a"}', "x.y": "exact"}
    named = {"question": "task.text", "answer": "task.more.gold.0", "id": "extra.name", "pass_rate": "extra.rate"}
    config = ProblemsConfig.model_validate({"source": write(tmp_path, row), "rule_field": "x.y", **named})
    (problem,) = load_problems(config, None).problems
    assert (problem.id, problem.question, problem.answer) == ("a", "1+1?", "2")
    assert (problem.rule, problem.pass_rate) == ("exact", 0.5)
    columns = Columns(question="task.text", answer="task.more.gold.0")
    columns.check(row.keys())
    assert (columns.problem(row).question, columns.problem(row).answer) == ("1+1?", "2")
    with pytest.raises(InputError, match=r"'task\.more\.answer' is missing"):
        Columns(question="task.text", answer="task.more.answer").problem(row)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer": "reward_model.truth"}, r"rows.jsonl:1: field 'reward_model.truth' is missing; the row has in"),
        ({"answer": "reward.ground_truth"}, r"field 'reward.ground_truth' is missing; .*problems.answer"),
        ({"answer": "data_source.ground_truth"}, "field 'data_source.ground_truth' is missing"),
    ],
)
def test_a_field_that_is_not_inside_is_named_with_what_is_there(tmp_path, changes, words):
    source = write(tmp_path, *[of_gsm8k_in_verl(i, *pair) for i, pair in enumerate(PAIRS)])
    with pytest.raises(InputError, match=words), RuleVerifier(workers=1) as rule:
        load_problems(ProblemsConfig.model_validate({"source": source, "messages": "prompt", **changes}), rule)


def test_several_reference_answers_are_a_bad_row(tmp_path):
    rows = [of_gsm8k_in_verl(0, *PAIRS[0]), of_gsm8k_in_verl(1, *PAIRS[1])]
    rows[1]["reward_model"]["ground_truth"] = ["5", "7"]
    config = ProblemsConfig(source=write(tmp_path, *rows), format="verl", max_bad_rows=1)
    with RuleVerifier(workers=1) as rule:
        loaded = load_problems(config, rule)
    assert [row.partition(": ")[2] for row in loaded.bad_rows] == [
        "field 'reward_model.ground_truth' is a list of 2 answers; a problem has one reference answer"
    ]


def test_an_answer_at_the_end_of_a_chat_is_no_part_of_the_prompt(tmp_path, caplog):
    caplog.set_level("INFO", "cooper_verify")
    rows = [
        {"chat": [user("4+3?"), assistant("4 + 3 = 7, so it is \\boxed{7}")], "answer": "7"},
        {"chat": [user("3+3?"), assistant("<think>")], "answer": "6"},
        {"chat": [user("3+2?"), assistant("No, 4."), user("Really?")], "answer": "5"},
    ]
    config = ProblemsConfig(source=write(tmp_path, *rows), messages="chat")
    with RuleVerifier(workers=1) as rule:
        problems = load_problems(config, rule).problems
    assert [problem.messages for problem in problems] == [rows[0]["chat"][:1], rows[1]["chat"], rows[2]["chat"]]
    assert "1 of 3 chats (the first: " in caplog.text
    assert "rows.jsonl:1) end with the assistant's answer. It was removed" in caplog.text
    assert "rows.jsonl:2) end with a turn of the assistant, which is taken for the beginning" in caplog.text


@pytest.mark.parametrize(
    ("reply", "answer", "holds"),
    [
        ("So it is \\boxed{\\frac12}.", "\\frac12", True),
        ("The answer is 5.", "5", True),
        ("#### 72", "72", True),
        ("**Answer:** (B)", "B", True),
        ("Twelve and three.\nSo we pay $15$", "15", True),
        ("We count them one after the other. " * 10 + "So there are 5 apples.", "5", True),
        ("So it is 15", "5", False),
        ("So it is 3.5", "5", False),
        ("Let us solve this in 5 steps:", "5", False),
        ("<think>", "5", False),
        ("", "5", False),
        ("The answer is", "", False),
    ],
)
def test_what_counts_as_an_answer_and_what_as_the_beginning_of_a_reply(reply, answer, holds):
    assert states(reply, answer) is holds


def test_a_template_is_refused_with_a_format_of_chats():
    with pytest.raises(ValueError, match="messages are asked as they are"):
        ProblemsConfig.model_validate({"source": "a.parquet", "format": "verl", "prompt": {"template": "{question}!"}})
