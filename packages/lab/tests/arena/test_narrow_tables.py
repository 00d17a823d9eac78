"""The arena's tables show their figures whole in a terminal of 80 columns."""

import pytest
from rich.console import Console

from cooper_lab.cli import arena

LONG = "reward_model_ensemble_mean"


@pytest.fixture
def console(monkeypatch) -> Console:
    narrow = Console(width=80, record=True)
    monkeypatch.setattr(arena, "console", narrow)
    return narrow


def test_a_holes_table_and_the_ranking_keep_every_figure(console):
    means = {
        "gold_end": 0.912,
        "gold_best": 0.934,
        "drawdown": 0.022,
        "reward_end": 0.956,
        "kl_end": 12.34,
        "cpu_s": 134,
    }
    row = {name: {"mean": value} for name, value in means.items()}
    least = {"family": "number_word", "gold": 0.021, "low": 0.0, "high": 0.18}
    row |= {"least_family": least, "design": LONG, "runs": 3, "half_lost": [12, 15, 18], "alarm": [3, 4, 5]}
    console.print(arena._table_of("hole", [row]))
    ranked = {"design": LONG, "gold_end": 0.9123, "low": 0.81, "high": 0.95, "worst": 0.57, "hacked": 0.25}
    ranked |= {"least_family": least | {"hole": "a"}}
    pair = {"better": LONG, "worse": "rule_then_model", "significant": True}
    ranking = {"holes": ["a", "b"], "blocks": [0], "designs": [ranked | {"hacked_holes": ["a"]}], "pairs": [pair]}
    arena._print_ranking("ranking", ranking)
    over = {"over_rule": {"mean": -0.0433}, "over_static": None}
    standing = {"design": LONG, "models": 11, "runs": 12, "gold_end": 0.8123, "hacked": 3, "cpu_s": 41.4} | over
    absent = dict.fromkeys(("gold_end", "over_rule", "over_static", "least_family", "cpu_s"))
    arena._print_standings(
        [standing | {"least_family": least}, absent | {"design": "late", "models": 0, "runs": 0, "hacked": 0}]
    )
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    for figure in (
        "0.91",
        "0.93",
        "0.02",
        "0.96",
        "12.34",
        "134",
        "0.912",
        "0.81 to 0.95",
        "0.57",
        "1 of 2",
        "25%",
        "0.00 to",
        "3 of 12",
        "-0.043",
        "not run",
    ):
        assert figure in text
    assert "…" not in text
