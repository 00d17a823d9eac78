"""Settings have one grammar in every command: key=value among the arguments."""

import json

import pytest

from cooper_base.cli.console import names_and_settings
from cooper_base.cli.main import app
from cooper_rl.run.trainer import CooperTrainer
from cooper_rl.run_config import build_config


def _cooper(monkeypatch, capfd, *arguments):
    monkeypatch.setattr("sys.argv", ["cooper", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "200")
    code = 0
    try:
        app()
    except SystemExit as end:
        code = end.code or 0
    captured = capfd.readouterr()
    return code, captured.out + captured.err


def _problems(path, count=6, **fields):
    rows = [{name: value.format(n) for name, value in fields.items()} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def policy(settings, tmp_path):
    """The policy of a run whose data has other fields than usual."""
    train = _problems(tmp_path / "train.jsonl", 12, body="{} + 1 = ", final="{}")
    mine = {"source": str(train), "question": "body", "answer": "final", "prompt": {"template": "Now: {question}"}}
    settings |= {"kind": "rule", "problems": mine, "test_problems": {"source": str(train), "limit": 4}, "steps": 1}
    with CooperTrainer.from_config(build_config({**settings, "evaluation": {"every": 0}})) as trainer:
        trainer.fit(on_step=lambda step, metrics: None)
    return trainer.directory / "checkpoints" / "000001" / "policy"


def test_a_runs_policy_is_measured_on_other_problems_as_the_run_reads_and_asks_its_own(
    monkeypatch, capfd, tmp_path, policy
):
    other = _problems(tmp_path / "other.jsonl", body="What is {}?", final="{}")
    out = tmp_path / "out.jsonl"
    code, output = _cooper(monkeypatch, capfd, "eval", policy, f"problems={other}", "k=1", "--out", out)
    assert code == 0, output
    assert "other.jsonl: question, answer, prompt.template as in the run" in output
    assert "| Now:Whatis0?" in output  # the tiny models' tokenizer has no spaces
    assert len(out.read_text().splitlines()) == 6  # the run's limit selects the run's problems
    code, by_option = _cooper(monkeypatch, capfd, "eval", policy, "--problems", other, "--k", 1)
    assert code == 0, by_option


def test_what_is_wrong_with_every_row_is_told_once_with_the_setting_that_helps(monkeypatch, capfd, tmp_path, policy):
    other = _problems(tmp_path / "other.jsonl", 40, text="What is {}?", final="{}")
    code, output = _cooper(monkeypatch, capfd, "eval", policy, f"problems={other}")
    assert code == 2
    assert output.count("field 'body' is missing") == 1
    assert "(and 19 more rows, to" in output
    assert "set problems.format, or problems.question and problems.answer" in output
    code, output = _cooper(monkeypatch, capfd, "eval", policy, f"problems={other}", "problems.question=text", "k=1")
    assert code == 0, output


def test_settings_and_options_of_an_evaluation_mean_the_same(monkeypatch, capfd, tmp_path, tiny_models):
    data = _problems(tmp_path / "data.jsonl", question="What is {}?", answer="{}")
    model, outs = tiny_models / "policy", [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    options = ["--problems", data, "--limit", 3, "--k", 2, "--max-tokens", 5, "--seed", 4, "--rule", "exact"]
    grammar = [f"problems={data}", "problems.limit=3", "k=2", "max_tokens=5", "seed=4", "rule=exact"]
    for given, out in ((options, outs[0]), (grammar, outs[1])):
        code, output = _cooper(monkeypatch, capfd, "eval", model, *given, "--out", out)
        assert code == 0, output
    assert outs[0].read_text() == outs[1].read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "m", "problems=arithmetic", "max_token=5"], "command line, max_token=5: unknown key 'max_token'"),
        (["eval", "m", "problems=arithmetic", "problems.limt=5"], "did you mean 'limit'"),
        (["eval", "m", "k=4"], "name the problems, problems=FILE"),
        (["eval", "m", "two", "problems=arithmetic"], "give a model's folder or --run, not both"),
        (["verifyrm", "train", "rows.jsonl", "model=m", "epoch=1", "--out", "rm"], "did you mean 'epochs'"),
        (["verifyrm", "train", "model=m", "--out", "rm"], "name a file of labelled completions"),
        (["verifyrm", "train", "rows.jsonl", "--out", "rm"], "model: Field required"),
        (["verifyrm", "bench", "rows.jsonl", "max_input_token=9", "--out", "b", "--reward-model", "m"], "rows.jsonl"),
        (["arena", "rollout.m=1"], "unknown key 'rollout.m'"),
        (["demo", "rollout.m=1"], "unknown key 'rollout.m'"),
        (["verify", "rows.jsonl", "--out", "v.jsonl", "rule=numeric", "rule.relativ=0.1"], "did you mean 'relative'"),
    ],
)
def test_a_setting_that_does_not_fit_is_named_by_every_command(monkeypatch, capfd, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, output = _cooper(monkeypatch, capfd, *arguments)
    assert code == 2
    assert message in " ".join(output.split())


def test_the_rule_of_verify_is_set_in_the_same_way(monkeypatch, capfd, tmp_path):
    rows = _problems(tmp_path / "rows.jsonl", 2, answer="10{}", completion=r"\boxed{{101}}")
    counts = []
    for number, given in enumerate([["rule.kind=numeric", "rule.relative=0.02"], ["--rule", "exact"]]):
        out = tmp_path / f"{number}.jsonl"
        code, output = _cooper(monkeypatch, capfd, "verify", rows, "--out", out, *given)
        assert code == 0, output
        counts.append([json.loads(line)["verdict"] for line in out.read_text().splitlines()])
    assert counts == [["correct", "correct"], ["wrong", "correct"]]


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=1.jsonl").touch()
    assert names_and_settings(["lr=1.jsonl", "lr=1", "models/x", "a.b=c=d"]) == (
        ["lr=1.jsonl", "models/x"],
        ["lr=1", "a.b=c=d"],
    )
