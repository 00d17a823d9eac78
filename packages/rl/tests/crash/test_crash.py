"""A run that is killed again and again comes out like the run that was not killed."""

import pytest

from cooper_rl import read_metrics
from crash.comparison import differences
from crash.trial import CrashTest


@pytest.mark.slow
def test_a_killed_run_comes_out_equal_and_a_difference_would_be_seen(tmp_path):
    result = CrashTest(tmp_path, seed=1).run(kills=2)
    assert (result.kills, result.equal, result.failures) == (2, 2, [])

    reference, run = (tmp_path / name / "cooper" for name in ("reference", "run"))
    weights = next((run / "checkpoints").glob("*/policy/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
    metrics = run / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"rule/wrong": ', '"rule/wrong": 1', 1))
    rollouts = run / "rollouts" / "000002.jsonl"
    text = rollouts.read_text().replace('"verify_s": ', '"verify_s": 7')  # a measurement, which may differ
    rollouts.write_text(text.replace('"length"', '"stop"', 1))
    (run / "pairs" / "000001.jsonl").unlink()
    wrong = read_metrics(reference)[1]["rule/wrong"]
    assert differences(reference, run) == [
        "pairs/000001.jsonl is in one run only",
        f"{weights.relative_to(run)} differs",
        "rollouts/000002.jsonl/0/completions/0/stop_reason: 'length' and 'stop'",
        f"metrics.jsonl/1/rule/wrong: {wrong} and {float(f'1{wrong}')}",
    ]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])  # two, so that two cores share them
def test_a_hundred_kills_in_every_part_of_a_run(tmp_path, seed):
    result = CrashTest(tmp_path, seed).run(kills=50)
    assert "\n".join(result.failures) == ""
    assert (result.kills, result.equal) == (50, 50)
    assert {"load", "checkpoint"} & result.phases.keys()  # where a kill falls is chance; a short part may be spared
    assert len(result.phases) >= 5
