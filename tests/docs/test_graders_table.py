"""The table of graders on the first page of cooper-verify is that of the saved results."""

import json

from benchmarks.verdicts.graders import PEERS, RESULTS, table

from repository import ROOT

BEGIN, END = "<!-- table of benchmarks/results/graders.json -->\n", "\n<!-- end of the table -->"


def test_the_table_is_computed_from_the_saved_results():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = (ROOT / "packages/verify/README.md").read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == table(results)
    assert {*results["graders"], *results["not_run"]} == {*PEERS}
