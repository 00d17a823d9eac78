"""The command line: bad input gives exit code 2 and a helpful message; good input does the work."""

import json
import logging
import re
import sys

import pytest
import torch
import yaml

from chat_server import ChatServer, completion
from cooper_audit.run.run_record import read_metrics
from cooper_base.cli.main import app


def _cooper(monkeypatch, capfd, *arguments):
    """The exit code and all output."""
    monkeypatch.setattr(sys, "argv", ["cooper", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as finished:
        app()
    streams = capfd.readouterr()
    return finished.value.code or 0, streams.out + streams.err


@pytest.fixture
def config_file(settings, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**settings, "steps": 2}))
    return path


def test_train_runs_and_says_where_the_report_is(monkeypatch, capfd, config_file, settings, tmp_path):
    code, output = _cooper(monkeypatch, capfd, "train", config_file, "kind=rule", "name=other")
    assert code == 0, output
    assert [row["step"] for row in read_metrics(tmp_path / "other")] == [0, 1, 2]
    assert f"open it in a browser: {(tmp_path / 'other' / 'report.html').as_uri()}" in " ".join(output.split())
    assert "test/rule_avg" in (tmp_path / "other" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["steps=0"], "steps"),
        (["rollout.temprature=1"], "did you mean 'temperature'?"),
        (["problems.source=nowhere.jsonl"], "no such file"),
        (["policy.model=./nowhere"], "no such model folder"),
        (["problems.prompt.max_prompt_tokens=3"], "longer than 3 tokens"),
        (["problems.prompt.chat=true"], "no chat template"),
        (["reward_model.model=POLICY"], "has no reward head"),
        (["kind=static", "reward_model.model=POLICY"], "has no reward head"),
        (["rollout.temperature=0"], "set it above 0"),
        (["problems_per_step=400"], "lower problems_per_step or add problems"),
        (["rollout.max_tokens=512"], "max_tokens: 512 leaves no room for a prompt: the model's context is 256 tokens"),
        (["name=../elsewhere"], "name: the run would be written outside"),
        (["--resume"], "no run to resume"),
    ],
)
def test_bad_input_exits_with_2_before_training(
    monkeypatch, capfd, config_file, tiny_models, tmp_path, arguments, words
):
    arguments = [argument.replace("POLICY", str(tiny_models / "policy")) for argument in arguments]
    code, output = _cooper(monkeypatch, capfd, "train", config_file, *arguments)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_a_stop_rule_ends_train_with_3_and_says_why(monkeypatch, capfd, config_file, tmp_path):
    rule = "watch=[{metric: rollout/tokens, above: 0, patience: 1, action: stop}]"
    code, output = _cooper(monkeypatch, capfd, "train", config_file, "kind=rule", rule)
    assert code == 3, output
    assert "stopped after step 1 by a watch rule: rollout/tokens above 0 since step 1" in " ".join(output.split())
    assert "rollout/tokens" in (tmp_path / "run" / "report.html").read_text()


def test_eval_prints_intervals_and_writes_completions(monkeypatch, capfd, tiny_models, tmp_path):
    out = tmp_path / "completions.jsonl"
    code, output = _cooper(
        monkeypatch, capfd, "eval", tiny_models / "policy", "--problems", "arithmetic", "--limit", 4,
        "--k", 2, "--max-tokens", 8, "--out", out, "problems.gold=cooper_lab.arithmetic.problems:gold",
    )  # fmt: skip
    assert code == 0, output
    assert "avg@2" in output
    assert "pass@2" in output
    assert "gold" in output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 2 * 4 * 2


def test_eval_counts_cut_off_completions_and_gives_zero_an_interval(monkeypatch, capfd, tiny_models, caplog):
    before = torch.get_num_threads()
    arguments = ["eval", tiny_models / "policy", "--problems", "arithmetic", "--limit", 4, "--k", 2, "--threads", 1]
    with caplog.at_level(logging.INFO, "cooper_rl"):
        code, output = _cooper(monkeypatch, capfd, *arguments, "--max-tokens", 1)
    torch.set_num_threads(before)
    assert code == 0, output
    assert re.search(r"avg@2 +│ 0.0000 │ 0.0000 to 0.4899", output)  # none of four problems
    assert "cut off at 1 tokens: 8 of 8 completions (100 %)" in output
    assert "warning: most completions were cut off" in output
    assert "CPU threads for tensor work: 1 (as set)" in caplog.text


def test_text_in_brackets_in_a_message_is_printed(monkeypatch, capfd, config_file):
    code, output = _cooper(monkeypatch, capfd, "train", config_file, "policy.model=models [bold] x")
    assert code == 2
    assert "models [bold] x: no such model folder" in output


