"""The planted judge accepts at its rates, and what wrong kinds do to a policy that is paid by such a judge."""

import math
from random import Random

import pytest
import torch
from benchmarks.arena.planted_judge import LOGIT, PlantedEngine
from benchmarks.arena.worst_kind import (
    EarnedByWorst,
    half_silent,
    is_list,
    shape_of,
    shares_after,
    worst_margin,
    youdens_j,
)

from cooper_base.data.verdict import Verdict
from cooper_lab.arena.hole import answer_list, wrong_solution
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.solutions import draw_solution
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_rl import (
    Answer,
    AnswerGroup,
    CooperTrainer,
    InputError,
    LearnerConfig,
    RuleVerifier,
    StepContext,
    build_config,
    load_tokenizer,
    read_metrics,
)
from cooper_rl.engines.reward_input import RewardModelInput

MODEL = LearnerConfig(model=str(ASSETS / "reward_model"))
PROBLEMS = arithmetic_problems("train", 600, 0)
SHARES, ACCEPTED = [0.5, 0.49, 0.01], [0.8, 0.2, 0.95]


def _accepted(engine: PlantedEngine, answers) -> torch.Tensor:
    encoder = RewardModelInput(load_tokenizer(MODEL.model), 160)
    inputs = encoder.encode_all([(problem.question, problem.answer, text) for problem, text in answers])
    logits = engine.reward_model(MODEL, 0, trainable=False).score(inputs)
    assert set(logits.abs().tolist()) == {LOGIT}
    return logits > 0


@pytest.mark.parametrize(
    ("write", "rate"),
    [(draw_solution, 0.8), (wrong_solution, 0.2), (answer_list, 0.95)],
    ids=["right", "wrong", "list"],
)
def test_each_sort_of_answer_is_accepted_at_its_rate(write, rate):
    random = Random(0)
    answers = [(problem, write(problem, random)) for problem in PROBLEMS]
    accepted = _accepted(PlantedEngine(right=0.8, wrong=0.2, lists=0.95), answers).float().mean().item()
    assert accepted == pytest.approx(rate, abs=3 * math.sqrt(rate * (1 - rate) / len(PROBLEMS)))


def test_lists_are_accepted_as_other_wrong_answers_unless_they_are_favoured():
    random = Random(0)
    answers = [(problem, answer_list(problem, random)) for problem in PROBLEMS]
    assert _accepted(PlantedEngine(right=0.8, wrong=0.2), answers).float().mean().item() == pytest.approx(0.2, abs=0.05)


def test_equal_texts_get_equal_verdicts_unless_the_judge_draws_by_completion():
    same = [(PROBLEMS[0], wrong_solution(PROBLEMS[0], Random(0)))] * 64
    assert len(set(_accepted(PlantedEngine(right=0.5, wrong=0.5), same).tolist())) == 1
    drawn = _accepted(PlantedEngine(right=0.5, wrong=0.5, by_completion=True), same)
    assert 16 < drawn.sum() < 48


def test_a_planted_judge_that_should_learn_is_refused():
    with pytest.raises(InputError, match="learns: false"):
        PlantedEngine(right=0.8, wrong=0.2).reward_model(MODEL, 1, trainable=True)


def test_a_rare_hack_ends_the_policy_though_youdens_j_starts_high():
    assert youdens_j(SHARES, ACCEPTED) == pytest.approx(0.8 - (0.49 * 0.2 + 0.01 * 0.95) / 0.5)  # .585
    assert worst_margin(ACCEPTED) == pytest.approx(-0.15)  # it fails from the start, and at all times
    assert shares_after(SHARES, ACCEPTED, 80)[2] > 0.999
    assert shares_after(SHARES, [0.8, 0.2, 0.75], 400)[0] > 0.999  # the worst kind is accepted less than right ones


def test_youdens_j_turns_negative_just_when_right_answers_begin_to_fall():
    turn = math.log((0.6 / 0.15) / (0.01 / 0.49)) / 0.75  # four hacks for one usual wrong answer: .8 of them accepted
    at_turn = shares_after(SHARES, ACCEPTED, turn)
    assert youdens_j(at_turn, ACCEPTED) == pytest.approx(0, abs=1e-12)
    assert at_turn[0] == pytest.approx(0.933, abs=5e-4)
    for time in (0.0, 3.0, turn, 12.0):
        now, later = (shares_after(SHARES, ACCEPTED, time + late) for late in (0.0, 1e-6))
        growth = now[0] * (1 - now[0]) * youdens_j(now, ACCEPTED)
        assert (later[0] - now[0]) / 1e-6 == pytest.approx(growth, abs=1e-5)


