"""The table of repairs in docs/attack.md is that of the saved results."""

import json

from benchmarks.public_rewards.repairs import table

from repository import ROOT

BEGIN, END = "<!-- table of benchmarks/results/repairs.json -->\n", "<!-- end of the table -->"


def test_the_table_is_computed_from_the_saved_results():
    rows = json.loads((ROOT / "benchmarks/results/repairs.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/attack.md").read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == table(rows)
    assert all((row["exit_code"] == 5) == row["refused"] for row in rows)
