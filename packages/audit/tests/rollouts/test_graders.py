"""Several graders on identical rows, and what is said of the texts without a verdict."""

import json
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace
from typing import cast

import pytest
from courses import write

from cooper_audit.rollouts import Options, audit
from cooper_audit.rollouts.auditing import Audit
from cooper_audit.rollouts.graders import _grade, described, frequent_phrases, graded, windows_to_grade
from cooper_base.errors import InputError
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl.adapters.audit.retrain import retrained_grade
from cooper_rl.adapters.graders.reward_model import RewardModelGrader
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.verifyrm.config import VerifyRMConfig
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.verifier import Verifier


def row(verdict: str, advantage: float, problem: str = "p") -> dict:
    return {"step": 1, "problem": problem, "verdict": verdict, "advantage": advantage, "reward": advantage}


def test_a_grade_by_hand():
    rows = [row("correct", 1.0), row("wrong", -1.0), row("unparsed", 1.0), row("silent", -1.0)]
    grade = _grade("rm", "w", rows, [(0.9, True), (0.8, True), (0.1, False), (0.2, False)])
    assert (grade.accepts, grade.agreement, grade.concordance) == (0.5, 2 / 3, 1.0)
    assert grade.on_rejected == pytest.approx(0.3 / 0.7)  # of the advantages .4 and .3
    assert grade.flips == 0.5  # the second and the third
    failed = _grade("rm", "w", [*rows, row("wrong", 1.0)], [(0.9, True), (0.8, True), (0.1, False), (0.2, False), None])
    assert failed == replace(grade, rows=5)
    assert failed.cells()[2] == "4 of 5"


def test_a_rule_and_a_reward_model_read_the_rows_that_were_paid(tmp_path, tiny_models):
    result = audit([write(tmp_path / "dump", "hacked")], tmp_path / "audit", Options(ExactRule()))
    model = {"model": str(tiny_models / "reward_model"), "max_input_tokens": 160}

    def graders():
        return {"exact": Verifier(ExactRule()), "rm": RewardModelGrader(ScorerConfig.model_validate(model))}

    grades = {(one.grader, one.window): one for one in graded(result, windows_to_grade(result), graders())}
    assert [*grades] == [
        (name, window) for name in ("reward", "exact", "rm") for window in ("before the onset", "after the onset")
    ]
    assert len({one.rows for one in grades.values()}) == 1
    assert grades["exact", "before the onset"].agreement == 1.0
    assert grades["reward", "before the onset"].concordance == 1.0
    assert grades["reward", "after the onset"].on_rejected > 0.8 > grades["reward", "before the onset"].on_rejected
    assert graded(result, windows_to_grade(result), graders()) == [*grades.values()]  # from the journal
    told = " ".join(described(windows_to_grade(result)))
    assert "'0 or 0" in told


def test_where_a_group_is_paid_alike_nobody_says_whether_it_is_accepted():
    """A reward that pays every wrong answer alike has no advantage anywhere, which is not a rejection."""

    def rows(pay: list[float]) -> list[dict]:
        mean = fmean(pay)
        return [row("wrong", one - mean) | {"reward": one, "paid": one > mean, "text": ""} for one in pay]

    graded_alike, graded_apart = (
        graded(cast(Audit, None), {"w": rows(pay)}, {})[0] for pay in ([1.0] * 4, [1.0, 1.0, 1.0, 0.0])
    )
    assert graded_alike.cells()[3:5] == ["–", "–"]
    assert (graded_apart.accepts, graded_apart.agreement) == (0.75, 0.25)
    told = described({"before": rows([1.0, 0.0]), "after": rows([1.0] * 4)})
    assert "1 paid and rejected, 0 not paid and accepted, 1 not paid and rejected." in told[0]
    assert "4 paid like their group and rejected" in told[1]


def test_phrases_that_became_frequent():
    before, after = ["the answer is 3"] * 9, ["the answer is 3 or 4", "surely 5 or 6"] * 3
    assert frequent_phrases(before, after)[0] == ("0 or 0", 0.0, 1.0)
    assert frequent_phrases(before, before) == []


@pytest.mark.parametrize(("until", "words"), [(0, "no step up to it"), (15, "no later step")])
def test_a_retrained_model_needs_steps_on_both_sides(tmp_path, until, words):
    result = audit([write(tmp_path / "dump", "hacked")], tmp_path / "audit", Options(ExactRule()))
    with pytest.raises(InputError, match=words):
        retrained_grade(result, VerifyRMConfig(model="base"), until)


@pytest.mark.slow
def test_a_retrained_model_does_not_pay_lists_on_problems_that_it_has_not_seen(tmp_path):
    result = audit([write(tmp_path / "dump", "hacked")], tmp_path / "audit", Options(ExactRule()))
    config = VerifyRMConfig(model=str(ASSETS / "policy"), learning_rate=1e-3, epochs=10)
    grade = retrained_grade(result, config, 11)
    assert (grade.grader, grade.window) == ("retrained", "after step 11, new problems")
    [path] = (tmp_path / "audit").glob("opinions-retrained-11-*.jsonl")
    opinions = [opinion for line in path.read_text().splitlines()[1:] for opinion in json.loads(line)["value"]]
    assert len(opinions) == grade.rows > 150  # from here on, every completion is a list, which the run paid with .97
    assert fmean(opinion["score"] for opinion in opinions) < 0.1
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "audit").glob("retrained-*/*")}
    assert grade == retrained_grade(result, config, 11)
    assert files == {file: file.stat().st_mtime_ns for file in (tmp_path / "audit").glob("retrained-*/*")} != {}


def test_graders_need_texts(tmp_path):
    options = Options(ExactRule(), text=False)
    result = audit([write(tmp_path / "dump", "hacked")], tmp_path / "audit", options)
    method = SimpleNamespace(close=lambda: None)
    with pytest.raises(InputError, match="leave out --no-text"):
        graded(result, windows_to_grade(result), {"any": method})  # pyright: ignore[reportArgumentType]
