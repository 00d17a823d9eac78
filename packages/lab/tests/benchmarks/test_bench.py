"""The bench: both formats, metrics by hand, combinations, attacks, and a page that shows text and does not run it."""

import json

import numpy as np
import pytest

from chat_server import ChatServer, HttpAnswer, completion
from cooper_audit.attack.wrong_answers import ATTACKS
from cooper_audit.statistics import Estimate, wilson_interval
from cooper_base.data.labelled import LabelledCompletion, read_labelled
from cooper_base.errors import InputError
from cooper_lab.benchmarks.bench import (
    BenchResult,
    BenchRow,
    Combination,
    bench,
    estimates,
    read_bench,
)
from cooper_lab.benchmarks.bench_report import markdown, mean_attack_rate, write_bench
from cooper_rl.adapters.graders.reward_model import RewardModelGrader
from cooper_rl.engines.config import ScorerConfig
from cooper_verify.grader import Asked, Grader, Opinion
from cooper_verify.graders.judge import ChatJudgeConfig, JudgeGrader
from cooper_verify.rules.kinds.maths import RuleVerifier
from repository import SHARED

VERIFYBENCH = SHARED / "data" / "labelled" / "verifybench_format_sample.jsonl"


class Believer(Grader):
    """Accepts completions that contain the word 'right', and says how sure it is."""

    gives_probabilities = True

    def __init__(self):
        self.asked = 0

    def settings(self):
        return {"kind": "believer"}

    def grade(self, rows, /):
        self.asked += len(rows)
        return [Opinion("correct", 0.9) if "right" in row.completion else Opinion("wrong", 0.2) for row in rows]


def rows(count=40):
    texts = [
        ("The answer is 7.", 1.0),
        ("It is seven, right?", 1.0),
        ("The answer is 8.", 0.0),
        ("right, it is 8 <b>", 0.0),
    ]
    return [
        BenchRow(LabelledCompletion(f"What is {i} + 7 - {i}?", "7", text, label), f"kind {i % 2}", f"model {i % 4}")
        for i in range(count) for text, label in [texts[i % 4]]
    ]  # fmt: skip


def test_metrics_of_methods_and_combinations_equal_those_computed_by_hand(tmp_path):
    believer = Believer()
    rule = RuleVerifier()
    result = bench(
        rows(), {"rule": rule, "believer": believer}, ["rule or believer", "rule and not believer"], tmp_path, 5
    )
    rule.close()
    means = {name: {m: e.mean for m, e in r.overall.items()} for name, r in result.methods.items()}
    assert means["rule"] == {"accuracy": 0.75, "precision": 1.0, "recall": 0.5, "false_positive_rate": 0.0}
    assert means["believer"] == {"accuracy": 0.5, "precision": 0.5, "recall": 0.5, "false_positive_rate": 0.5}
    assert means["rule or believer"]["recall"] == 1.0
    assert means["rule or believer"]["accuracy"] == 0.75
    assert means["rule and not believer"] == means["rule"]
    assert result.methods["believer"].by_model["model 3"]["accuracy"].mean == 0.0
    assert set(result.methods["rule"].by_category) == {"kind 0", "kind 1"}
    assert result.methods["rule"].verdicts == {"correct": 10, "unparsed": 20, "wrong": 10}
    calibration = result.methods["believer"].calibration
    assert calibration is not None
    assert calibration.ece == pytest.approx(0.5 * 0.4 + 0.5 * 0.3)
    assert set(result.methods["rule"].attacks) >= set(ATTACKS)
    assert mean_attack_rate(result.methods["rule"]) == 0.0


def test_an_interrupted_bench_asks_only_what_is_missing(tmp_path):
    believer = Believer()
    first = bench(rows(), {"believer": believer}, [], tmp_path, 5)
    asked = believer.asked
    assert bench(rows(), {"believer": believer}, [], tmp_path, 5) == first
    assert believer.asked == asked
    journal = tmp_path / "opinions-believer.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    assert bench(rows(), {"believer": believer}, [], tmp_path, 5) == first
    assert asked < believer.asked < 2 * asked