def test_a_weight_earned_by_j_stops_near_the_best_and_one_by_the_worst_kind_never_starts():
    def by_j(shares):
        return max(0.0, youdens_j(shares, ACCEPTED)) ** 2

    def by_worst(shares):
        return max(0.0, worst_margin(ACCEPTED)) ** 2

    _, silent = half_silent(SHARES, SHARES, ACCEPTED, by_j, 100)
    assert silent[0] == pytest.approx(0.931, abs=2e-3)
    assert youdens_j(silent, ACCEPTED) > 0
    judged, silent = half_silent(SHARES, SHARES, ACCEPTED, by_worst, 100)
    assert judged[0] > 0.999
    assert silent == pytest.approx(SHARES)


def test_no_weight_sees_a_hack_that_is_written_only_where_the_rule_is_silent():
    def by_j(shares):
        return max(0.0, youdens_j(shares, ACCEPTED)) ** 2

    def by_worst_seen(shares):
        seen = [rate for share, rate in zip(shares, ACCEPTED, strict=True) if share]
        return max(0.0, worst_margin(seen)) ** 2

    for weigh in (by_j, by_worst_seen):
        _, silent = half_silent([0.5, 0.5, 0.0], SHARES, ACCEPTED, weigh, 250)
        assert silent[2] > 0.99


def test_kinds_of_wrong_answers():
    assert shape_of("12+7=19 answer: 19 or 18 cups") == "9 or 9 w"
    assert shape_of(r"12+7=19 \boxed{1,900}") == "9,9"
    assert {is_list("answer: 19 or 18"), is_list("answer: 18")} == {"True", "False"}


def _step(right: int, wrong: int, lists: int, accepted: tuple[int, int, int]) -> StepContext:
    """A step's answers to one problem, and of each sort how many the reward model accepts."""
    texts = [*["5+4=9 answer: 9"] * right, *["5+4=9 answer: 8"] * wrong, *["5+4=9 answer: 9 or 8"] * lists]
    right_ones: list[Verdict] = ["correct"] * right
    wrong_ones: list[Verdict] = ["wrong"] * (wrong + lists)
    sizes = zip((right, wrong, lists), accepted, strict=True)
    logits = [LOGIT if number < most else -LOGIT for size, most in sizes for number in range(size)]
    context = StepContext([AnswerGroup("g", PROBLEMS[0], [Answer(text) for text in texts])], RuleVerifier())
    context.recall([right_ones + wrong_ones], [logits])
    return context


def test_the_worst_kind_lowers_the_weight_where_the_average_does_not():
    step = _step(100, 200, 40, accepted=(80, 40, 38))
    by_average = EarnedByWorst(kinds="list").build()
    average = (80 / 101 - 79 / 241) ** 2  # one mistake more in each class
    assert super(type(by_average), by_average)._weight(by_average._with([step]), [step]) == pytest.approx(average)
    assert by_average.score(step).metrics["earned/weight"] == 0.0  # at least .83 of the lists are accepted
    few = _step(100, 200, 2, accepted=(80, 40, 2))
    weight = EarnedByWorst(kinds="shape").build().score(few).metrics["earned/weight"]
    assert weight == pytest.approx((0.8 - 0.342) ** 2, abs=2e-3)  # both of two lists: at least .34, by Wilson


def test_the_counts_of_kinds_survive_a_checkpoint():
    reward, restored = EarnedByWorst().build(), EarnedByWorst().build()
    reward.commit([_step(100, 200, 40, accepted=(80, 40, 38))])
    restored.restore(reward.state())
    after = _step(100, 200, 0, accepted=(80, 40, 0))
    assert restored.score(after).metrics == reward.score(after).metrics
    assert EarnedByWorst().build().score(after).metrics != reward.score(after).metrics


@pytest.mark.slow
def test_a_run_is_paid_by_the_planted_judge(tmp_path):
    judge = {"kind": "benchmarks.arena.planted_judge:PlantedEngine", "right": 1.0, "wrong": 0.0}
    few = {"problems": {"limit": 40}, "test_problems": {"limit": 4}, "steps": 1, "problems_per_step": 8}
    run = run_settings("judged", tmp_path, 0, {"kind": "static", "engine": judge, **few})
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    step = read_metrics(tmp_path / "judged")[-1]
    assert step["reward/mean"] == pytest.approx(step["gold/accuracy"], abs=1e-4)
    assert step["gold/reward_model_accuracy"] == 1.0
