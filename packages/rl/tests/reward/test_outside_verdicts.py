"""Verdicts from outside take the rule's place in pairs and metrics; runs of several turns are read whole."""

from dataclasses import replace

import pytest

from cooper_rl import Answer, AnswerGroup, CooperReward, CooperRewardConfig, InputError, Problem, build_config
from cooper_rl.run.inputs import read_inputs

OUTSIDE = {"rule": {"kind": "outside"}, "cooptimization": {"pairs": [{"kind": "on_policy"}]}}
WRONG = {"kind": "corrupter", "function": "test_outside_verdicts:worse"}


def worse(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    assert "<tool" not in completion_text
    return "<tool>\n" + completion_text.replace("19", "21")


@pytest.fixture
def make(tiny_models):
    made = []

    def make(**settings) -> CooperReward:
        model = {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 400}
        given = {"kind": "cooper_model", "reward_model": model, **settings}
        made.append(CooperReward.from_config(CooperRewardConfig.model_validate(given)))
        return made[-1]

    yield make
    for reward in made:
        reward.close()


def group(*verdicts, answer: str = "", rule: str | None = None) -> AnswerGroup:
    texts = [f"def f(): return {i}" for i in range(len(verdicts))]
    answers = [Answer(text, verdict=verdict) for text, verdict in zip(texts, verdicts, strict=True)]
    return AnswerGroup("g", Problem("p", "Write f.", answer, rule=rule), answers)


def run_of(number: int, verdict=None) -> Answer:
    call = {"name": "add", "arguments": {"a": 12, "b": 7}}
    first = {"role": "assistant", "content": "I add them.", "tool_calls": [call]}
    last = {"role": "assistant", "content": f"answer: {number}"}
    return Answer.of([first, {"role": "tool", "content": "19"}, last], verdict=verdict)


def test_code_that_tests_have_judged_teaches_without_a_rule_or_a_reference(make):
    reward = make(**OUTSIDE)
    scored = reward.score([group("correct", "wrong", "unparsed", "silent")])
    assert scored.verdicts == [["correct", "wrong", "unparsed", "silent"]]
    assert scored.metrics["rule/accuracy"] == pytest.approx(1 / 3)
    assert scored.metrics["rule/heard"] == 0.75
    assert scored.metrics["rule/unparsed"] == pytest.approx(1 / 3)
    updated = reward.update(scored)
    (pair,) = updated.pairs
    assert (pair.positive, pair.negative) == ("def f(): return 0", "def f(): return 1")
    assert (pair.answer, pair.negative_origin) == ("", "on_policy")


def test_a_verdict_takes_the_place_of_the_rule_in_its_answer_alone(make):
    reward = make(cooptimization={"pairs": [{"kind": "on_policy"}]})
    answers = [
        Answer("answer: 19"),
        Answer("answer: 20"),
        Answer("answer: 20", verdict="correct"),
        Answer("answer: 19"),
    ]
    answers[3] = replace(answers[3], verdict="wrong")
    scored = reward.score([AnswerGroup("g", Problem("p", "12 + 7 = ?", "19"), answers)])
    assert scored.verdicts == [["correct", "wrong", "correct", "wrong"]]


def test_problems_with_and_without_a_rule_share_a_run(make):
    reward = make(rules={"tests": {"kind": "outside"}}, cooptimization={"pairs": [{"kind": "on_policy"}]})
    sums = AnswerGroup("h", Problem("q", "12 + 7 = ?", "19"), [Answer("answer: 19"), Answer("answer: 20")])
    scored = reward.score([group("correct", "wrong", rule="tests"), sums])
    assert scored.verdicts == [["correct", "wrong"]] * 2
    assert scored.metrics["rule/tests_share"] == scored.metrics["rule/maths_share"] == 0.5
    assert {pair.problem_id for pair in reward.update(scored).pairs} == {"p", "q"}


@pytest.mark.parametrize(
    ("settings", "given", "words"),
    [
        (OUTSIDE, group("correct", None), "group g: answer 1 has no verdict, and the rule of its problem is `outside`"),
        (OUTSIDE, group("correct", None, answer="7"), "give it a verdict .correct, wrong, unparsed, or silent"),
        ({}, group(None), "no verdict, and its problem has no reference answer; .* or the problem a reference"),
        ({}, group("right", answer="7"), "answer 0 has the verdict 'right'"),
        ({}, group("timeout", answer="7"), "answer 0 has the verdict 'timeout'"),
    ],
)
def test_an_answer_that_nobody_can_judge_is_refused_before_it_is_scored(make, settings, given, words):
    reward = make(**{"cooptimization": {"pairs": [{"kind": "on_policy"}]}, **settings})
    with pytest.raises(InputError, match=words):
        reward.score([given])


def test_the_rule_reads_the_reply_and_the_model_reads_the_run(make):
    reward = make(
        cooptimization={
            "pairs": [{"kind": "assistant"}, {"kind": "on_policy"}, {"kind": "swapped_reference"}],
            "assistant": WRONG,
        }
    )
    problem = Problem("p", "12 + 7 = ?", "19")
    right, wrong = run_of(19), run_of(20)
    scored = reward.score([AnswerGroup("g", problem, [right, wrong, Answer("answer: 19")])])
    assert scored.verdicts == [["correct", "wrong", "correct"]]
    assert scored.logits is not None
    assert scored.logits[0][0] != scored.logits[0][2]
    pairs = reward.update(scored).pairs
    run = right.transcript.removesuffix("answer: 19")
    assert {pair.positive for pair in pairs} == {right.transcript, "answer: 19"}
    assert {pair.negative for pair in pairs if pair.negative_origin == "on_policy"} == {wrong.transcript}
    rewritten = {pair.positive: pair.negative for pair in pairs if pair.negative_origin == "assistant"}
    assert rewritten[right.transcript] == f"{run}[tool]\nanswer: 21"
    assert rewritten["answer: 19"] == "<tool>\nanswer: 21"
    assert any(pair.negative_answer and pair.positive == right.transcript for pair in pairs)


def test_a_run_of_our_own_loop_has_nobody_who_could_judge(tiny_models):
    problems = {"source": "arithmetic", "limit": 4}
    settings = {
        "policy": {"model": str(tiny_models / "policy")},
        "problems": problems,
        "kind": "cooper_model",
        **OUTSIDE,
    }
    settings["reward_model"] = {"model": str(tiny_models / "reward_model")}
    with pytest.raises(InputError, match="its rule is `outside`, but nobody judges what this loop draws"):
        read_inputs(build_config(settings))
