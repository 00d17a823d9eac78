"""Labelling: rows are kept if rule and judge agree, everything is counted, and nothing is asked twice."""

import json
from collections import Counter

import pytest
from pyarrow import parquet

from chat_server import ChatServer, completion
from cooper_base.data.labelled import read_labelled
from cooper_base.errors import InputError
from cooper_rl.verifyrm.label import (
    CollectedRow,
    Labelled,
    agreed_label,
    agreement_counts,
    confusion,
    disagreements_path,
    label_completions,
)
from cooper_verify.graders.judge import ChatJudgeConfig
from cooper_verify.graders.judgement import Judgement
from cooper_verify.rules.kinds.numeric import NumericRule

COMPLETIONS = {
    "It is 7. The answer is 7.": ("correct", "yes"),
    "The answer is 8.": ("wrong", "no"),
    "The answer is seven and nothing else.": ("unparsed", "yes"),
    "The answer is 9, which I made up.": ("wrong", "yes"),
    "I do not know": ("unparsed", "no"),
    "The answer is 7 (unreadable).": ("correct", "unreadable"),
}


def judging(request, number):
    task = request["messages"][-1]["content"]
    if "Reply with the word ready" in task:
        return completion("ready")
    text = task.split("<<<\n")[1].split("\n>>>")[0]
    opinion = COMPLETIONS[text][1]
    return completion("perhaps" if opinion == "unreadable" else opinion)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "completions.jsonl"
    rows = [
        {"question": f"What is {i} + 7 - {i}?", "reference_answer": "7", "completion": text, "model": model,
         "dataset": "sums", "id": f"{i}/{model}/{text[:20]}"}
        for i in range(8) for model in ("a", "b") for text in COMPLETIONS
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def judge_config(url, **changes):
    return ChatJudgeConfig(base_url=url, model="m", max_retries=0, **changes)


def test_any_rule_can_label_and_a_journal_of_another_rule_is_refused(data, tmp_path):
    out = tmp_path / "labelled.jsonl"
    with ChatServer(judging) as server:
        config = judge_config(server.url)
        labelled = label_completions(data, config, out, rule=NumericRule(absolute=1))
        assert {item.rule for item in labelled if "answer is 8" in item.row.completion} == {"correct"}
        with pytest.raises(InputError, match="labelled"):
            label_completions(data, config, out)


def test_rows_are_kept_where_both_agree_and_the_others_are_saved_for_reading(data, tmp_path):
    out, seen = tmp_path / "labelled.parquet", []
    with ChatServer(judging) as server:
        labelled = label_completions(
            data, judge_config(server.url), out, progress=lambda done, total: seen.append((done, total))
        )
    rows = parquet.read_table(out).to_pylist()
    assert Counter((row["completion"], row["label"]) for row in rows) == {
        ("It is 7. The answer is 7.", 1): 16,
        ("The answer is 8.", 0): 16,
        ("I do not know", 0): 16,
    }
    others = [json.loads(line) for line in disagreements_path(out).read_text().splitlines()]
    assert {(row["rule"], row["judge"]) for row in others} == {
        ("unparsed", "yes"),
        ("wrong", "yes"),
        ("correct", "unreadable"),
    }
    assert {row["judge_reply"] for row in others} == {"yes", "perhaps"}
    assert confusion(labelled)["sums", "a"] == dict.fromkeys(COMPLETIONS.values(), 8)
    assert agreement_counts(labelled) == {
        "right": 16,
        "wrong": 32,
        "disagree": 32,
        "no opinion": 16,
        "judge not heard": 0,
    }
    assert seen == [(64, 96), (96, 96)]
    assert len(read_labelled(out)) == 48  # loads as it is


def test_an_interrupted_labelling_continues_and_failed_requests_are_asked_again(data, tmp_path):
    broken = {"on": True}

    def sometimes(request, number):
        return completion("no", status=400) if broken["on"] and number == 40 else judging(request, number)

    out = tmp_path / "labelled.jsonl"
    with ChatServer(sometimes) as server:
        config = judge_config(server.url, concurrency=1)
        first = label_completions(data, config, out)
        assert agreement_counts(first)["judge not heard"] == 1
        assert [item.label for item in first if item.judgement.failed] == [None]
        broken["on"] = False
        journal = tmp_path / "labelled.journal.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:2]))  # the second chunk was not reached
        before = len(server.requests)
        second = label_completions(data, config, out)
        assert len(server.requests) - before == 1 + 1 + 32  # the check, the failed row, the second chunk
        assert agreement_counts(second)["no opinion"] == 16
        before = len(server.requests)
        assert label_completions(data, config, out) == second
        assert len(server.requests) == before
        with pytest.raises(InputError, match="other settings"):
            label_completions(data, judge_config(server.url, temperature=0.5), out)


@pytest.mark.parametrize(
    ("rule", "judge", "label"),
    [
        ("correct", "yes", 1),
        ("wrong", "no", 0),
        ("unparsed", "no", 0),
        ("correct", "no", None),
        ("wrong", "yes", None),
        ("unparsed", "yes", None),
        ("timeout", "no", None),
        ("timeout", "yes", None),
        ("silent", "no", None),
        ("silent", "yes", None),
        ("correct", "unreadable", None),
        ("wrong", "unreadable", None),
    ],
)
def test_which_opinions_agree(rule, judge, label):
    assert agreed_label(rule, judge) == label


def test_a_silent_rule_does_not_disagree():
    row = CollectedRow("q", "7", "It is 7.", "-", "-", "1")
    labelled = [Labelled(row, rule, Judgement(judge)) for rule in ("silent", "wrong") for judge in ("yes", "no")]
    counts = agreement_counts(labelled)
    assert (counts["wrong"], counts["disagree"], counts["no opinion"]) == (1, 1, 2)


def test_bad_rows_are_named_before_the_judge_is_asked(tmp_path):
    data = tmp_path / "completions.jsonl"
    data.write_text(
        '{"question": "q", "reference_answer": "7", "completion": "7"}\n{"question": "q", "completion": "7"}\n'
    )
    with pytest.raises(InputError, match=r"completions.jsonl:2: field 'reference_answer' is missing"):
        label_completions(data, judge_config("http://127.0.0.1:1/v1"), tmp_path / "out.parquet")
    with pytest.raises(InputError, match="unknown suffix"):
        label_completions(data, judge_config("http://127.0.0.1:1/v1"), tmp_path / "out.txt")
