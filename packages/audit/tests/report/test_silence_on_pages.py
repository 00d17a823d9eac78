"""Without gold, what a page shows about answers on which the rule is silent: neither right nor wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cooper_audit.report.report import write_report
from cooper_audit.report.terminal import screen
from cooper_audit.run.run_record import is_right, read_run
from cooper_audit.run.verdict import verdict_of
from cooper_audit.statistics import wilson_interval
from cooper_rl import InputError, load_run
from runs.browser import BROWSER, DRIVER, MISSING, browser, open_page
from runs.recorded_run import completion, data_of, group, sample_of, write_lines, write_run

HEARD = group("heard", completion("right", 0.8, verdict="correct"), completion("wrong", 0.7), completion("poor", 0.2))
SILENT = group(
    "silent", completion("likely right", 0.95, verdict="silent"), completion("silence", 0.1, verdict="silent")
)


def run_of(folder: Path, groups: Callable[[int], list[Any]] = lambda step: [HEARD, SILENT]) -> Path:
    rows = [{"step": step, "reward/mean": 0.5, "rule/accuracy": 0.5, "rule/heard": 0.6} for step in range(1, 6)]
    return write_run(folder / "run", rows, groups)


@pytest.mark.parametrize(
    ("verdict", "gold", "right"),
    [
        *[("correct", None, True), ("wrong", None, False), ("unparsed", None, False)],
        *[("silent", None, None), ("timeout", None, None)],
        *[("silent", True, True), ("silent", False, False), ("correct", False, False), ("timeout", True, True)],
    ],
)
def test_gold_or_else_the_rule_says_what_is_right_and_may_say_nothing(verdict, gold, right):
    assert is_right(completion("text", 0.5, gold, verdict)) is right


def test_the_gallery_and_its_bars_are_of_what_the_rule_judges(tmp_path):
    run = run_of(tmp_path)
    sample = sample_of(read_run(run))
    assert {item["text"] for item in sample.gallery} == {"wrong"}, "the poor one was not paid"
    assert sample.fooled[0] == (1, 1 / 3, 1, 2)
    assert sample.means == {"rule": [1 / 3] * 5}
    assert (sample.judged, sample.completions) == (15, 25)
    assert data_of(write_report(run))["runs"][0]["judged"] == 0.6


def test_half_of_the_gallery_is_what_the_rule_rejects_where_gold_knows_more(tmp_path):
    """Four silent hacks of higher scores do not hide the two that the rule sees."""
    said = [completion(f"silent {n}", 0.9, gold=False, verdict="silent") for n in range(4)]
    said += [completion(f"wrong {n}", 0.6, gold=False) for n in range(2)]
    sample = sample_of(read_run(run_of(tmp_path, lambda step: [group("p", *said)])))
    texts = [item["text"] for item in sample.gallery if item["step"] == 1]
    assert sum(text.startswith("wrong") for text in texts) == 2


def test_load_run_shows_and_counts_what_is_judged(tmp_path):
    run = load_run(run_of(tmp_path))
    assert set(run.gallery()["text"]) == {"wrong", "poor"}
    shares, counts = run.plot_calibration().axes
    assert [bar.get_height() for bar in counts.patches if bar.get_height()] == [5, 5, 5]  # pyright: ignore[reportAttributeAccessIssue]
    assert counts.get_title() == "completions that were judged, 60% of all"
    assert shares.lines[1].get_xydata() == pytest.approx(np.array([[0.25, 0], [0.75, 0], [0.85, 1]]))


def test_a_run_in_which_the_rule_judges_nothing_has_no_calibration(tmp_path):
    with pytest.raises(InputError, match="no completion was judged by gold or the rule in these steps"):
        load_run(run_of(tmp_path, lambda step: [SILENT])).plot_calibration()


def test_watch_marks_no_silent_answer_as_wrong(tmp_path):
    console = Console(width=120, record=True, color_system="truecolor", force_terminal=True, file=None)
    with console.capture() as captured:
        console.print(
            screen(read_run(run_of(tmp_path, lambda step: [SILENT, group("p", completion("bad", 0.7))])), 120)
        )
    rows = {score: line for line in captured.get().splitlines() for score in ("0.950", "0.700") if score in line}
    assert "\x1b[1;31m" in rows["0.700"]
    assert "\x1b[1;31m" not in rows["0.950"]


def test_the_interval_and_the_margin_are_of_the_problems_that_the_rule_judges(tmp_path):
    rows = [{"step": s, "reward/mean": 0.5 + 0.01 * s, "test/rule_avg": 0.8 - 0.04 * s} for s in range(9)]
    for name, more in (("all", {}), ("some", {"test/heard": 0.24})):
        folder = write_run(tmp_path / name, [row | more for row in rows], settings={"steps": 8})
        write_lines(folder / "sessions.jsonl", [{"after_step": 0, "command": ["cooper"], "test_problems": 100}])
        figures = data_of(write_report(folder))["runs"][0]["figures"]
        problems = 24 if more else 100
        assert (figures["low"], figures["high"]) == pytest.approx(wilson_interval(0.48, problems), abs=1e-4)
        verdict = verdict_of(read_run(folder), 100)
        assert verdict.state == ("nothing learned" if more else "hacked")
        assert ("The rule judges 24 % of these problems" in verdict.sentence) == bool(more)


@pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)
def test_the_page_calls_a_silent_answer_neither_right_nor_wrong(tmp_path):
    page = write_report(run_of(tmp_path))
    with browser(tmp_path / "profile") as driver:
        open_page(driver, page)
        script = """
            const said = ["silent", "timeout", "correct", "wrong", "unparsed"].map((verdict) => ({ verdict }));
            return [...said, { verdict: "silent", gold: true }].map(isRight);
        """
        assert driver.execute_script(script) == [None, None, True, False, False, True]
        assert "60 % of the completions are judged" in driver.find_element("id", "gallery-rule").text
        driver.execute_script("document.getElementById('rollout-problem').value = '1'; listGroup(report.runs[0]);")
        cards = driver.find_elements("css selector", "#rollout-group article")
        assert {"unknown" in card.get_attribute("class") for card in cards} == {True}
        for choice, texts in (("right", {"right"}), ("wrong", {"wrong", "poor"}), ("disputed", set())):
            found = driver.execute_script(
                f"document.getElementById('find-verdict').value = '{choice}'; const matches = criterion();"
                "const found = (group) => group.completions.filter((one) => matches(group, one));"
                "return report.runs[0].steps[1].flatMap(found).map((one) => one.text);"
            )
            assert set(found) == texts
