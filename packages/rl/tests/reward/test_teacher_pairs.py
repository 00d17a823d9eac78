"""Generative Adversarial Distillation (`kind: gad`): a teacher's answers above the policy's, without references."""

import json
from math import exp, log

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_audit.run.watch_rules import active_rules
from cooper_rl import InputError, build_config
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.recipes import RECIPES
from cooper_rl.run.inputs import read_inputs
from cooper_verify.rules.kinds.partial import Silent
from cooptimization_cases import context_of, cut_off, make_group  # pyright: ignore[reportMissingImports]
from run.test_chat_run import TEMPLATE
from run.test_lora_run import _fit

GAD = RECIPES["gad"]["cooptimization"]


def pairs_of(groups, **settings):
    cooptimization = Cooptimizer(CooptimizationConfig.model_validate(GAD | settings), Silent())
    return cooptimization, cooptimization.finish([cooptimization.start(context_of(groups, Silent()), 1)])


def test_every_answer_of_the_policy_is_below_the_teachers_right_or_wrong_and_counts_as_often_as_it_was_drawn():
    texts = ["It is 7.", "It is 8.", "It is 8.", cut_off("It is"), "Seven it is, says the teacher."]
    groups = [make_group(texts, "", "Seven it is, says the teacher.\n", id="a")]
    _, pairs = pairs_of(groups)
    assert {pair.negative: pair.weight for pair in pairs} == {"It is 7.": 1, "It is 8.": 2, "It is": 1}
    assert {pair.positive for pair in pairs} == {"Seven it is, says the teacher."}
    assert {(pair.positive_origin, pair.negative_origin) for pair in pairs} == {("reference_solution", "teacher")}
    assert len(pairs_of(groups, pairs_per_problem=2)[1]) == 2


def test_the_loss_is_bradley_terry_alone_and_nothing_is_replayed(make_learner, encoder):
    group = make_group(["It is 8.", "Nine."], "", "Seven.", id="a")
    cooptimization, pairs = pairs_of([group])
    learner, texts = make_learner(), ["Seven.", "It is 8.", "Nine."]
    teachers, *own = learner.score(encoder.encode_all([(group.problem.question, "", text) for text in texts])).tolist()
    _, metrics = cooptimization.update(pairs, learner, encoder)
    expected = sum(log(1 + exp(score - teachers)) for score in own) / 2
    assert metrics["reward_model/loss"] == pytest.approx(expected, abs=1e-5)
    assert (metrics["pairs/remembered"], metrics["pairs/replayed"]) == (0, 0)


def test_an_answer_of_the_teacher_that_is_missing_is_named():
    with pytest.raises(InputError, match="group a: has no solution"):
        pairs_of([make_group(["It is 8."], "", None, id="a")])


@pytest.fixture
def distilling(settings, tiny_models, tmp_path):
    """A run on rows that hold a question and a teacher's answer, and nothing else."""
    model = tmp_path / "model"
    for source in (tiny_models / "reward_model").iterdir():
        model.mkdir(exist_ok=True)
        (model / source.name).write_bytes(source.read_bytes())
    (model / "chat_template.jinja").write_text(TEMPLATE)
    rows = [{"question": f"{a} + 1?", "reply": f"{a} + 1 = {a + 1} answer: {a + 1}"} for a in range(12)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    problems = {"source": str(tmp_path / "rows.jsonl"), "solution": "reply", "prompt": {"template": "{question}\n"}}
    changed = {"kind": "gad", "problems": problems, "test_problems": None, "evaluation": {"every": 0}, "steps": 2}
    return {**settings, **changed, "cooptimization": {}, "reward_model": {"model": str(model), "learning_rate": 1e-2}}


def test_a_run_needs_no_reference_and_pays_the_score(distilling, caplog):
    trainer = _fit(distilling)
    assert "no step has recorded" not in caplog.text
    for row in read_metrics(trainer.directory):
        assert row["pairs/count"] == 4 * 4
        assert row["reward_model/pair_accuracy_after_teacher"] == 1
        assert row["reward/mean"] != row["reward_model/mean"]


def test_scores_whose_probabilities_are_all_1_are_no_fault_where_the_score_pays(distilling):
    assert "reward_model/std" not in {rule.metric for rule in active_rules(build_config(distilling).watch_rules)}
    distilling["rewards"] = [{"kind": "reward_model"}]
    assert "reward_model/std" in {rule.metric for rule in active_rules(build_config(distilling).watch_rules)}


def test_a_row_without_a_teachers_answer_is_refused_with_its_line(distilling, tmp_path):
    with (tmp_path / "rows.jsonl").open("a") as rows:
        rows.write('{"question": "2 + 2?", "reply": ""}\n')
    with pytest.raises(InputError, match=r"rows.jsonl:13: has no solution, and the source of pairs `teacher` needs"):
        read_inputs(build_config(distilling))


def test_a_model_that_reads_references_still_needs_them(distilling):
    distilling["reward_model"]["input"] = "tagged"
    with pytest.raises(InputError, match="answer"):
        read_inputs(build_config(distilling))
