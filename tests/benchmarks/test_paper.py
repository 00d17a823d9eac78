"""The paper's table by one command: the protocol is the shipped configurations', and the tiny scale runs all of it."""

import json
import shutil
import sys

import pytest
from benchmarks.paper.__main__ import paper
from benchmarks.paper.page import write_page
from benchmarks.paper.published import LABELS, TABLE, mean
from benchmarks.paper.stages import Stage, stages_of
from benchmarks.paper.study import ARMS, FILES, MODELS, Study, protocol, wrong_number

from cooper_base.data.readers import read_file
from cooper_rl import InputError, build_config, load_config
from cooper_rl.policy.advantages import GRPO
from cooper_rl.reward.pairs.base import PAIRS
from repository import ROOT, SHARED

CONFIGS = ROOT / "configs"
DATA = SHARED / "data"


@pytest.mark.parametrize("model", MODELS)
def test_the_protocol_is_that_of_the_shipped_configuration(model):
    assert build_config(protocol(model)) == load_config(CONFIGS / f"{model}-paper.yaml")


def test_means_are_those_of_the_cells():
    means = [f"{mean(cells):.2f}" for arms in TABLE.values() for cells in arms.values()]
    assert means == ["54.57", "57.48", "29.17", "58.02", "38.50", "42.19", "24.80", "42.69"]


def test_every_arm_is_measured_after_it_is_trained_and_verifyrm_comes_first(tmp_path):
    study = Study("llama-3.2-1b", ARMS, tmp_path)
    stages = stages_of(study, "local", ())
    names = [stage.name for stage in stages]
    assert names[:4] == ["evaluate/base", "verifyrm", "train/rule", "evaluate/rule"]
    assert names[-1] == "evaluate/cooper"
    assert "verifyrm" not in [
        one.name for one in stages_of(Study("qwen2.5-1.5b", ("base", "rule"), tmp_path), "local", ())
    ]
    kinds = {arm: study.config(arm) for arm in ARMS[1:]}
    assert [config.kind for config in kinds.values()] == ["rule", "static", "paper", "cooper"]
    assert [PAIRS.kind_of(part) for part in kinds["paper"].cooptimization.pairs] == ["assistant"]
    assert kinds["rule"].algorithm == kinds["static"].algorithm == kinds["paper"].algorithm
    assert kinds["cooper"].algorithm.advantages == GRPO(std_floor=0.2)  # although the protocol names `grpo`
    assert kinds["cooper"].cooptimization.epochs == 1
    assert kinds["cooper"].cooptimization.assistant == kinds["paper"].cooptimization.assistant
    assert list(stages[0].settings["sets"]) == list(LABELS)
    for config in kinds.values():
        assert config.test_problems is not None
        assert (config.test_problems.format, config.more_test_problems) == ("math500", {})


def test_the_page_shows_the_papers_figures_and_which_of_ours_are_empty(tmp_path):
    study = Study("qwen2.5-1.5b", ("base", "rule"), tmp_path)
    stages = stages_of(study, "local", ())
    finished = next(stage for stage in stages if stage.name == "evaluate/base")
    cell = {"mean": 0.5, "low": 0.4, "high": 0.6, "k": 8, "problems": 10, "cut_off": 0.1}
    _finish(finished, {"sets": dict.fromkeys(LABELS, cell)})
    page = write_page(study, stages, "python -m benchmarks.paper --model qwen2.5-1.5b").read_text()
    assert "| no training | paper | 74.10 | 84.60 | 54.63 | 20.17 | 39.33 | 54.57 |" in page
    assert "| no training | ours | 50.00 [40.0, 60.0] |" in page
    assert "| Cooper as published | ours |  |  |  |  |  |  |" in page
    assert "python -m benchmarks.paper --model qwen2.5-1.5b --arms rule,static,paper,cooper" in page
    assert "| training problems | not published; the released script trains on GSM8K |" in page


def test_a_folder_does_not_mix_two_studies(tmp_path):
    [stage, *_] = stages_of(Study("qwen2.5-1.5b", ("base",), tmp_path), "local", ())
    _finish(stage, {"sets": {}})
    assert stage.result()
    [other, *_] = stages_of(Study("llama-3.2-1b", ("base",), tmp_path), "local", ())
    with pytest.raises(InputError, match=r"begun with other settings \(policy\)"):
        other.result()


