"""Several sets of test problems in one run."""

import pytest

from cooper_audit.run.run_record import read_lines, read_metrics, read_run
from cooper_rl import CooperTrainer, InputError, build_config


def test_further_test_problems_are_measured_beside_the_first(settings, tmp_path):
    others = {**settings["test_problems"], "limit": 3}
    del others["gold"]  # taken from test_problems
    config = build_config({**settings, "kind": "rule", "steps": 2, "more_test_problems": {"others": others}})
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit()
    rows = read_metrics(tmp_path / "run")
    measured = {step: {name for name in row if name.startswith("test/")} for step, row in enumerate(rows)}
    first = {"test/rule_avg", "test/gold_avg", "test/cut_off_rate"}
    assert (
        measured[0]
        == measured[2]
        == first | {f"test/others/{name}" for name in ("rule_avg", "gold_avg", "cut_off_rate")}
    )
    assert not measured[1]
    evaluations = read_lines(tmp_path / "run" / "evaluations.jsonl")
    assert [(row["step"], row["set"]) for row in evaluations] == [(0, ""), (0, "others"), (2, ""), (2, "others")]
    for row in evaluations:
        name = f"test/{row['set']}/" if row["set"] else "test/"
        assert sum(row["gold"]) / len(row["gold"]) == pytest.approx(rows[row["step"]][f"{name}gold_avg"], abs=1e-4)
    assert len(evaluations[1]["rule"]) == 3
    rise = read_run(tmp_path / "run").rise("test/gold_avg")
    assert rise is not None
    assert rise.mean == pytest.approx(rows[2]["test/gold_avg"] - rows[0]["test/gold_avg"], abs=1e-4)


def test_a_set_of_test_problems_is_read_before_the_run(settings):
    config = build_config({**settings, "kind": "rule", "more_test_problems": {"others": {"source": "nowhere.jsonl"}}})
    with pytest.raises(InputError, match=r"nowhere\.jsonl: no such file"):
        CooperTrainer.from_config(config)
