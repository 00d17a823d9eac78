"""The monitor: a run measures its reward model on rows and attacks that it does not learn from."""

import json

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_base.errors import InputError
from cooper_rl import CooperTrainer, build_config


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "held_out.jsonl"
    rows = [
        {"question": f"{i}+1=", "reference_answer": str(i + 1), "completion": str(i + 1 + i % 2), "label": 1 - i % 2}
        for i in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_metrics_appear_at_the_start_every_k_steps_and_at_the_end(settings, labelled, tmp_path):
    monitor = {"labelled": str(labelled), "every": 2, "attacked_problems": 3}
    config = build_config({**settings, "steps": 3, "monitor": monitor, "evaluation": {"every": 0}})
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit()
    rows = read_metrics(tmp_path / "run")
    measured = {row["step"] for row in rows if "monitor/accuracy" in row}
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert measured == {0, 2, 3}
    assert {"monitor/attack_rate", "monitor/attack_empty", "monitor/bare_right_rate", "monitor/ece"} <= set(rows[0])
    assert rows[0]["monitor/loss"] != rows[3]["monitor/loss"]  # the reward model has learned


def test_measuring_changes_nothing_in_the_run(settings, labelled, tmp_path):
    plain = {**settings, "evaluation": {"every": 0}, "steps": 2}
    watched = {**plain, "name": "watched", "monitor": {"labelled": str(labelled), "every": 1}}
    found = []
    for values in (plain, watched):
        with CooperTrainer.from_config(build_config(values)) as trainer:
            trainer.fit()
        rows = [row for row in read_metrics(trainer.directory) if row["step"]]
        ignored = (*MEASURED, "monitor/")
        found.append([{k: v for k, v in row.items() if not k.startswith(ignored)} for row in rows])
    assert found[0] == found[1]


def test_rows_that_are_replayed_cannot_be_held_out(settings, labelled):
    cooptimization = {**settings["cooptimization"], "replay": {"labelled": str(labelled)}}
    with pytest.raises(InputError, match=r"monitor.labelled: 12 of 12 rows .*held_out.jsonl:1"):
        CooperTrainer.from_config(
            build_config({**settings, "cooptimization": cooptimization, "monitor": {"labelled": str(labelled)}})
        )


def test_a_rule_run_has_nothing_to_monitor(settings, labelled):
    with pytest.raises(InputError, match="kind: rule has none"):
        build_config({**settings, "kind": "rule", "monitor": {"labelled": str(labelled)}})
