"""`python -m benchmarks.overopt` on run folders with planted curves."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.overopt.__main__ import overopt
from benchmarks.overopt.best_of_n import best_of_n_curve
from benchmarks.overopt.runs import read_overoptimisation

from cooper_base.errors import InputError

PROXY = np.array([[0.1, 0.9, 0.4, 0.2, 0.8, 0.3], [0.5, 0.6, 0.7, 0.1, 0.2, 0.3]])
TRUTH = np.array([[0.0, 0.0, 1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]])


def write_run(folder: Path, drop: str | None = None) -> Path:
    """A run whose completions are 10 tokens long, with gold 0.5 + d (0.4 - 0.2 ln d) and a proxy that only rises."""
    (folder / "rollouts").mkdir(parents=True)
    rows: list[dict[str, float]] = [{"step": 0, "test/gold_avg": 0.5}]
    for step, d in enumerate(np.linspace(0, 6, 25), start=1):
        gold = 0.5 + d * (0.4 - 0.2 * np.log(d or 1))
        rows.append(
            {"step": step, "policy/reference_kl": d * d / 10, "rollout/mean_length": 10.0, "gold/accuracy": gold}
            | {"reward/mean": 0.5, "reward_model/mean": 0.5 + 0.1 * d}
        )
    lines = [json.dumps({name: value for name, value in row.items() if name != drop}) for row in rows]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    shown = {"text": "", "verdict": "incorrect"}
    groups = [
        {
            "problem": "p",
            "question": "q",
            "completions": [
                {**shown, "reward": p, "reward_model": p, "gold": bool(g)} for p, g in zip(proxies, golds, strict=True)
            ],
        }
        for proxies, golds in zip(PROXY, TRUTH, strict=True)
    ]
    (folder / "rollouts" / "000001.jsonl").write_text("".join(json.dumps(group) + "\n" for group in groups))
    return folder


def test_the_planted_curve_and_its_peak_are_found_again(tmp_path):
    found = read_overoptimisation(write_run(tmp_path / "run"))
    assert found.proxy == "reward_model/mean"
    assert found.rl.distance[-1] == pytest.approx(6.0)
    gold, proxy = found.rl.gold_fit, found.rl.proxy_fit
    assert gold is not None
    assert (gold.start, gold.alpha, gold.beta, gold.peak) == pytest.approx((0.5, 0.4, 0.2, np.e))
    assert proxy is not None
    assert (proxy.alpha, proxy.beta) == pytest.approx((0.1, 0.0), abs=1e-9)


def test_best_of_n_comes_from_the_completions_of_the_first_step(tmp_path):
    curve = read_overoptimisation(write_run(tmp_path / "run")).best_of_n
    assert curve is not None
    assert curve.gold == pytest.approx(best_of_n_curve(PROXY, TRUTH)[:3])  # up to half of the 6 completions
    assert curve.gold[0] == pytest.approx(TRUTH.mean())
    assert curve.distance[0] == 0


@pytest.mark.parametrize("shaped", [True, False])
def test_best_of_n_by_the_reward_reads_it_before_shaping_as_the_metric_does(tmp_path, shaped):
    run = write_run(tmp_path / "run")
    path = run / "rollouts" / "000001.jsonl"
    groups = [json.loads(line) for line in path.read_text().splitlines()]
    for row in (row for group in groups for row in group["completions"]):
        before = row.pop("reward_model")
        row |= {"reward": -before, "unshaped": before} if shaped else {"reward": before}
    path.write_text("".join(json.dumps(group) + "\n" for group in groups))
    curve = read_overoptimisation(run, proxy="reward/mean").best_of_n
    assert curve is not None
    assert curve.gold == pytest.approx(best_of_n_curve(PROXY, TRUTH)[:3])


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("policy/reference_kl", "algorithm.kl.coefficient above 0"),
        ("gold/accuracy", "train with problems.gold"),
    ],
)
def test_a_run_without_kl_or_gold_is_refused_with_the_remedy(tmp_path, missing, words):
    with pytest.raises(InputError, match=words):
        read_overoptimisation(write_run(tmp_path / "run", missing))


def test_a_folder_without_a_run_and_an_unknown_proxy_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no step of a run"):
        read_overoptimisation(tmp_path)
    with pytest.raises(InputError, match=r"no judge/mean; .* reward/mean, reward_model/mean"):
        read_overoptimisation(write_run(tmp_path / "run"), proxy="judge/mean")


def test_the_script_compares_runs_in_one_picture(capfd, tmp_path):
    folders = [write_run(tmp_path / name) for name in ("a", "b")]
    overopt(folders, gold="gold/accuracy", out=tmp_path / "both")
    assert "2.72" in capfd.readouterr().out
    assert [run["run"] for run in json.loads((tmp_path / "both" / "overopt.json").read_text())] == ["a", "b"]
    assert (tmp_path / "both" / "overopt.svg").read_text().startswith("<svg")
