"""The pages about the alarm show what the committed results say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed() -> list[str]:
    command = [sys.executable, "benchmarks/hacking_alarm.py", "tables"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip().split("\n\n")


def test_every_table_is_on_its_page_as_it_is_printed():
    pages = [ROOT / "benchmarks/alarm.md", ROOT / "src/cooper_lab/arena/README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for table in printed():
        assert table.startswith("| ")
        assert f"\n\n{table}\n\n" in text
