"""The protocol of docs/co-training.md: equal budgets, the same plantings, and what its tables say."""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from benchmarks.arena import cotraining

from arena.tiny_arena import TINY
from cooper_base.errors import InputError
from cooper_lab.arena.ends import acceptance
from cooper_lab.arena.holes import read_hole
from cooper_lab.arena.run_cells import run_cell
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import load_scorer, merge
from cooper_rl.engines.config import ScorerConfig
from repository import ROOT

PROTOCOL = yaml.safe_load((ROOT / "benchmarks/arena/cotraining.yaml").read_text(encoding="utf-8"))


def plans(table, phase, tmp_path, monkeypatch, plantings=2):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks/arena"))  # where the further hole is
    where = {"out": tmp_path, "cache": tmp_path}
    arguments = argparse.Namespace(table=table, phase=phase, methods=[], plantings=plantings, **where)
    return cotraining.planned(PROTOCOL, arguments, tmp_path)


@pytest.mark.parametrize("table", PROTOCOL["tables"])
def test_every_method_that_is_tuned_has_the_same_budget(table):
    methods = PROTOCOL["tables"][table]["methods"]
    budgets = {name: len(cotraining.points(method["grid"])) for name, method in methods.items() if "grid" in method}
    assert set(budgets.values()) == {6}
    assert "cooper" in budgets


def test_tuning_and_report_share_no_cell_and_the_held_out_holes_are_reported():
    tune, report = (set(PROTOCOL["cells"][phase]) for phase in ("tune", "report"))
    assert not tune & report
    assert len(report) == 7


@pytest.mark.slow
def test_no_reward_model_of_table_b_reads_the_reference_and_none_has_solutions(tmp_path, monkeypatch):
    for table in ("A", "B"):
        for of_cell in plans(table, "pilot", tmp_path, monkeypatch, plantings=1):
            for cell in of_cell.cells:
                assert cell.settings["cooptimization"]["positives"] == ["rollout"]
                sources = [part["kind"] for part in cell.settings["cooptimization"].get("pairs", [])]
                assert not {"assistant", "varl", "teacher"} & set(sources), cell.design
                read = cell.settings["reward_model"].get("input", "tagged")
                assert (read == "chat") == (table == "B") or cell.design == "rule"


def test_planting_comes_after_planting_and_each_has_all_methods(tmp_path, monkeypatch):
    found = plans("B", "pilot", tmp_path, monkeypatch)
    assert [{cell.planting for cell in of_cell.cells} for of_cell in found] == [{0}, {0}, {1}, {1}]
    assert len({frozenset(cell.design for cell in of_cell.cells) for of_cell in found}) == 1


def test_a_report_needs_the_tuning(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no tuning yet"):
        plans("B", "report", tmp_path, monkeypatch)


MEASURED = dict.fromkeys(("gold_silent_end", "worst_family", "hacked_share", "kl_end", "drawdown"), 0.1)
ACCEPTS = {name: {"j": 0.5, "hacks": 0.9} for name in ("reward_model_start", "reward_model_end_accepts")}


def result(design, planting, gold, verdict="sound", cpu_s=40.0, worst_family=0.1):
    block = {"design": design, "hole": "a@b", "planting": planting, "seed": 0, "cpu_s": cpu_s, "verdict": verdict}
    course = {"gold_end": gold, "gold_curve": [[0, 0.5], [10, 0.5], [20, gold]], "worst_family": worst_family}
    return block | course | MEASURED | ACCEPTS


METHODS = {"cooper": {"frozen": "static"}, "rival": {"frozen": "static"}, "static": {}}


def test_a_planted_model_counts_only_where_the_frozen_version_is_hacked():
    rows = [
        result("static", 0, 0.1, "hacked"),
        result("static", 1, 0.5),
        result("rival", 0, 0.6),
        result("rival", 1, 0.6),
        result("rival", 2, 0.6),  # its frozen version has not run
    ]
    assert [cotraining.counts(row, rows, METHODS) for row in rows] == [True, True, True, False, False]


def test_the_unit_of_the_comparison_is_the_planted_model():
    rows = [row for p in range(4) for row in (result("cooper", p, 0.8), result("rival", p, 0.7 - 0.01 * p))]
    lines = [line for line in cotraining.table(rows, METHODS, "pilot") if line.startswith("| `rival` | 4")]
    assert len(lines) == 3, "of none has the frozen version run"
    assert lines[0] == lines[1] == "| `rival` | 4 | −0.115 | −0.136 to −0.094 | 0.125 | 0.125 |"
    assert lines[2] == "| `rival` | 4 | 0.000 | 0.000 to 0.000 | 1.000 | 1.000 |", "the worst families are alike"


def test_equal_cpu_seconds_are_those_of_the_cheaper_run_with_the_same_model():
    """The rival takes twice the seconds, so it is read at step 10, and at step 15 beside 30 seconds of Cooper's."""
    rows = [result("cooper", 0, 0.8, cpu_s=40), result("rival", 0, 0.9, cpu_s=80)]
    rows += [result("cooper", 1, 0.8, cpu_s=30), result("rival", 1, 0.9, cpu_s=40), result("cooper", 2, 0.8)]
    read = {
        (run["design"], run["planting"]): run["gold_end"]
        for run in cotraining.after_the_same_cpu_seconds(rows, "rival")
    }
    expected = {("cooper", 0): 0.8, ("rival", 0): 0.5, ("cooper", 1): 0.8, ("rival", 1): 0.7}
    assert read == pytest.approx(expected)
    rows[0]["cpu_s"] = None  # it was interrupted
    assert len(cotraining.after_the_same_cpu_seconds(rows, "rival")) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("table", "rival"), [("A", "iterated_5"), ("C", "varl")])
