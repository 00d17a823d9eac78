"""Labelling: rows are kept if rule and judge agree, everything is counted, and nothing is asked twice."""

import inspect
import json
import os
from collections import Counter

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from chat_server import ChatServer, completion
from cooper_base.cli.main import commands
from cooper_base.data.labelled import read_labelled
from cooper_base.errors import InputError
from cooper_rl.verifyrm.label import (
    CollectedRow,
    Labelled,
    agreement_counts,
    confusion,
    disagreements_path,
    label_completions,
)
from cooper_verify.grader import NO_ANSWER, Grader, Opinion
from cooper_verify.graders.judge import ChatJudgeConfig
from cooper_verify.graders.judgement import Judgement
from cooper_verify.rules.kinds.numeric import NumericRule

COMPLETIONS = {
    "It is 7. The answer is 7.": ("correct", "yes"),
    "The answer is 8.": ("wrong", "no"),
    "The answer is seven and nothing else.": ("unparsed", "yes"),
    "It is 9. The answer is 9.": ("wrong", "yes"),
    "I do not know": ("unparsed", "no"),
    "So the answer is 7.": ("correct", "unreadable"),
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
        assert [item.label for item in first if item.unheard] == [None]
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
    assert Labelled(CollectedRow("", "", "", "", "", ""), rule, Judgement(judge)).label == label


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


class Sevens(Grader):
    """Accepts what has a 7 in it; of an answer in words it says nothing, and its server may fail."""

    fails = False

    def settings(self):
        return {"kind": "sevens"}

    def grade(self, answers, /):
        return [self._opinion(text) for _, text in answers]

    def _opinion(self, text):
        if "seven" in text:
            return Opinion("silent", None) if not self.fails else Opinion("unparsed", None, NO_ANSWER)
        return Opinion("correct", 0.9) if "7" in text else Opinion("wrong", 0.2)


def test_a_label_is_what_all_say_rule_judge_and_grader(data, tmp_path):
    out = tmp_path / "labelled.jsonl"
    with ChatServer(judging) as server:
        labelled = label_completions(data, judge_config(server.url), out, grader=Sevens())
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert Counter((row["completion"], row["label"]) for row in rows) == {
        ("It is 7. The answer is 7.", 1): 16,
        ("The answer is 8.", 0): 16,
        ("I do not know", 0): 16,
    }
    assert {(row["judge"], row["grader"], row["grader_score"]) for row in rows if row["label"]} == {
        ("yes", "correct", 0.9)
    }
    assert confusion(labelled)["sums", "a"]["unparsed", "yes", "silent"] == 8
    assert agreement_counts(labelled)["grader not heard"] == 0


def test_a_grader_labels_without_a_judge_and_is_asked_again_where_its_server_failed(data, tmp_path):
    out, grader = tmp_path / "labelled.jsonl", Sevens()
    grader.fails = True
    first = label_completions(data, None, out, grader=grader)
    assert agreement_counts(first)["grader not heard"] == 16
    grader.fails = False
    second = label_completions(data, None, out, grader=grader)
    assert agreement_counts(second)["grader not heard"] == 0
    assert {item.label for item in second if "seven" in item.row.completion} == {None}
    assert "judge" not in json.loads(out.read_text().splitlines()[0])
    with pytest.raises(InputError, match="made with other settings"):
        label_completions(data, None, out)


def test_a_rule_alone_labels_what_it_judges(data, tmp_path):
    labelled = label_completions(data, None, tmp_path / "labelled.jsonl")
    assert agreement_counts(labelled) == {"right": 32, "wrong": 64, "disagree": 0, "no opinion": 0}
    assert set(confusion(labelled)["sums", "a"]) == {("correct",), ("wrong",), ("unparsed",)}


def test_a_grader_without_verdicts_cannot_label(data, tmp_path):
    class Scores(Sevens):
        name, gives_verdicts = "scores", False

    with pytest.raises(InputError, match="scores: gives scores on a scale that nobody knows; that is no verdict"):
        label_completions(data, None, tmp_path / "labelled.jsonl", grader=Scores())
    assert not (tmp_path / "labelled.journal.jsonl").exists()


def run(data, *options):
    return CliRunner().invoke(commands, ["verifyrm", "label", str(data), *map(str, options)])


def test_the_command_takes_a_judges_file_as_grader_and_continues_its_journal(data, tmp_path):
    out, file = tmp_path / "labelled.jsonl", tmp_path / "judge.yaml"
    with ChatServer(judging) as server:
        file.write_text(f"judge: {{kind: chat, base_url: '{server.url}', model: m, max_retries: 0}}\n")
        assert run(data, "--judge", file, "--out", out).exit_code == 0
        before, labelled = len(server.requests), out.read_text()
        again = run(data, "--grader", file, "--out", out)
        assert again.exit_code == 0, again.output
        assert len(server.requests) == before, "it is the same judge"
    assert out.read_text() == labelled


def test_the_command_labels_by_a_rule_alone_and_by_a_rule_and_a_class(data, tmp_path, monkeypatch):
    class_of_its_own = "from cooper_verify.grader import Grader, Opinion\n" + inspect.getsource(Sevens)
    (tmp_path / "sevens.py").write_text(class_of_its_own)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)  # a grader has its own process
    monkeypatch.syspath_prepend(tmp_path)
    assert run(data, "--grader", "rule:exact", "--out", tmp_path / "rule.jsonl").exit_code == 0
    assert "grader" not in json.loads((tmp_path / "rule.jsonl").read_text().splitlines()[0])
    result = run(data, "--rule", "exact", "--grader", "sevens:Sevens", "--out", tmp_path / "own.jsonl")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "own.jsonl").read_text().splitlines()[0])["grader"] == "correct"


def test_without_judge_or_grader_the_rule_labels_alone_and_the_next_command_is_named(data, tmp_path):
    for options, name in (([], "maths"), (["--rule", "exact"], "exact")):
        result = run(data, *options, "--out", tmp_path / f"{name}.jsonl")
        assert result.exit_code == 0, result.output
        assert f"next: cooper verifyrm train {tmp_path / name}.jsonl --model BASE" in " ".join(result.output.split())
    rows = [json.loads(line) for line in (tmp_path / "maths.jsonl").read_text().splitlines()]
    assert {row["label"] for row in rows} <= {0, 1}
    assert not {"judge", "grader"} & rows[0].keys()
    run(data, "--grader", "rule:exact", "--out", tmp_path / "named.jsonl")
    assert (tmp_path / "exact.jsonl").read_text() == (tmp_path / "named.jsonl").read_text()


def test_of_a_chat_the_rule_reads_the_last_turn(tmp_path):
    """What the user, a tool or the policy said before it is no answer."""
    chat = [
        {"role": "assistant", "content": "The answer is 9."},
        {"role": "user", "content": "The answer is 8. Look again."},
        {"role": "assistant", "content": "The answer is 7."},
    ]
    row = {"question": "What is 3 + 4?", "answer": "7"}
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({**row, "completion": chat[:length]}) + "\n" for length in (1, 3)))
    label_completions(path, None, tmp_path / "labelled.jsonl")
    assert [read.label for read in read_labelled(tmp_path / "labelled.jsonl")] == [0, 1]
