"""The arena: designs and holes by file, what is run again and what is not, and a tiny one from end to end."""

import json
import multiprocessing
import re
import shutil
import time

import pytest
import yaml
from benchmarks.arena.league import designs as all_designs

from arena.tiny_arena import TINY
from cooper_audit.run.run_record import read_metrics
from cooper_base.config.user_functions import load_object
from cooper_base.errors import InputError
from cooper_base.files.durable import write_text
from cooper_lab.arena.arena import built_in_holes, choose, read_holes, write_summary
from cooper_lab.arena.cache import Planted
from cooper_lab.arena.cells import _with_defaults, check_settings, plan
from cooper_lab.arena.designs import Design, read_designs
from cooper_lab.arena.reports import write_hole_reports
from cooper_lab.arena.run_cells import check_finished, run_cell, run_cells
from cooper_lab.arena.silence import SILENCES
from cooper_lab.arithmetic.arms import ASSETS
from cooper_lab.arithmetic.start_samples import PER_PROBLEM, draw_start_samples, training_problems
from cooper_rl.reward.recipes import RECIPES
from cooper_rl.run_config import build_config
from runs.recorded_run import data_of

PARTS = {
    "cooper_repaired": "pairs/repaired",
    "cooper_peer": "pairs/peer_dropped",
    "cooper_par": "reward/shaped_mean",
    "static_par_start": "reward/shaped_mean",
    "static_drpo": "reward_model/mean",
    "static_min_form": "process/lowest_step",
    "static_delta": "process/lowest_step",
    "static_sum": "process/lowest_step",
    "ensemble_median": "ensemble/disagreement",
    "ensemble_soft_min": "ensemble/disagreement",
    "ensemble_uwo": "ensemble/disagreement",
}
"""Designs of one part each, and a metric that only a run with this part has, or one with a reward model."""


def _plan(tmp_path, designs=("rule", "static"), holes=("answer_lists",), seeds=(0,), overrides=None):
    """A plan whose cache has the shipped models in the place of planted ones."""
    every = all_designs()
    chosen = plan(
        {name: every[name] for name in designs},
        choose(built_in_holes(), holes, "hole"),
        seeds,
        tmp_path / "arena",
        tmp_path / "cache",
        overrides or TINY,
    )
    for planted in chosen.models:
        if not planted.has_models:
            shutil.copytree(ASSETS, planted.folder)
            measured = {"policy": {"hack_rate": 0.01, "gold_accuracy": 0.5}, "rule": {"accepts_hacks": 0.0}, "cpu_s": 1}
            reward_model = dict.fromkeys(("accepts_hacks", "accepts_right", "accepts_wrong", "accuracy"), 0.5)
            write_text(planted.folder / "manifest.json", json.dumps(measured | {"reward_model": reward_model}))
    return chosen


def test_every_design_is_a_run_and_so_is_every_hole(tmp_path):
    """Every design in one hole, and one in every hole: a hole gives its rule and models, a design the rest."""
    designs, holes = all_designs(), built_in_holes()
    assert {"rule", "static", "paper", "cooper", "hybrid"} <= designs.keys()
    in_one = plan(designs, choose(holes, ["opener"], "hole"), [0], tmp_path, tmp_path, {}).cells
    assert {cell.design for cell in in_one} == designs.keys()
    in_all = plan(choose(designs, ["cooper"], "design"), holes, [0], tmp_path, tmp_path, {}).cells
    assert {cell.hole for cell in in_all} == holes.keys()
    for cell in (*in_one, *in_all):
        config = build_config(cell.settings)
        assert config.policy.model.startswith(str(tmp_path))
        if (rule := holes[cell.hole].rule) is not None:
            assert getattr(config.rule, "kind", "") == rule["kind"]


def test_every_function_that_a_design_names_exists():
    def named(value):
        if isinstance(value, dict | list):
            return [name for inner in (value.values() if isinstance(value, dict) else value) for name in named(inner)]
        return [value] if isinstance(value, str) and re.fullmatch(r"[\w.]+:\w+", value) else []

    names = {name for design in all_designs().values() for name in named(dict(design.settings)) if "." in name}
    assert "cooper_lab.arithmetic.corruption:repair" in names
    for name in names:
        load_object(name)


