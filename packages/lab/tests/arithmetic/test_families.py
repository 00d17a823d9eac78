"""The demo by family of questions: the page's table is that of the saved runs, and the default loses what it says."""

from pathlib import Path
from statistics import mean

import pytest
from benchmarks.arena import cells_by_family
from benchmarks.arithmetic.families import RESULTS, read_results, share, table_of, thirds

from repository import ROOT

PAGE = Path("packages/lab/src/cooper_lab/arithmetic/README.md")
BEGIN, END = "<!-- table of benchmarks/results/families.jsonl -->\n", "\n<!-- end of the table -->"
ROWS = read_results(ROOT / RESULTS)
COOPER = [row for row in ROWS if (row["label"], row["arm"]) == ("", "cooper") and row["steps"] >= 90]


def test_the_table_on_the_page_is_that_of_the_saved_runs():
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0] == "\n".join(table_of(ROWS))


@pytest.mark.parametrize("row", COOPER, ids=lambda row: f"seed-{row['seed']}")
def test_cooper_keeps_the_family_that_it_lost(row):
    for steps in {90, row["steps"]}:
        counts, middle = row["families"]["thousands"], steps // 2
        assert share(counts, steps - 9, steps) >= 0.85 * share(counts, middle - 4, middle + 5)


def test_cooper_ends_below_its_start_in_no_family():
    for row in COOPER:
        for counts in row["families"].values():
            assert share(counts, row["steps"] - 9, row["steps"]) > share(counts, 1, 10)


EARLIER = "earlier reading of answers"
"""The version of the rule's runs of more than 40 steps on seeds 0 to 4."""


def mean_gold(arm: str, label: str, step: str) -> str:
    golds = [row["test"][step] for row in ROWS if (row["arm"], row["label"]) == (arm, label) and row["seed"] < 5]
    assert len(golds) == 5
    return f"{mean(golds):.3f}"


def test_the_means_on_the_page_are_those_of_the_saved_runs():
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    ours = [mean_gold("cooper", "", step) for step in ("40", "90", "120")]
    rule = [mean_gold("rule", label, step) for label, step in (("", "40"), (EARLIER, "90"), (EARLIER, "120"))]
    assert "| Cooper | {} | {} | {} |".format(*ours) in page
    assert "| rule | {} | {} | {} |".format(*rule) in page


def test_a_share_is_of_the_completions_of_its_steps():
    counts = [[8, 4], [0, 0], [8, 8], [16, 0]]
    assert (share(counts, 1, 2), share(counts, 1, 3), share(counts, 3, 4)) == (0.5, 0.75, 1 / 3)


def test_the_silent_hole_by_family_is_as_on_the_page_and_cooper_keeps_the_family():
    rows = read_results(ROOT / "benchmarks/results/cells_by_family.jsonl")
    page = (ROOT / "packages/lab/src/cooper_lab/arena/README.md").read_text(encoding="utf-8")
    begin, end = "<!-- table of benchmarks/results/cells_by_family.jsonl -->\n", "\n<!-- end of that table -->"
    assert page.split(begin)[1].split(end)[0] == "\n".join(cells_by_family.table_of(rows))
    for row in (row for row in rows if row["design"] == "cooper"):
        _, middle, last = thirds(row["families"]["thousands"], row["steps"])
        assert last >= 0.85 * middle