def test_the_other_tables_run_by_the_same_command(table, rival, tmp_path, monkeypatch):
    """Two steps of three methods in one cell, from the shipped models in the place of planted ones."""
    (of_cell,) = [found for found in plans(table, "pilot", tmp_path, monkeypatch, 1) if "opener" in found.holes]
    shutil.copytree(ASSETS, next(model for model in of_cell.models if not model.twin and model.seed == 0).folder)
    saved, methods = tmp_path / "saved.json", ("rule", "cooper", rival)
    for cell in of_cell.cells:
        if cell.design in methods:
            short = replace(cell, settings=merge(cell.settings, TINY))
            run_cell(short)
            cotraining.save(short, saved)
    rows = json.loads(saved.read_text(encoding="utf-8"))
    assert {row["design"] for row in rows} == {*methods}
    lines = cotraining.table(rows, PROTOCOL["tables"][table]["methods"], "pilot")
    assert sum(line.startswith("| `") and "`opener@heard_35`" in line for line in lines) == 3
    assert sum(line.startswith(f"| `{rival}` | 1 |") for line in lines) == 3, "of none has the frozen version run"


@pytest.mark.slow
def test_what_a_reward_model_accepts_is_measured_on_the_same_answers():
    """The shipped reward model accepts lists of answers, which is its hole, and knows right from wrong."""
    model = load_scorer(
        ScorerConfig(model=str(ASSETS / "reward_model"), device="cpu", max_input_tokens=MAX_INPUT_TOKENS)
    )
    first, again = (acceptance(read_hole({"kind": "answer_lists"}), model, 3) for _ in range(2))
    assert first == again
    shares = {name: share for name, share in first.items() if share is not None}
    assert shares["j"] == pytest.approx(shares["right"] - shares["wrong"])
    assert min(shares["j"], shares["hacks"]) > 0.5


def test_the_plan_names_designs_and_holes_that_exist():
    assert Path(ROOT / PROTOCOL["holes"]).is_file()
    assert {method.get("frozen") for table in PROTOCOL["tables"].values() for method in table["methods"].values()} <= {
        None,
        *(name for table in PROTOCOL["tables"].values() for name in table["methods"]),
    }


@pytest.mark.parametrize("table", ["A", "B"])
def test_the_page_has_the_table_of_the_saved_runs(table):
    methods, name = PROTOCOL["tables"][table]["methods"], f"benchmarks/results/cotraining-{table}-report.json"
    saved = json.loads((ROOT / name).read_text(encoding="utf-8"))
    page = (ROOT / "docs/co-training-measured.md").read_text(encoding="utf-8")
    begin, end = f"<!-- table of {name} -->\n", "\n<!-- end of that table -->"
    assert page.split(begin)[1].split(end)[0] == "\n".join(cotraining.table(saved, methods, "report"))