def test_cheap_cells_come_first_and_held_out_holes_last(tmp_path):
    cells = plan(all_designs(), built_in_holes(), [0, 1], tmp_path, tmp_path, {}).cells
    tuned = [cell for cell in cells if not cell.held_out]
    assert cells[: len(tuned)] == tuned
    assert [cell.seed for cell in tuned] == sorted(cell.seed for cell in tuned)
    first_seed = [cell.cost for cell in tuned if cell.seed == 0]
    assert first_seed == sorted(first_seed)


def test_plantings_have_models_folders_and_fingerprints_of_their_own(tmp_path):
    every = all_designs()
    designs = {name: every[name] for name in ("static", "ensemble_min")}
    holes = choose(built_in_holes(), ["opener"], "hole")

    def cells(plantings):
        made = plan(designs, holes, [0, 1], tmp_path, tmp_path, {}, plantings).cells
        return {(cell.design, cell.planting, cell.seed): cell for cell in made}

    both = cells([0, 1])
    assert {key: cell for key, cell in both.items() if key[1] == 0} == cells([0])  # planting 0 stays what it was
    assert len({cell.directory for cell in both.values()}) == len({c.fingerprint for c in both.values()}) == 8
    again = both["static", 1, 0]
    assert again.directory == tmp_path / "opener/static/0-planting-1"
    assert again.settings["reward_model"] != both["static", 0, 0].settings["reward_model"]
    assert again.settings["policy"] != both["static", 0, 0].settings["policy"]
    members = [build_config(both["ensemble_min", planting, 0].settings).scorers for planting in (0, 1)]
    assert len({model.model for models in members for model in models}) == 6


def test_a_hole_under_a_silence_shares_its_models_and_has_a_rule_of_its_own(tmp_path):
    designs, holes = choose(all_designs(), ["rule"], "design"), choose(built_in_holes(), ["units"], "hole")
    chosen = choose(SILENCES, ["heard_100", "heard_35", "at_random"], "silence")
    made = plan(designs, holes, [0], tmp_path, tmp_path, {}, silences=chosen)
    assert [cell.hole for cell in made.cells] == ["units@heard_100", "units@heard_35", "units@at_random"]
    assert [cell.held_out for cell in made.cells] == [False, False, True]
    assert len(made.models) == 1
    rules = [cell.settings["rule"] for cell in made.cells]
    assert {rule["rule"]["kind"] for rule in rules} == {"cooper_lab.arena.holes.rule_holes:deaf_to_units"}
    assert {cell.settings["problems"]["gold"] for cell in made.cells} == {holes["units"].gold}
    check_settings(made.cells)


def test_a_fingerprint_has_the_defaults_of_a_kind_in_it(tmp_path, monkeypatch):
    """`paper` says nothing but its kind; what the kind is decides the result."""

    def fingerprint():
        _with_defaults.cache_clear()
        (cell,) = _plan(tmp_path, designs=("paper",)).cells
        return cell.fingerprint

    before = fingerprint()
    assert fingerprint() == before
    monkeypatch.setitem(RECIPES["paper"]["cooptimization"], "pairs_per_problem", 2)
    assert fingerprint() != before


def test_much_has_run_before_everything_is_planted(tmp_path):
    every = all_designs()
    designs = {name: every[name] for name in ("ensemble_min", "static", "static_head")}
    holes = choose(built_in_holes(), ["opener", "question_copy"], "hole")
    made = plan(designs, holes, [0], tmp_path, tmp_path, {}, [0, 1])
    waves = [({cell.design for cell in wave.cells}, len(wave.models)) for wave in made.waves]
    assert waves == 4 * [({"static"}, 1), ({"ensemble_min", "static_head"}, 4)]
    assert [cell.held_out for wave in made.waves for cell in wave.cells] == 6 * [False] + 6 * [True]
    assert sum(len(wave.cells) for wave in made.waves) == len(made.cells)


