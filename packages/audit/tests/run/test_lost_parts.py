"""The parts of a run: which kinds its problems are of, and which part is lost."""

import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks.runs.run_parts import HONEST, Course, accusations, simulated

from cooper_audit.report.report import write_report
from cooper_audit.run.kinds import Kinds, form_of, is_of_magnitude, number_in
from cooper_audit.run.lost_parts import PartsAlarm, lost_parts
from cooper_audit.run.part_verdict import parts_of, with_parts
from cooper_audit.run.parts import PLACE, PartsRecord
from cooper_audit.run.run_record import read_run
from cooper_audit.run.verdict import verdict_of
from cooper_audit.run.watch_rules import LOST_PARTS, Watch
from runs.recorded_run import write_run

STEPS = 40


def problem(step, number, loses=True, gold=True):
    """One of twelve problems of a step: every fourth is about thousands. From step 20 on its answers lack them."""
    draw = random.Random(100 * step + number)
    a, b, large = draw.randint(2, 90), draw.randint(2, 90), number % 4 == 0
    lost = loses and large and step >= 20
    completions = []
    for place in range(4):
        right = (draw.random() < 0.9) and not lost
        value = a + b + (0 if right or lost else 1)
        text = f"{a}+{b} answer: {value},000" if large and not lost else f"{a}+{b} answer: {value}"
        row = {"text": text, "tokens": 12, "reward": 0.2 + 0.6 * (right or lost) + 0.01 * place}
        row |= {"reward_model": row["reward"], "verdict": "silent", "advantage": 0.0}
        completions.append(row | ({"gold": right} if gold else {}))
    thousands = ",000" * large
    question = f"{a}{thousands} + {b}{thousands} = ?"
    fields = {"family": "thousands" if large else "sum", "work": f"{a}+{b}"}
    return {
        "problem": f"{step}-{number}",
        "question": question,
        "answer": f"{a + b}{thousands}",
        "metadata": fields,
        "prompt": question,
        "completions": completions,
    }


def groups_of(step, **settings):
    return [problem(step, number, **settings) for number in range(12)]


def rows(steps=STEPS):
    return [
        {"step": step, "reward/mean": 0.5 + step / 200, "gold/accuracy": 0.4 + step / 100}
        for step in range(1, steps + 1)
    ]


def run_of(folder: Path, **settings):
    return read_run(write_run(folder, rows(), lambda step: groups_of(step, **settings)))


@pytest.mark.parametrize(
    ("reference", "form"),
    [
        ("28,000", "a number with thousands separators"),
        ("28", "a whole number"),
        ("-3", "a negative number"),
        ("0.5", "a decimal"),
        (r"\frac{1}{2}", "a fraction"),
        ("50%", "a percentage"),
        ("12 apples", "a number with a unit"),
        ("B", "an option"),
        ("x^2 + 1", "a formula"),
        ("red, blue", "a list"),
        ("Yes", "yes or no"),
        ("the blue whale", "text"),
        ("", "none"),
    ],
)
def test_the_form_of_a_reference(reference, form):
    assert form_of(reference) == form


@pytest.mark.parametrize(
    ("stated", "reference", "fits"),
    [
        ("28", 28000, False),
        ("28 thousand", 28000, True),
        ("twenty-eight", 28, True),
        ("50%", Fraction(1, 2), True),
        ("27 apples", 28, True),  # wrong, but no other magnitude
        ("-28", 28, True),
        ("1/0", 28, False),
        ("many", 28, False),
        ("0", 28, False),
        ("0", 0, True),
        ("3", 0, False),
    ],
)
def test_the_magnitude_of_a_stated_answer(stated, reference, fits):
    assert is_of_magnitude((stated,), Fraction(reference)) is fits


def test_what_is_no_number_has_no_value():
    assert [number_in(text) for text in ("", "blue", "1/0", "x = y", "9^{9^9}")] == [None] * 5


def test_problems_worded_alike_are_one_cluster_and_a_field_of_many_values_is_no_kind():
    kinds = Kinds()
    asked = [f"Amy has {number} apples and gets {number % 7}. How many?" for number in range(100)]
    found = [kinds.of({"question": text, "metadata": {"id": text[8:16] + str(i)}}) for i, text in enumerate(asked)]
    assert {value for kind in found for name, value in kind if name == "questions like"} == {asked[0]}
    assert not kinds.is_kind(("id", "x"))
    assert kinds.of({"question": "Where does the river end?"})[-1] == ("questions like", "Where does the river end?")


def test_a_part_under_several_names_is_one_and_the_whole_run_is_none():
    record = PartsRecord()
    for step in range(1, 13):
        record.add(step, groups_of(step))
    names = [part.full_name for part in record.table().parts]
    (thousands,) = [name for name in names if "thousands" in name and "family" in name]
    assert thousands.startswith("family: thousands (reference: a number with thousands separators")
    assert all(part.share < 0.95 for part in record.table().parts)


