"""A data column with a whole chat becomes the prompt as it is: system, few-shot turns, the beginning of the reply."""

import json

import pytest

from cooper_base.config.checking import Settings, check_settings
from cooper_base.errors import InputError
from cooper_rl.data.prompts import PromptEncoder
from cooper_verify.problems.config import ProblemsConfig, PromptConfig
from cooper_verify.problems.loading import read_problems
from data.test_prompts import CHAT, tokenizer

SYSTEM = {"role": "system", "content": "Be brief."}
FEW_SHOT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
ASKED = {"role": "user", "content": "2+3?"}
BEGUN = {"role": "assistant", "content": "The sum is "}


def read(tmp_path, rows, **settings):
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = {"source": str(path), "messages": "chat", "max_bad_rows": 10, **settings}
    return read_problems(check_settings(ProblemsConfig, Settings(values)))


@pytest.mark.parametrize(
    ("chat", "system", "expected"),
    [
        ([ASKED], None, "[user]2+3?[assistant]"),
        ([ASKED], "Think.", "[system]Think.[user]2+3?[assistant]"),
        ([SYSTEM, ASKED], "Think.", "[system]Be brief.[user]2+3?[assistant]"),
        ([SYSTEM, *FEW_SHOT, ASKED], None, "[system]Be brief.[user]1+1?[assistant]2[user]2+3?[assistant]"),
        ([ASKED, BEGUN], None, "[user]2+3?[assistant]The sum is "),
    ],
)
def test_the_chat_template_gets_every_turn(tmp_path, chat, system, expected):
    [problem] = read(tmp_path, [{"chat": chat, "answer": 5}]).problems
    assert (problem.question, problem.answer) == ("2+3?", "5")
    assert "chat" not in problem.metadata
    assert PromptEncoder(tokenizer(CHAT), PromptConfig(system=system)).text(problem) == expected


def test_without_a_chat_template_turns_are_paragraphs(tmp_path):
    [problem] = read(tmp_path, [{"chat": [SYSTEM, ASKED, BEGUN], "answer": 5}]).problems
    assert PromptEncoder(tokenizer(), PromptConfig()).text(problem) == "Be brief.\n\n2+3?\n\nThe sum is "


def test_a_template_that_changes_the_begun_reply_is_named(tmp_path):
    [problem] = read(tmp_path, [{"chat": [ASKED, BEGUN], "answer": 5}]).problems
    upper = "{% for m in messages %}{{ m.content | upper }}{% endfor %}"
    with pytest.raises(InputError, match="the chat template rejects the prompt"):
        PromptEncoder(tokenizer(upper), PromptConfig()).text(problem)


def test_a_chat_may_be_json_text_and_a_question_field_of_its_own(tmp_path):
    rows = [{"chat": json.dumps([SYSTEM, ASKED]), "answer": 5, "task": "the sum of 2 and 3"}]
    [problem] = read(tmp_path, rows, question="task").problems
    assert (problem.question, problem.messages) == ("the sum of 2 and 3", [SYSTEM, ASKED])


@pytest.mark.parametrize(
    ("chat", "why"),
    [
        ("2+3?", "no JSON list of messages"),
        ([], "is no list of messages"),
        ([{"role": "user"}], "message 1 has no role and content"),
        ([{"role": "user", "content": ["a"]}], "message 1 has no role and content that are text"),
        ([ASKED, SYSTEM], "ends with a message of the system"),
        ([BEGUN], "has no message of the user"),
    ],
)
def test_what_is_no_chat_is_a_bad_row(tmp_path, chat, why):
    loaded = read(tmp_path, [{"chat": chat, "answer": 5}, {"chat": [ASKED], "answer": 5}])
    assert len(loaded.problems) == 1
    assert why in loaded.bad_rows[0]
    assert "chats.jsonl:1" in loaded.bad_rows[0]


def test_chats_with_one_last_question_are_different_problems(tmp_path):
    rows = [{"chat": [*FEW_SHOT, ASKED], "answer": 5}, {"chat": [ASKED], "answer": 5}, {"chat": [ASKED], "answer": 5}]
    loaded = read(tmp_path, rows)
    assert (len(loaded.problems), len(loaded.duplicates)) == (2, 1)


def test_a_template_beside_messages_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"remove prompt\.template"):
        read(tmp_path, [], prompt={"template": "{question}!"})


def test_a_measured_pass_rate_is_read(tmp_path):
    rows = [{"chat": [ASKED], "answer": 5, "rate": 0.25}, {"chat": [*FEW_SHOT, ASKED], "answer": 5, "rate": 7}]
    loaded = read(tmp_path, rows, pass_rate="rate")
    assert [problem.pass_rate for problem in loaded.problems] == [0.25]
    assert "'7', no share between 0 and 1" in loaded.bad_rows[0]
