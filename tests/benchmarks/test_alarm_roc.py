"""How well the alarm tells hacked runs from others, on synthetic cells with known answers."""

import pytest
from benchmarks.arena.alarm_roc import alarm_report, auc, best_threshold, roc


def cell(design, hole, seed, gold, best=None, strength=0.0, **more):
    best = gold if best is None else best
    fell = best - gold > 0.1
    return {
        "design": design,
        "hole": hole,
        "seed": seed,
        "drawdown": best - gold,
        "hacked_at": 20 if fell else None,
        "alarm": 10 if strength > 1 else None,
        "alarm_strength": {"sign": strength},
    } | more


def test_area_under_the_curve_counts_ties_half():
    scored = [(3.0, True), (1.0, True), (1.0, False), (0.0, False)]
    assert auc(scored) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert [(fpr, tpr) for _, fpr, tpr in roc(scored)] == [(0, 0), (0, 0.5), (0.5, 1), (1, 1)]
    assert auc([(1.0, True)]) is None


def test_the_best_threshold_separates_and_lies_between_what_was_seen():
    assert best_threshold([(0.2, False), (0.4, False), (2.4, True)]) == pytest.approx(1.4)
    assert best_threshold([(0.2, False)]) == 1.0


def test_the_alarm_is_tested_on_holes_its_threshold_was_not_chosen_on():
    cells = [cell("x", hole, 0, 0.2, best=0.8, strength=0.6) for hole in "ab"]
    cells += [cell("y", hole, 0, 0.9, strength=0.1) for hole in "ab"]
    cells += [cell("x", "c", 0, 0.2, best=0.8, strength=0.2), cell("y", "c", 0, 0.9, strength=2.0)]
    report = alarm_report(cells)
    by_hole = {row["hole"]: row for row in report["by_hole"]}
    assert by_hole["c"]["threshold"] == pytest.approx(0.35)  # from a and b alone
    assert (by_hole["c"]["hits"], by_hole["c"]["false_alarms"]) == (0, 1)
    assert report["missed"] == ["a/x/0", "b/x/0", "c/x/0"]
    assert report["false_alarms"] == ["c/y/0"]
    assert report["hacked"] == 3


def test_the_disagreement_of_ensembles_is_judged_over_the_runs_that_have_one():
    def run(seed, gold, least, most):
        return cell("e", "a", seed, gold, best=0.8, disagreement={"start": 0.1, "least": least, "most": most})

    cells = [run(0, 0.1, 0.01, 0.1), run(1, 0.2, 0.05, 0.1), run(2, 0.8, 0.08, 0.2), cell("x", "a", 0, 0.1, best=0.8)]
    found = alarm_report(cells)["disagreement"]
    assert (found["runs"], found["hacked"]) == (3, 2)
    assert (found["fall"], found["rise"]) == (1.0, 0.0)


def test_a_late_alarm_is_named():
    report = alarm_report([cell("x", "a", 0, 0.2, best=0.8, strength=2.0, alarm=30), cell("y", "a", 0, 0.9)])
    assert report["late"] == ["a/x/0"]