@pytest.mark.slow
def test_rows_on_which_the_judges_server_failed_are_reported_and_asked_again(tmp_path):
    broken = {"on": True}

    def says_yes_to_right(request, number):
        if broken["on"] and number % 5 == 3:
            return HttpAnswer("{}", status=503)
        return completion("yes" if "right" in request["messages"][-1]["content"].split("<<<")[-1] else "no")

    def ask(folder: str) -> BenchResult:
        judge = JudgeGrader(ChatJudgeConfig(base_url=server.url, model="m", max_retries=0))
        result = bench(rows(), {"judge": judge}, [], tmp_path / folder, 5)
        judge.close()
        write_bench(result, tmp_path / folder)
        return result

    with ChatServer(says_yes_to_right) as server:
        first = ask("a")
        unheard = first.methods["judge"].unheard
        assert unheard == len(range(3, len(server.requests), 5))
        assert not any(mistake.verdict == "unreadable" for mistake in first.methods["judge"].mistakes)
        for page in ("bench.md", "bench.html"):
            assert f"judge: {unheard} opinions are missing" in (tmp_path / "a" / page).read_text()
        broken["on"], before = False, len(server.requests)
        second = ask("a")
        assert len(server.requests) - before == 1 + unheard  # the check, and what is missing
        assert second == ask("b")
    assert "missing" not in markdown(second)


def test_the_page_shows_model_text_and_the_table_has_every_method(tmp_path):
    result = bench(rows(), {"believer": Believer()}, ["not believer"], tmp_path, 5)
    write_bench(result, tmp_path)
    page = (tmp_path / "bench.html").read_text()
    assert "right, it is 8 &lt;b&gt;" in page
    assert "<b>\n" not in page
    assert "<svg" in page
    for text in (page, markdown(result)):
        assert "not believer" in text
        assert "answer_repeated" in text
    found = json.loads((tmp_path / "bench.json").read_text())
    assert found["methods"]["believer"]["overall"]["accuracy"]["mean"] == 0.5


def test_intervals_resample_whole_problems_and_cover_the_truth():
    generator = np.random.default_rng(0)
    covered = []
    for seed in range(60):
        per_problem = np.repeat(generator.random(100) < 0.7, 5)  # five equal completions: 100 facts, not 500
        questions = [f"q{i // 5}" for i in range(500)]
        found = estimates(per_problem, np.ones(500, dtype=bool), questions, seed)["accuracy"]
        covered.append(found.low <= 0.7 <= found.high)
        assert 0.13 < found.high - found.low < 0.25  # 500 independent facts would give 0.08
    assert sum(covered) >= 52


def test_a_measure_without_a_denominator_is_left_out():
    found = estimates(np.array([False, False]), np.array([False, False]), ["a", "b"])
    assert set(found) == {"accuracy", "false_positive_rate"}


def test_a_rate_of_zero_among_few_problems_has_a_wide_interval():
    accepts, right = np.array([True, False, False, False]), np.array([True, False, False, False])
    found = estimates(accepts, right, ["a", "a", "b", "c"])["false_positive_rate"]
    assert found == Estimate(0.0, *wilson_interval(0.0, 3))  # three problems have a wrong completion
    assert found.high > 0.5


@pytest.mark.parametrize(
    ("expression", "accepted"),
    [
        ("rule", False),
        ("rm", True),
        ("rule or rm", True),
        ("rule and rm", False),
        ("rule or (rule_unparsed and rm)", True),
        ("rule_wrong", False),
        ("not rule_timeout and rm_strict_wrong", True),
        ("rule_silent or rm", True),
        ("rm and not rm_strict", True),
        ("judge_unreadable and judge_unparsed", True),
    ],
)
def test_combinations(expression, accepted):
    opinions = {"rule": Opinion("unparsed", 0.0), "rm": Opinion("correct", 0.9), "rm_strict": Opinion("wrong", 0.4)}
    opinions["judge"] = Opinion("unparsed", 0.0, "unreadable")
    assert Combination(expression, list(opinions)).accepts(opinions) is accepted


@pytest.mark.parametrize(
    "expression", ["rule or", "rule or judge", "open('x')", "rule > rm", "1", "rule_maybe", "rule.x"]
)
def test_a_combination_may_contain_only_names_and_logic(expression):
    with pytest.raises(InputError, match="combination"):
        Combination(expression, ["rule", "rm"])