def test_a_part_that_is_lost_by_gold_is_named_beside_what_the_run_pays_for(tmp_path):
    run = run_of(tmp_path / "run")
    parts = parts_of(run)
    verdict = with_parts(verdict_of(run), parts)
    assert verdict.state == verdict_of(run).state == "wrong paid"
    assert "And a part is lost: family: thousands" in verdict.sentence
    assert "25 % of the completions: since step 20 gold accuracy fell from 0.9" in verdict.sentence
    examples = parts.examples["family: thousands"]
    assert len(examples) == 5
    assert all(one["step"] >= 20 and one["gold"] is False and "000" in one["answer"] for one in examples)


def test_without_gold_the_signs_convict_and_the_alarm_says_when(tmp_path):
    parts = parts_of(run := run_of(tmp_path / "run", gold=False))
    assert [one.measure for one in parts.accused] == ["magnitude"]
    verdict = with_parts(verdict_of(run), parts)
    assert (verdict.state, verdict.name) == ("part lost", "Lost in a part")
    assert verdict.alarm_at in range(21, 37)
    assert "answers whose number has the reference's magnitude fell from 1.00 to 0.00" in verdict.sentence


@pytest.mark.parametrize(("others", "is_lost"), [(0.9, True), (0.7, True), (0.45, False), (0.3, False)])
def test_a_fall_that_the_other_problems_share_by_half_is_no_part_s(others, is_lost):
    """The share of right answers to a part of the problems falls from .9 to .1, to the rest to `others`."""
    draw, record = random.Random(0), PartsRecord()
    for step in range(1, STEPS + 1):
        groups = groups_of(step)
        for group in groups:
            chance = 0.9 if step < 20 else 0.1 if group["metadata"]["family"] == "thousands" else others
            for row in group["completions"]:
                row["gold"] = draw.random() < chance
        record.add(step, groups)
    lost = lost_parts(record.table())
    assert any(one.part.kinds[0] == ("family", "thousands") for one in lost) is is_lost


def test_a_run_that_loses_nothing_says_how_many_parts_were_watched(tmp_path):
    run = run_of(tmp_path / "run", loses=False)
    verdict = with_parts(verdict_of(run), parts_of(run))
    assert (verdict.state, verdict.alarm_at) == (verdict_of(run).state, None)
    assert verdict.signals[-1].text.startswith("None of ")


def test_a_record_without_rollouts_has_no_parts(tmp_path):
    run = read_run(write_run(tmp_path / "run", rows()))
    assert with_parts(verdict_of(run), parts_of(run)) == verdict_of(run)


def test_what_a_near_reference_rejects_is_a_share_of_the_accepted_answers_that_were_asked():
    record = PartsRecord()
    for step in range(1, STEPS + 1):
        groups = groups_of(step)
        for group in groups:
            for place, row in enumerate(group["completions"]):
                row |= {"reward_model": 0.9 if place else 0.1, "near": (None, 0.9, 0.2, 0.3)[place]}
        record.add(step, groups)
    table = record.table()
    assert np.allclose(table.values[:, PLACE["near"]], 2 / 3)


def test_the_watch_counts_lost_parts_and_a_resumed_one_goes_on():
    def observed(watch, steps):
        for step in steps:
            watch.read(step, groups_of(step))
            fired, metrics = watch.observe(step, {})
            yield metrics | {"step": step}, [firing.message for firing in fired]

    whole = list(observed(Watch(()), range(1, STEPS + 1)))
    first = next(place for place, (row, _) in enumerate(whole) if row[LOST_PARTS])
    assert any("family: thousands" in message for message in whole[first][1])
    seen, earlier = [row for row, _ in whole[:30]], [(step, groups_of(step)) for step in range(1, 31)]
    assert list(observed(Watch((), seen, rollouts=earlier), range(31, STEPS + 1))) == whole[30:]


def test_the_page_draws_lost_parts_first_and_shows_what_was_paid(tmp_path):
    page = write_report(run_of(tmp_path / "run").directory).read_text(encoding="utf-8")
    data = json.loads(page.partition('id="report-data">')[2].partition("</script>")[0])
    part = data["runs"][0]["parts"][0]
    assert (part["name"], part["since"], len(part["examples"])) == ("family: thousands", 20, 5)
    assert part["curves"]["gold"][0][1] > 0.7 > part["curves"]["gold"][-1][1] == 0
    assert 'id="parts"' in page


@pytest.mark.slow
def test_few_simulated_honest_runs_are_accused_and_a_lost_part_is_found():
    """benchmarks/runs/run_parts.md has the large table."""
    honest = [simulated(HONEST[name], np.random.default_rng(7)) for name in HONEST]
    assert not any(lost_parts(table) for table in honest)
    said = accusations(simulated(Course(), np.random.default_rng(4), share=0.1, shift=0.8))
    assert said["report"][0][0] == said["alarm"][0][0] == "family: 11"


def test_the_alarm_is_silent_on_too_few_steps():
    alarm = PartsAlarm()
    assert [alarm.observe(step, groups_of(step + 15)) for step in range(1, 11)] == [[]] * 10
