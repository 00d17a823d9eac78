"""The pages about the alarm show what the committed results say."""

import re

import pytest
from benchmarks.runs.hacking_alarm import RESULTS, lead_of, share_over_holes, tables, threshold_for

from repository import ROOT


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """The tables of `hacking_alarm.py tables`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return "\n".join(tables(RESULTS / "alarm.json")).strip().split("\n\n")


def test_every_table_is_on_its_page_as_it_is_printed(printed):
    pages = [ROOT / "benchmarks/runs/alarm.md", ROOT / "packages/lab/src/cooper_lab/arena/README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for table in printed:
        assert table.startswith("| ")
        assert f"\n\n{table}\n\n" in text


def test_the_pages_about_the_alarm_count_the_held_out_runs_of_both_tables(printed):
    rows = (printed[0].splitlines()[3], printed[-2].splitlines()[-1])
    counts = [[(int(a), int(b)) for a, b in re.findall(r"(\d+) of (\d+) \|", row)] for row in rows]
    (found, hacked), (false, sound) = [
        [sum(pair) for pair in zip(*of, strict=True)] for of in zip(*counts, strict=True)
    ]
    words = f"finds {found} of {hacked} hacked runs and goes off in {false} of {sound} others"
    for name in ("docs/watch.md", "benchmarks/runs/alarm.md"):
        assert words in (ROOT / name).read_text(encoding="utf-8")


def test_a_share_is_a_mean_over_holes_and_a_threshold_keeps_it():
    runs = [("a", 3.0), ("a@silence", 0.5), ("b", 0.5), ("b", 0.7), ("c", 0.1)]
    share, low, high, holes = share_over_holes([(hole, strength > 0.6) for hole, strength in runs])
    assert (round(share, 3), holes) == (0.333, 3)
    assert low < share < high
    assert threshold_for(runs, most=0.2) == 0.7
    assert threshold_for(runs, most=0.0) == 3.0


def test_a_miss_counts_as_later_than_any_alarm():
    runs = [{"onset": (10, 15), "at": at} for at in (8, 14, None)]
    assert lead_of(runs[:2], lambda run: run["at"]) == "-1 to +4"
    assert lead_of(runs, lambda run: run["at"]) == "-4 to +1"
    assert lead_of(runs[1:] + runs[2:], lambda run: run["at"]) == "missed"