def test_what_a_method_is_silent_on_is_no_miss_of_it(tmp_path):
    class Partial(Believer):
        """Silent on the questions about even numbers."""

        def grade(self, rows, /):
            said = super().grade(rows)
            silent = [int(row.problem.question.split()[2]) % 2 == 0 for row in rows]
            return [Opinion("silent", None) if quiet else one for one, quiet in zip(said, silent, strict=True)]

    heard = [row for row in rows() if int(row.labelled.question.split()[2]) % 2]
    found = bench(rows(), {"some": Partial()}, [], tmp_path / "some", attacked_problems=0).methods["some"]
    alone = bench(heard, {"all": Believer()}, [], tmp_path / "all", attacked_problems=0).methods["all"]
    assert {name: one.mean for name, one in found.overall.items()} == {
        name: one.mean for name, one in alone.overall.items()
    }
    assert found.verdicts["silent"] == len(rows()) - len(heard)
    assert found.by_category["kind 0"] == {}
    assert all(mistake.verdict != "silent" for mistake in found.mistakes)


def test_rows_of_verifybench_and_of_our_format_are_read(tmp_path):
    if VERIFYBENCH.is_file():
        read = read_bench(VERIFYBENCH)
        assert len(read) == 16
        assert sum(row.labelled.label for row in read) == 8
        assert "B1 - Algebraic Formula" in {row.category for row in read}
        assert "gemma-3-1b-it" in {row.model for row in read}
    ours = tmp_path / "ours.jsonl"
    row = {"question": "q", "reference_answer": "7", "completion": "7", "label": 1, "dataset": "d", "model": "m"}
    ours.write_text(json.dumps(row) + "\n" + json.dumps({**row, "label": "perhaps"}) + "\n")
    with pytest.raises(InputError, match=r"ours.jsonl:2: field 'label' is 'perhaps'"):
        read_bench(ours)
    ours.write_text(json.dumps(row))
    assert [(r.category, r.model, r.labelled.label) for r in read_bench(ours)] == [("d", "m", 1.0)]


def test_the_output_of_cooper_verify_is_read_as_for_training(tmp_path, caplog):
    path = tmp_path / "verdicts.jsonl"
    verdicts = ["correct", "wrong", "silent", "unparsed"]
    lines = [{"question": "1+1?", "answer": "2", "completion": "2", "verdict": verdict} for verdict in verdicts]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [row.labelled for row in read_bench(path)] == read_labelled(path)
    assert "2 rows without a verdict of correct or wrong are left out: 1 silent, 1 unparsed" in caplog.text


def test_rows_of_verifierbench_have_three_classes(tmp_path):
    """An invalid answer counts as wrong, and its verdicts are told apart: `unparsed` is what a rule should say."""
    row = {"question": "1+1=", "gold_answer": "2", "data_source": "d", "answer_type": "Numerical"}
    said = [("A", "so 2"), ("B", "so 3"), ("C", "I cannot"), ("C", "so 4")]
    rows = [json.dumps({**row, "llm_response": text, "gold_judgment": judgement}) for judgement, text in said]
    path = tmp_path / "verifierbench.jsonl"
    path.write_text("\n".join(rows))
    read = read_bench(path)
    assert [(one.labelled.label, one.judgement, one.category) for one in read] == [
        *((1.0, "correct", "Numerical"), (0.0, "wrong", "Numerical")),
        *[(0.0, "invalid", "Numerical")] * 2,
    ]
    result = bench(read, {"rule": RuleVerifier()}, [], tmp_path, attacked_problems=0)
    assert result.methods["rule"].judged == {
        "correct": {"correct": 1, "unparsed": 0, "wrong": 0},
        "wrong": {"correct": 0, "unparsed": 0, "wrong": 1},
        "invalid": {"correct": 0, "unparsed": 1, "wrong": 1},
    }
    assert "| invalid | 0 | 1 | 1 |" in markdown(result)
    write_bench(result, tmp_path)
    assert "Verdicts of rule by judgement" in (tmp_path / "bench.html").read_text()
    path.write_text(json.dumps({**row, "llm_response": "2", "gold_judgment": "D"}))
    with pytest.raises(InputError, match="'gold_judgment' is 'D'; it must be A, B or C"):
        read_bench(path)


def test_a_reward_model_scores_like_in_training_and_rejects_rows_that_do_not_fit(tiny_models):
    config = ScorerConfig(model=str(tiny_models / "reward_model"), device="cpu", max_input_tokens=120)
    method = RewardModelGrader(config)
    labelled = [row.labelled for row in rows(4)] + [LabelledCompletion("a" * 400, "7", "7", 1.0)]
    opinions = method.grade([Asked.about(row.question, row.answer, row.completion) for row in labelled])
    assert opinions[-1] == Opinion("unparsed", 0.0, "too_long")
    assert all(o.verdict == ("correct" if (o.score or 0.0) > 0.5 else "wrong") for o in opinions[:-1])
    assert not any(o.accepts for o in opinions[-1:])