def _finish(stage: Stage, found: dict) -> None:
    stage.result_path.parent.mkdir(exist_ok=True)
    result = {"settings": stage.settings, "seconds": 1.0, "begun_again": False, **found}
    stage.result_path.write_text(json.dumps(result))


def test_what_is_missing_is_named_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match=r"'rules' is none of base, rule"):
        Study("qwen2.5-1.5b", ("rules",), tmp_path)
    (tmp_path / "svamp.json").write_text("[]")
    with pytest.raises(InputError, match=r"has no gsm8k_train.jsonl, gsm8k_test.jsonl, math500.jsonl"):
        Study("qwen2.5-1.5b", ("rule",), tmp_path, data=tmp_path)
    with pytest.raises(InputError, match="--scale huge"):
        paper(scale="huge")
    with pytest.raises(InputError, match="no such file"):
        paper(scale="tiny", labelled=tmp_path / "rows.jsonl", output_dir=tmp_path / "out")


def test_the_assistant_has_to_answer_before_verifyrm_is_trained(tmp_path):
    nobody = ["engine={kind: local}", "cooptimization.assistant.base_url=http://127.0.0.1:9/v1"]
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9"):
        paper(nobody, arms="paper", engine="local", output_dir=tmp_path / "out")
    assert not (tmp_path / "out" / "stages").exists()


def test_the_tiny_assistant_changes_the_last_number():
    assert wrong_number(None, "so 12+7=19 answer: 19", 0, 0) == "so 12+7=19 answer: 20"
    assert wrong_number(None, "none", 1, 0) == "none 2"


def _run(monkeypatch, *words: object, **given) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks.paper", "paper", *map(str, words)])
    paper(**given)


@pytest.mark.slow
def test_the_tiny_scale_fills_the_table_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    folder = tmp_path / "paper"
    _run(monkeypatch, scale="tiny", arms="base,rule", output_dir=folder)
    before = {path: path.stat().st_mtime_ns for path in (folder / "stages").iterdir()}
    # What an interrupted measurement leaves: three of five sets.
    (folder / "stages" / "evaluate-rule.json").unlink()
    for name in ("olympiadbench", "math_odyssey"):
        (folder / "evaluations" / "rule" / f"{name}.json").unlink()
    kept = {path: path.stat().st_mtime_ns for path in (folder / "evaluations" / "rule").glob("*.json")}
    assert len(kept) == 3
    _run(monkeypatch, scale="tiny", output_dir=folder)
    numbers = json.loads((folder / "paper.json").read_text())["ours"]
    assert list(numbers) == list(ARMS)
    assert all(set(cells) == set(LABELS) for cells in numbers.values())
    # The embedded policy is half right at its start, and the rule improves it within six steps.
    assert mean([cell[0] for cell in numbers["base"].values()]) > 20
    assert mean([cell[0] for cell in numbers["rule"].values()]) > mean([cell[0] for cell in numbers["base"].values()])
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for name in ("evaluate-base", "train-rule"):
        path = folder / "stages" / f"{name}.json"
        assert path.stat().st_mtime_ns == before[path]
    page = (folder / "paper.md").read_text()
    assert "fills the empty rows" not in page
    assert "Its figures say nothing about the paper" in page
    assert json.loads((folder / "stages" / "verifyrm.json").read_text())["held_out"]["accuracy"] > 0.6


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the real problems are not beside the checkout")
def test_the_tiny_scale_runs_on_real_problems_and_rows(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="the rows are a Parquet file")
    problems, folder = tmp_path / "problems", tmp_path / "paper"
    problems.mkdir()
    for name, _ in FILES.values():
        shutil.copy(DATA / "problems" / name, problems)
    rows = tmp_path / "rows.jsonl"
    real = [row.fields for row in read_file(DATA / "labelled" / "real_completions.parquet")]
    usable = [one for one in real if one["question"] and one["reference_answer"]]
    rows.write_text("".join(json.dumps(one) + "\n" for one in usable), encoding="utf-8")
    _run(monkeypatch, scale="tiny", arms="base,paper", data=problems, labelled=rows, output_dir=folder)
    measured = json.loads((folder / "stages" / "evaluate-paper.json").read_text())["sets"]
    assert {one["problems"] for one in measured.values()} == {4}
    assert "few problems: real ones" in (folder / "paper.md").read_text()