def test_verify_prints_counts_and_precision(monkeypatch, capfd, tmp_path):
    data = tmp_path / "answers.jsonl"
    rows = [{"answer": "12", "completion": f"The answer is {n}.", "gold_correct": n != 13} for n in (12, 13, 12.0)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, output = _cooper(monkeypatch, capfd, "verify", data, "--out", tmp_path / "out.jsonl")
    assert code == 0, output
    assert "precision 1.0000, recall 1.0000" in output
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    code, output = _cooper(monkeypatch, capfd, "verify", tmp_path / "answers.jsonll", "--out", tmp_path / "o.jsonl")
    assert code == 2
    assert "no such file; did you mean" in output


def test_from_raw_problems_to_a_bench(monkeypatch, capfd, tiny_models, tmp_path):
    """collect, label, train and bench run one after another, each on the output of the previous one."""
    problems = tmp_path / "problems.jsonl"
    problems.write_text("".join(json.dumps({"question": f"{n}+1=", "answer": str(n + 1)}) + "\n" for n in range(24)))

    def answers(request, number):
        question = request["messages"][-1]["content"]
        if question.endswith("="):
            value = int(question.split("+")[0]) + 1
            return completion(f"answer: {value if request.get('seed', 0) % 2 else value + 1}")
        if "Solution to check" not in question:
            return completion("ready")
        reference = question.split("Reference answer:\n")[1].split("\n")[0]
        return completion("yes" if f"<<<\nanswer: {reference}\n" in question else "no")

    with ChatServer(answers) as server:
        served = {"kind": "chat", "base_url": server.url, "model": "m"}
        dataset = {"name": "sums", "source": str(problems), "prompt": {"template": "{question}"}}
        collect = {"output": str(tmp_path / "completions.parquet"), "n": 4, "models": [{"name": "served", **served}]}
        (tmp_path / "collect.yaml").write_text(yaml.safe_dump({**collect, "datasets": [dataset]}))
        (tmp_path / "judge.yaml").write_text(yaml.safe_dump({"judge": served}))

        code, output = _cooper(monkeypatch, capfd, "verifyrm", "collect", tmp_path / "collect.yaml", "threads=1")
        assert code == 0, output
        assert "48 rows" in output
        code, output = _cooper(
            monkeypatch, capfd, "verifyrm", "label", tmp_path / "completions.parquet", "--threads", 1,
            "--judge", tmp_path / "judge.yaml", "--out", tmp_path / "labelled.parquet",
        )  # fmt: skip
        assert code == 0, output
        assert "right 24, wrong 24, disagree 0, no opinion 0" in output
        code, output = _cooper(
            monkeypatch, capfd, "verifyrm", "train", tmp_path / "labelled.parquet", "--model", tiny_models / "policy",
            "--out", tmp_path / "rm", "threads=1", "epochs=1", "batch_size=8",
        )  # fmt: skip
        assert code == 0, output
        assert "ece" in output
        code, output = _cooper(
            monkeypatch, capfd, "verifyrm", "bench", tmp_path / "labelled.parquet", "--out", tmp_path / "bench",
            "--reward-model", tmp_path / "rm", "--judge", tmp_path / "judge.yaml", "--combine", "rule or rm",
            "--attacks", 2, "--threads", 1,
        )  # fmt: skip
        assert code == 0, output
    found = json.loads((tmp_path / "bench" / "bench.json").read_text())
    assert set(found["methods"]) == {"rule", "rm", "judge", "rule or rm"}
    assert found["methods"]["rule"]["overall"]["accuracy"]["mean"] == 1.0
    assert found["methods"]["judge"]["overall"]["accuracy"]["mean"] == 1.0
    assert "bench.html" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["collect", "nowhere.yaml"], "no such configuration file"),
        (["label", "nowhere.parquet", "--judge", "JUDGE", "--out", "o.parquet"], "no such file"),
        (["bench", "ROWS", "--out", "OUT", "--no-rule"], "nothing to measure"),
        (["bench", "ROWS", "--out", "OUT", "--combine", "rule or rm"], "unknown name 'rm'"),
        (["bench", "ROWS", "--out", "OUT", "--reward-model", "rule=x"], "used already"),
        (["bench", "ROWS", "--out", "OUT", "--reward-model", "./nowhere"], "no such model folder"),
        (["bench", "ROWS", "--out", "OUT", "--reward-model", "POLICY"], "has no reward head"),
    ],
)
def test_bad_input_to_verifyrm_exits_with_2(monkeypatch, capfd, tiny_models, tmp_path, arguments, words):
    (tmp_path / "judge.yaml").write_text("judge: {kind: chat, base_url: 'http://127.0.0.1:1/v1', model: m}\n")
    rows = [{"question": "q", "reference_answer": "1", "completion": "1", "label": 1}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = {"JUDGE": tmp_path / "judge.yaml", "ROWS": tmp_path / "rows.jsonl", "OUT": tmp_path / "out"}
    paths["POLICY"] = tiny_models / "policy"
    code, output = _cooper(monkeypatch, capfd, "verifyrm", *(paths.get(word, word) for word in arguments))
    assert code == 2, output
    assert words in " ".join(output.split())
