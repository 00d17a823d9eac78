"""The figures of the first page, and of the pages that repeat them, are those of the tables and runs behind them."""

import json
import re
from statistics import mean

import pytest

from cooper_audit.run.finding import ACCUSED
from repository import ROOT

RULE, DUMP = "packages/lab/src/cooper_lab/benchmarks/README.md", "benchmarks/runs/audit.md"
REPAIR, HEADLINE = "docs/attack-measured.md", "headline"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def row(name: str, *begins: str) -> list[str]:
    """The cells of the one row of a page's tables that begins with these, without them."""
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in page(name).splitlines() if line[:1] == "|"
    ]
    (cells,) = (cells for cells in rows if cells[: len(begins)] == list(begins))
    return cells[len(begins) :]


def measured(verifier: str, labels: str = "all", rows: str = "14,978") -> tuple[str, str]:
    """Precision and recall of a verifier, in three places."""
    precision, recall, _ = row(RULE, labels, verifier, rows)
    return f"{float(precision):.3f}", f"{float(recall):.3f}"


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("README.md", "precision {0} and recall {1} on [14,978 completions of real models]"),
        ("docs/verifyrm.md", "precision of {0} and a recall of {1}"),
        ("docs/verifyrm.md", "Raw Math-Verify has {2} and {3}"),
        ("docs/verifyrm.md", "it is ahead (recall {5} against {4})"),
    ],
)
def test_the_rule_is_as_precise_as_its_table_says(name: str, phrase: str):
    by_rule = [row(RULE, "a rule", verifier, "13,430")[1] for verifier in ("Cooper", "raw")]
    assert phrase.format(*measured("Cooper"), *measured("raw"), *by_rule) in page(name)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("README.md", "without them recall is {}"),
        ("docs/verifyrm.md", "without their questions {}"),
    ],
)
def test_recall_without_the_questions_is_beside_it(name: str, phrase: str):
    (recall,) = re.findall(r"`unparsed`: recall (0\.\d+) over all rows", page(RULE))
    assert phrase.format(recall) in page(name)


def test_the_price_of_a_large_dump_is_that_of_its_table():
    assert "2 GB of rollouts take [{} of CPU time and {}]".format(*row(DUMP, "whole")) in page("README.md")
    assert "A generated dump of 2.0 GB" in page(DUMP)


def test_what_a_repair_closes_stands_beside_what_it_opens():
    lists, _ = row(REPAIR, "`answer_list`", "in the repair")
    before, forged = row(REPAIR, "`forged_tags`", "kept apart")
    assert before == "0.0 %"
    shares = [f"{float(share.split()[0]):.0f} %" for share in (lists, forged)]
    assert "paid in {} of the problems, and opened forged tags in {}".format(*shares) in page("README.md")


def test_gold_of_the_headline_is_that_of_the_saved_runs():
    runs = json.loads((ROOT / "benchmarks" / "results" / f"{HEADLINE}.json").read_text(encoding="utf-8"))

    def gold(arm: str, step: int) -> float:
        return mean(run["gold"]["all"][step] for run in runs if run["arm"] == arm)

    rule = max(("rule", "rule_kl"), key=lambda arm: gold(arm, -1))
    golds = gold("cooper", 0), gold("static", -1), gold(rule, -1), gold("cooper", -1)
    phrase = (
        "gold starts at {:.2f} and ends at {:.2f} with a fixed reward model, at {:.2f} with the better of two rules"
    )
    assert f"{phrase} and at {{:.2f}} with Cooper".format(*golds) in page("README.md")


def test_what_the_rule_gains_at_equal_seconds_is_that_of_its_page():
    (gain,) = re.findall(r"and below it after the same CPU seconds\*\*, by (0\.\d+)", page("docs/co-training.md"))
    assert f"{gain} below it after the same CPU seconds" in page("README.md")


def test_a_head_that_does_not_learn_is_hacked_as_often_as_the_page_says():
    runs = json.loads(page("benchmarks/results/cotraining-A-report.json"))
    hacked = {
        arm: [run["verdict"] in ACCUSED for run in runs if run["design"] == f"rule_then_{arm}"]
        for arm in ("static", "implicit")
    }
    said = f"is hacked in {sum(hacked['static'])} of {len(hacked['static'])} runs if that model has a head"
    assert said in page("README.md")
    assert not any(hacked["implicit"])
