"""The tables of the arena's results are those of the saved results."""

import json

from benchmarks.arena.arena_table import table
from benchmarks.arena.boundary import boundary_table, favoured_table, signs_table

from repository import ROOT

BEGIN, END = "<!-- table of benchmarks/results/arena.json -->\n", "<!-- end of the table -->\n"


def test_the_table_on_the_page_is_computed_from_the_saved_results():
    on_page = _between("packages/lab/src/cooper_lab/arena/README.md", BEGIN, END)
    results = json.loads((ROOT / "benchmarks/results/arena.json").read_text(encoding="utf-8"))
    assert on_page.startswith("| design |")
    assert on_page == "\n".join(table(results)) + "\n"


def test_the_tables_of_the_planted_judge_are_computed_from_the_saved_results():
    page = (ROOT / "packages/lab/src/cooper_lab/arena/README.md").read_text(encoding="utf-8")
    rows = json.loads((ROOT / "benchmarks/results/boundary.json").read_text(encoding="utf-8"))
    for table_of in (boundary_table, favoured_table, signs_table):
        assert "\n".join(table_of(rows)) in page


def _between(page: str, begin: str, end: str) -> str:
    _, rest = (ROOT / page).read_text(encoding="utf-8").split(begin)
    return rest.split(end)[0]
