"""`cooper eval` of a run's policy measures what the run measured of itself, and says how far the policy came."""

import json
import re

import numpy as np
import pytest

from cooper_audit.statistics import paired_difference
from cooper_base.cli.main import app
from cooper_rl.run.trainer import CooperTrainer
from cooper_rl.run_config import build_config
from slow_members import first_fast


def even(problem, completion_text):
    """Gold that an untrained policy meets about half of the time."""
    return len(completion_text) % 2 == 0


def lenient(problem, completion_text):
    """A rule that accepts about half of what an untrained policy writes."""
    return "correct" if len(completion_text) % 2 else "wrong"


def run_with(tiny_models, folder, **changes):
    """A run with a prompt, lengths and gold of its own, and the metrics of its last step."""
    problems = {"source": "arithmetic", "limit": 24, "prompt": {"template": "Please: {question}\n"}}
    problems |= {"gold": "cli.test_eval_of_runs:even"}
    settings = {
        "name": "run",
        "output_dir": str(folder),
        "kind": "rule",
        "threads": 1,
        "steps": 2,
        "problems_per_step": 4,
        "policy": {"model": str(tiny_models / "policy"), "learning_rate": 1e-2},
        "problems": problems,
        "test_problems": {**problems, "split": "test", "limit": 6},
        "evaluation": {"every": 2, "k": 4},
        "rollout": {"n": 4, "max_tokens": 7},
        "rule": {"kind": "exact"},
    }
    for name in ("problems", "test_problems"):
        settings[name] |= changes.pop(name, {})
    settings |= changes
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit()
        directory = trainer.directory
    return directory, json.loads((directory / "metrics.jsonl").read_text().splitlines()[-1])


@pytest.fixture(scope="module")
def finished(tiny_models, tmp_path_factory):
    return run_with(tiny_models, tmp_path_factory.mktemp("runs"))


def _eval(monkeypatch, capfd, *arguments):
    monkeypatch.setattr("sys.argv", ["cooper", "eval", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as end:
        app()
    captured = capfd.readouterr()
    return end.value.code or 0, captured.out + captured.err


def _gold(output, labels="gold"):
    found = re.search(rf"{labels} +│ avg@4 +│ (\S+)", output)
    assert found is not None, output
    return float(found.group(1))


@pytest.mark.parametrize("by", first_fast(["--run", "folder"]))
def test_a_runs_policy_has_the_accuracy_that_the_run_measured(monkeypatch, capfd, finished, by):
    run, last = finished
    arguments = ["--run", run] if by == "--run" else [run / "checkpoints" / "000002" / "policy"]
    code, output = _eval(monkeypatch, capfd, *arguments)
    assert code == 0, output
    assert last["test/gold_avg"] not in (0, 1)
    assert _gold(output) == pytest.approx(last["test/gold_avg"], abs=5e-5)
    assert "The policy reads:" in output  # the first prompt, as `cooper train` shows it
    assert "warning: --" not in output
    assert ("difference" in output) == (by == "--run")  # to the start


def test_a_partial_rule_that_the_problems_name_is_measured_as_the_run_measured_it(
    monkeypatch, capfd, tiny_models, tmp_path
):
    named = {"rule": "mine"}
    judged = {"kind": "partial", "only": {"family": ["share", "gain"]}, "rule": {"kind": f"{__name__}:lenient"}}
    run, last = run_with(tiny_models, tmp_path, problems=named, test_problems=named, rules={"mine": judged})
    code, output = _eval(monkeypatch, capfd, "--run", run)
    assert code == 0, output
    assert 0 < last["test/rule_avg"] < 1
    assert last["test/heard"] == pytest.approx(2 / 6)
    assert _gold(output, "rule") == pytest.approx(last["test/rule_avg"], abs=5e-5)
    assert _gold(output) == pytest.approx(last["test/gold_avg"], abs=5e-5)
    assert "the rule judges 2 of 6 problems" in output


def test_an_option_that_differs_from_the_run_is_named(monkeypatch, capfd, finished, tiny_models):
    code, output = _eval(monkeypatch, capfd, "--run", finished[0], "--step", 2, "--max-tokens", 5, "--rule", "maths")
    assert code == 0, output
    assert "warning: --max-tokens 5 differs from the run's 7" in output
    assert "warning: --rule" in output


def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(monkeypatch, capfd, finished):
    code, output = _eval(monkeypatch, capfd, "--run", finished[0], "--step", 9)
    assert code == 2
    assert "no checkpoint of step 9; there are 2 and `best`" in " ".join(output.split())


def test_the_paired_difference_is_narrower_than_unpaired_ones_and_covers():
    """Problems differ much in how hard they are; the second policy solves each a little more often."""
    random, covered, widths = np.random.default_rng(0), 0, []
    for _ in range(400):
        hard = random.uniform(0.0, 0.9, 60)
        first, second = (random.binomial(4, p) / 4 for p in (hard, hard + 0.1))
        found = paired_difference(first, second)
        covered += found.low <= 0.1 <= found.high
        widths.append(found.high - found.low)
    assert covered / 400 > 0.93
    assert np.mean(widths) < 0.16  # of two samples without pairs: 0.21
    none = paired_difference(np.ones(20), np.ones(20))
    assert none.low < none.mean == 0 < none.high
