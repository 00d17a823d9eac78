"""`cooper verifyrm train` turns files into a model folder and reports wrong settings."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cooper_base.errors import InputError
from cooper_rl.cli.verifyrm import verifyrm


def command(*arguments: str) -> None:
    CliRunner().invoke(verifyrm, ["train", *arguments], catch_exceptions=False)


def test_labelled_files_become_a_reward_model_folder(tiny_models: Path, tmp_path: Path):
    data = tmp_path / "rows.jsonl"
    rows = [
        {"question": f"{i}+1?", "reference_answer": i + 1, "completion": str(i + 1 + i % 2), "label": 1 - i % 2}
        for i in range(30)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = ["threads=1", "epochs=1", "batch_size=8"]
    command(str(data), str(data), "--model", str(tiny_models / "policy"), "--out", str(tmp_path / "rm"), *settings)
    metrics = json.loads((tmp_path / "rm" / "verifyrm.json").read_text())
    assert metrics["rows"]["given"] == 60
    assert metrics["config"]["batch_size"] == 8
    assert (tmp_path / "rm" / "model.safetensors").is_file()


def test_rows_with_the_same_fault_are_one_line(tmp_path: Path):
    good = {"question": "1+1?", "reference_answer": "2", "completion": "2", "label": 1}
    lines = [json.dumps(good), "{", json.dumps({**good, "label": 7}), json.dumps({"question": "1+1?"})] + ["{"] * 30
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError) as error:
        command(str(tmp_path / "rows.jsonl"), "--model", "m", "--out", str(tmp_path / "rm"))
    told = str(error.value).splitlines()
    assert len(told) == 3
    assert "rows.jsonl:2: not valid JSON" in told[0]
    assert "(and 30 more rows, to " in told[0]
    assert [line.partition("rows.jsonl:")[2][:1] for line in told[:3]] == ["2", "3", "4"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("learning_rat=1", "did you mean 'learning_rate'"),
        ("epochs=-1", "epochs: Input should be greater than 0"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, setting: str, message: str):
    with pytest.raises(InputError, match=message):
        command("rows.jsonl", "--model", "m", "--out", str(tmp_path / "rm"), setting)