def test_a_recipe_that_changes_is_planted_anew(tmp_path):
    hole = built_in_holes()["opener"]
    stronger = hole.model_copy(update={"updates": hole.updates + 1})
    keys = {Planted(hole, 0, tmp_path).key, Planted(hole, 1, tmp_path).key, Planted(stronger, 0, tmp_path).key}
    assert len(keys) == 3
    assert Planted(hole, 0, tmp_path).key == Planted(hole, 0, tmp_path / "elsewhere").key


def test_designs_and_holes_of_the_users_own_enter_by_a_file(tmp_path):
    (tmp_path / "designs.yaml").write_text(
        yaml.safe_dump(
            {"clipped": {"about": "x", "settings": {"kind": "static", "shaping": [{"kind": "clip", "high": 0.9}]}}}
        )
    )
    (tmp_path / "holes.yaml").write_text(
        yaml.safe_dump(
            {"strong": {"kind": "opener", "share": 0.9}, "mine": {"kind": "cooper_lab.arena.holes.rule_holes:Both"}}
        )
    )
    assert read_designs(tmp_path / "designs.yaml")["clipped"].settings["kind"] == "static"
    holes = read_holes(tmp_path / "holes.yaml")
    assert holes["strong"].share == 0.9
    assert holes["mine"].where == "both"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine: {settings: {kind: statik}}", "design mine"),
        ("mine: {settings: {kind: static, shaping: [{kind: no_such}]}}", "no shaping of kind 'no_such'"),
        ("mine: {about: nothing else}", "settings"),
        ("mine: 3", "expected a mapping"),
    ],
)
def test_a_design_that_no_run_could_have_is_refused(tmp_path, text, message):
    (tmp_path / "designs.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_designs(tmp_path / "designs.yaml")


def test_a_name_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(InputError, match="no hole 'openers'; there are answer_lists"):
        choose(built_in_holes(), ["openers"], "hole")


def test_a_design_is_left_out_of_a_hole_in_which_it_cannot_run(tmp_path):
    every, holes = all_designs(), built_in_holes()
    designs = {name: every[name] for name in ("static", "static_delta", "static_head")}
    fitting = {"claimed_result": {"static", "static_head"}, "none": {"static", "static_delta"}, "opener": {*designs}}
    made = plan(designs, {name: holes[name] for name in fitting}, [0], tmp_path, tmp_path / "c", {})
    found = {name: {cell.design for cell in made.cells if cell.hole == name} for name in fitting}
    assert found == fitting
    with pytest.raises(InputError, match="no design fits a hole"):
        plan({"delta": every["static_delta"]}, {"calls": holes["claimed_result"]}, [0], tmp_path, tmp_path / "c", {})


def test_members_of_an_ensemble_are_planted_with_their_own_seeds(tmp_path):
    design = Design(
        settings={
            "kind": "static",
            "rewards": [{"kind": "shelf.ensemble:Ensemble", "others": [{"model": "$reward_model_2"}]}],
        }
    )
    made = plan({"two": design}, choose(built_in_holes(), ["opener"], "hole"), [0], tmp_path, tmp_path / "c", {})
    assert [planted.seed for planted in made.models] == [0, 2]
    second = made.cells[0].settings["rewards"][0]["others"][0]["model"]
    assert second == str(made.models[1].folder / "reward_model")


def test_no_two_members_of_an_ensemble_are_one_model(tmp_path):
    design = all_designs()["ensemble_mean"]
    for name, hole in built_in_holes().items():
        made = plan({"mean": design}, {name: hole}, [0], tmp_path, tmp_path / "c", {})
        others = [planted.hole.updates for planted in made.models if planted.seed != 0]
        assert len(others) == 2
        assert min(others) > 0, f"{name}: members that learn nothing are the shipped model"


@pytest.mark.slow
def test_two_designs_in_one_hole_run_to_a_table_and_a_page(tmp_path):
    chosen, seen = _plan(tmp_path), []
    check_finished(chosen.cells)
    run_cells(chosen, 1, lambda steps, finished: seen.append((steps, finished)))
    summary = write_summary(chosen)
    assert summary["cells"] == 2
    assert summary["missing"] == 0
    assert {row["design"] for row in summary["ranking"]["designs"]} == {"rule", "static"}
    assert seen[-1] == (4, 2)
    results = [json.loads(line) for line in (tmp_path / "arena" / "cells.jsonl").read_text().splitlines()]
    assert all(result["steps"] == 2 and result["cpu_s"] > 0 for result in results)
    assert all(not (cell.directory / "checkpoints").exists() for cell in chosen.cells)
    page = (tmp_path / "arena" / "arena.html").read_text()
    assert "answer_lists" in page
    assert "static" in page
    assert "<a " not in page, "no report has been written"

    assert write_hole_reports(chosen.cells) == [tmp_path / "arena" / "answer_lists" / "report.html"]
    report = data_of(tmp_path / "arena" / "answer_lists" / "report.html")
    assert [run["label"] for run in report["runs"]] == ["rule", "static"]
    assert len(set(report["colours"])) == 2
    write_summary(chosen)
    linked = set(re.findall('<a href="([^"]+)"', (tmp_path / "arena" / "arena.html").read_text()))
    assert linked == {"answer_lists/report.html"}


@pytest.mark.slow
def test_finished_cells_stay_as_they_are_and_a_killed_one_goes_on_from_its_checkpoint(tmp_path):
    chosen = _plan(tmp_path, overrides=TINY | {"steps": 4})
    finished, killed = chosen.cells
    run_cell(finished)
    before = finished.result_path.read_bytes(), (finished.directory / "metrics.jsonl").stat().st_mtime_ns

    process = multiprocessing.get_context("spawn").Process(target=run_cell, args=(killed,))
    process.start()
    while not (killed.directory / "checkpoints" / "000001").exists():
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()
    assert not killed.result_path.exists()

    run_cells(chosen, 1, lambda steps, finished: None)
    assert (finished.result_path.read_bytes(), (finished.directory / "metrics.jsonl").stat().st_mtime_ns) == before
    result = json.loads(killed.result_path.read_text())
    assert result["cpu_s"] is None  # it went on: what the killed process spent is not known
    assert [row["step"] for row in read_metrics(killed.directory)] == [0, 1, 2, 3, 4]
    assert [step for step, _ in result["gold_curve"]] == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_a_cell_finished_with_other_settings_is_neither_kept_nor_overwritten_silently(tmp_path):
    chosen = _plan(tmp_path, designs=("rule",))
    run_cell(chosen.cells[0])
    (row,) = write_summary(chosen)["standings"]
    assert (row["design"], row["runs"]) == ("rule", 1)
    with pytest.raises(InputError, match="finished with other settings"):
        check_finished(_plan(tmp_path, designs=("rule",), overrides=TINY | {"steps": 3}).cells)


def test_every_part_that_needs_no_server_is_planned_with_its_models_and_samples(tmp_path):
    every = all_designs()
    designs = {name: every[name] for name in PARTS}
    made = plan(designs, choose(built_in_holes(), ["opener"], "hole"), [0], tmp_path / "arena", tmp_path / "cache", {})
    configs = {cell.design: build_config(cell.settings) for cell in made.cells}
    assert configs.keys() == PARTS.keys()
    own, *others = made.models
    assert own.start_samples
    assert [planted.seed for planted in others] == [1, 2]
    references = made.cells[[cell.design for cell in made.cells].index("static_par_start")].settings["shaping"][0]
    assert references["references"]["file"] == str(own.folder / "start.jsonl")
    assert configs["cooper_peer"].scorers[1].model == str(others[0].folder / "reward_model")


@pytest.mark.slow
@pytest.mark.parametrize(("design", "metric"), PARTS.items())
def test_a_part_that_needs_no_server_runs_two_steps(tmp_path, design, metric):
    larger = {"problems_per_step": 4, "rollout": {"n": 4, "max_tokens": 32}, "problems": {"limit": 40}}
    chosen = _plan(tmp_path, designs=(design,), overrides=TINY | larger)
    for planted in chosen.models:
        if planted.start_samples:
            draw_start_samples(planted.folder, training_problems()[:40])
            assert len((planted.folder / "start.jsonl").read_text().splitlines()) == 40 * PER_PROBLEM
    (cell,) = chosen.cells
    run_cell(cell)
    rows = read_metrics(cell.directory)
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert metric in rows[1]
