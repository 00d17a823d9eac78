"""The pages about the alarm show what the committed results say."""

import re
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


def test_the_counts_in_words_are_those_of_the_results():
    rows = [re.findall(r"(\d+) of (\d+)", line) for line in printed()[-2].splitlines()[2:]]
    (found, hacked), (false, sound) = rows[0]
    judged = [[sum(int(row[cell][part]) for row in rows[1:-3]) for part in (0, 1)] for cell in (0, 1)]
    (silent_found, silent_hacked), (silent_false, silent_sound) = rows[-3]
    watch = (ROOT / "docs/watch.md").read_text(encoding="utf-8")
    assert f"the arena's {int(hacked) + int(sound)} runs" in watch
    assert f"finds {found} of {hacked} hacked runs, with {false} false alarms" in watch
    assert f"On the {judged[0][1] + judged[1][1]} runs of the arena's" in watch
    assert f"finds {judged[0][0]} of {judged[0][1]} hacked runs, with {judged[1][0]} false alarms" in watch
    assert f"In {int(silent_hacked) + int(silent_sound)} of these runs" in watch
    assert f"finds {silent_found} of {silent_hacked} hacked runs, with {silent_false} false alarms" in watch
    arena = (ROOT / "src/cooper_lab/arena/README.md").read_text(encoding="utf-8")
    assert f"{hacked} of the {int(hacked) + int(sound)} runs are hacked" in arena
    assert f"finds {found} of the {hacked} and goes off in {false} of the other {sound}" in arena
