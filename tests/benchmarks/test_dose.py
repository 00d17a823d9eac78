"""Gold at the end against the share of completions that the rule judges, of made-up cells."""

import pytest
from benchmarks.arena.dose import dose_of


def test_the_dose_is_gold_by_the_share_that_the_rule_judges():
    def result(silence, design, planting, heard, gold):
        ends = {"gold_end": gold, "gold_heard_end": gold, "gold_silent_end": None if heard == 1 else gold - 0.1}
        about = {"hole": f"h@{silence}", "design": design, "planting": planting, "seed": 0, "heard": heard}
        return about | ends | {"verdict": "healthy"}

    results = [
        result(silence, design, planting, heard, gold + 0.02 * planting)
        for silence, heard in (("some", 0.4), ("all", 1.0))
        for design, gold in (("rule", 0.5 + 0.3 * heard), ("cooper", 0.8))
        for planting in (0, 1)
    ]
    rows = dose_of(results)
    assert [(row["silence"], row["design"]) for row in rows] == [
        ("all", "rule"),
        ("all", "cooper"),
        ("some", "rule"),
        ("some", "cooper"),
    ]
    assert rows[3]["gold_end"] == pytest.approx(0.81)
    assert rows[3]["gold_silent_end"] == pytest.approx(0.71)
    assert rows[0]["gold_silent_end"] is None
    assert rows[3]["low"] < 0.81 < rows[3]["high"]
