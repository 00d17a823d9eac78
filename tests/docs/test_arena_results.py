"""The table of docs/what-stops-hacking.md is that of the saved results."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- table of benchmarks/results/arena.json -->\n", "<!-- end of the table -->\n"


def test_the_table_on_the_page_is_computed_from_the_saved_results():
    _, rest = (ROOT / "docs/what-stops-hacking.md").read_text(encoding="utf-8").split(BEGIN)
    on_page, _ = rest.split(END)
    command = [sys.executable, "benchmarks/arena_table.py", "benchmarks/results/arena.json"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert on_page.startswith("| design |")
    assert printed.startswith(on_page)
