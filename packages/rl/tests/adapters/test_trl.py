"""The co-trained reward inside TRL's own GRPOTrainer."""

import shutil
from typing import Any

import pytest
import torch
from datasets import Dataset

from cooper_base.data.answer import Answer
from cooper_rl import CooperReward, CooperRewardConfig, InputError, Problem
from cooper_rl.adapters.rows import Columns
from cooper_rl.adapters.trl import FOLDER, GRPOReward, StepKeeper
from in_process import model_of
from planted import RAISES, reading_raises

pytest.importorskip("trl", reason="needs the extra trl")
from rows import CORRUPTER
from trl_runs import GROUP, Stop, data_set, reward_config, trainer_of


class Recorded:
    """A `CooperReward`, and the calls that TRL made on it."""

    def __init__(self, inner: CooperReward) -> None:
        self.inner, self.steps, self.calls = inner, StepKeeper(inner), []

    def score(self, groups, *, step=None, train=True):
        scored = self.steps.score(groups, step=step, train=train)
        self.calls.append(("train" if train else "eval", step, scored.version, groups))
        return scored

    def update(self, step):
        learned = self.steps.update(step)
        self.calls.append(("update", step, learned.version, learned.pairs))
        return learned

    def save(self, folder):
        self.inner.save(folder)

    def load(self, folder):
        self.inner.load(folder)


@pytest.fixture
def make(tiny_models, tmp_path):
    opened = []

    def make(name: str = "run", columns: Columns | None = None, data: Any = None, **settings: Any):
        opened.append(CooperReward.from_config(reward_config(tiny_models)))
        scorer: Any = Recorded(opened[-1])
        reward = GRPOReward(scorer, columns)
        return trainer_of(tiny_models, tmp_path / name, reward, data, **settings), reward.scorer

    yield make
    for reward in opened:
        reward.close()


def weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(map(torch.equal, weights(one), weights(other)))


def learner(scorer: Recorded) -> torch.nn.Module:
    assert scorer.inner.learning is not None
    return model_of(scorer.inner.learning.learner)


def events(scorer: Recorded) -> list[tuple]:
    return [call[:3] for call in scorer.calls]


def test_one_version_scores_a_step_and_its_end_makes_the_next(make):
    trainer, scorer = make(max_steps=3)
    trainer.train()
    expected = [(what, step, step - (what == "train")) for step in (1, 2, 3) for what in ("train", "update")]
    assert events(scorer) == expected
    groups = scorer.calls[0][3]
    assert [len(group.answers) for group in groups] == [GROUP] * 4
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert [row["cooper/version"] for row in rows] == [1, 2, 3]
    assert [row["cooper/scored_by_version"] for row in rows] == [0, 1, 2]
    assert 5 < len([name for name in rows[0] if name.startswith("cooper/")]) <= 14
    pairs = [len(call[3]) for call in scorer.calls if call[0] == "update"]
    assert [row["cooper/pairs/count"] for row in rows] == pairs


def test_all_metrics_are_logged_if_they_are_asked_for(make):
    trainer, _ = make(max_steps=1)
    trainer.reward_funcs[0].log_all = True
    trainer.train()
    (row,) = [row for row in trainer.state.log_history if "loss" in row]
    assert len([name for name in row if name.startswith("cooper/")]) > 30


def test_what_teaches_nothing_is_told_at_the_first_step(make, caplog):
    trainer, _ = make(max_steps=1, max_completion_length=1)
    trainer.train()
    assert "step 1: rollout/cut_off_rate above 0.999 since step 1: 1 (every completion of the first step" in caplog.text
    assert "step 1: rule/accuracy below 0.001 since step 1: 0 (the rule accepts no completion" in caplog.text


def test_evaluation_is_scored_and_never_trained_on(make, tiny_models):
    trainer, scorer = make(max_steps=2, eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=2 * GROUP)
    trainer.evaluate()
    assert {call[0] for call in scorer.calls} == {"eval"}
    before = weights(learner(scorer))
    trainer.train()
    tested = {problem["id"] for problem in trainer.eval_dataset}
    learned = {pair.problem_id for call in scorer.calls if call[0] == "update" for pair in call[3]}
    assert learned
    assert not learned & tested
    assert scorer.inner.version == 2
    assert not all(map(torch.equal, before, weights(learner(scorer))))


def test_several_optimizer_steps_on_one_generation_train_the_reward_model_once(make):
    trainer, scorer = make(max_steps=4, num_iterations=2)
    trainer.train()
    assert events(scorer) == [("train", 1, 0), ("update", 1, 1), ("train", 3, 1), ("update", 3, 2)]


def test_several_generations_for_one_optimizer_step_are_one_step(make):
    trainer, scorer = make(max_steps=2, steps_per_generation=1)
    trainer.train()
    once = [("train", 1, 0), ("train", 1, 0), ("update", 1, 1)]
    assert events(scorer) == once + [(what, step + 1, version + 1) for what, step, version in once]


def test_a_completion_stopped_if_it_ends_in_an_end_token(make):
    trainer, scorer = make(max_steps=1)
    seen = []
    score = trainer.reward_funcs[0]

    def watched(**given):
        seen.append(given["completion_ids"])
        return score(**given)

    trainer.reward_funcs[0] = watched
    trainer.train()
    answers = [answer for group in scorer.calls[0][3] for answer in group.answers]
    end = trainer.processing_class.eos_token_id
    assert [answer.stopped for answer in answers] == [ids[-1] == end for ids in seen[0]]
    assert [answer.tokens for answer in answers] == [len(ids) for ids in seen[0]]


@pytest.mark.slow
def test_a_resumed_run_is_the_same_bit_for_bit(make, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 2}
    whole, whole_scorer = make("whole", **settings)
    whole.train()
    first, _ = make("stopped", **settings)
    first.add_callback(Stop(2))
    first.train()
    resumed, scorer = make("stopped", **settings)
    resumed.train(resume_from_checkpoint=True)
    assert events(scorer) == events(whole_scorer)[4:]
    assert [call[3] for call in scorer.calls] == [call[3] for call in whole_scorer.calls[4:]]
    assert same(resumed.model, whole.model)
    assert same(learner(scorer), learner(whole_scorer))
    for name in ("reward.json", "reward_model/model.safetensors"):
        saved = [tmp_path / run / "checkpoint-4" / FOLDER / name for run in ("whole", "stopped")]
        assert saved[0].read_bytes() == saved[1].read_bytes()


def test_a_checkpoint_without_the_reward_is_refused(make, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 2}
    first, _ = make(**settings)
    first.train()
    (tmp_path / "run" / "checkpoint-2" / FOLDER / "reward.json").unlink()
    again, _ = make(**settings | {"max_steps": 3})
    with pytest.raises(InputError, match=r"checkpoint-2/cooper_reward/reward.json: no such file"):
        again.train(resume_from_checkpoint=True)


def test_a_missing_column_is_told_before_anything_is_sampled(make):
    trainer, scorer = make(data=data_set("train", 8).remove_columns("answer"))
    with pytest.raises(InputError, match=r"no column 'answer' \(its columns: 'prompt', 'id', 'question', 'solution'"):
        trainer.train()
    assert trainer.state.num_input_tokens_seen == 0
    data = data_set("train", 8).rename_columns({"question": "problem", "answer": "target"})
    columns = Columns(question="problem", answer="target")
    trainer, scorer = make(columns=columns, data=data, max_steps=1)
    trainer.train()
    assert scorer.inner.version == 1


def test_an_empty_answer_is_told_with_its_row_before_anything_is_sampled(make):
    rows = data_set("train", 8).to_list()
    rows[5]["answer"] = ""
    trainer, _ = make(data=Dataset.from_list(rows))
    with pytest.raises(InputError, match=r"row 5 of the data set \(.*\): column 'answer' is empty"):
        trainer.train()
    assert trainer.state.num_input_tokens_seen == 0


@pytest.mark.parametrize(
    ("kind", "scales", "warns"), [("cooper", "group", 1), ("cooper", "none", 0), ("rule", "group", 0)]
)
def test_a_division_that_undoes_the_weight_of_trust_is_told(tiny_models, tmp_path, caplog, kind, scales, warns):
    settings = {} if kind == "rule" else {"reward_model": {"model": str(tiny_models / "reward_model")}}
    config = CooperRewardConfig.model_validate({"kind": kind, **settings, "cooptimization": {"assistant": CORRUPTER}})
    with CooperReward.from_config(config) as cooper:
        trainer_of(tiny_models, tmp_path, GRPOReward(cooper), scale_rewards=scales)
    assert caplog.text.count("set scale_rewards=False, or use kind: cooper_model") == warns


def without_every_second(problem: Problem, completion: str) -> str:
    return "silent" if len(completion) % 2 else "correct" if len(completion) % 4 else "wrong"


def test_trl_leaves_out_the_completions_on_which_there_is_no_opinion(tiny_models, tmp_path):
    config = CooperRewardConfig.model_validate({"kind": "rule", "rule": {"kind": f"{__name__}:without_every_second"}})
    with CooperReward.from_config(config) as cooper:
        trainer = trainer_of(tiny_models, tmp_path, GRPOReward(cooper), max_steps=1)
        trainer.train()
    rewards = torch.tensor(list(trainer._logs["rewards"]["cooper"])).view(-1, GROUP)
    advantages = torch.tensor(list(trainer._logs["advantages"])).view(-1, GROUP)
    missing = rewards.isnan()
    assert 0 < missing.sum() < missing.numel()
    assert advantages[missing].abs().max() == 0
    assert advantages[~missing].abs().max() > 0
    torch.testing.assert_close(advantages.sum(1), torch.zeros(len(advantages)), atol=1e-3, rtol=0)
    (row,) = [row for row in trainer.state.log_history if "loss" in row]
    assert row["cooper/reward/no_opinion"] == pytest.approx(missing.float().mean().item())


def test_a_named_solution_must_be_there(make):
    trainer, _ = make(columns=Columns(solution="derivation"))
    with pytest.raises(InputError, match="no column 'derivation'"):
        trainer.train()


def test_a_reward_without_its_callback_says_so(make, tiny_models, tmp_path):
    trainer, scorer = make()
    lonely = GRPOReward(scorer)
    trainer.reward_funcs[0] = lonely
    with pytest.raises(InputError, match=r"add callbacks=\[reward.callback\]"):
        trainer.train()


def test_conversations_and_their_last_message(make):
    assert Answer.of([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]).text == "b"
    assert Answer.of([{"role": "assistant", "content": [{"type": "text", "text": "x"}]}]).text == "x"
    assert Answer.of([{"role": "assistant", "content": None}]).text == ""


@pytest.mark.parametrize("kind", ["cooper_model", pytest.param("gad", marks=pytest.mark.slow)])
def test_a_reward_model_that_reads_chats_is_co_trained(kind, tiny_models, tmp_path):
    """With `gad` the rows have a teacher's answer and no reference."""
    folder = tmp_path / "chat_model"
    shutil.copytree(tiny_models / "reward_model", folder)
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}<|end|>{% endfor %}")
    model = {"model": str(folder), "input": "chat", "learning_rate": 1e-2, "max_input_tokens": 160}
    given = {"cooptimization": {"assistant": CORRUPTER}} if kind == "cooper_model" else {}
    config = CooperRewardConfig.model_validate({"kind": kind, "reward_model": model, **given})
    columns = Columns(answer=None if kind == "gad" else "answer", solution="solution")
    with CooperReward.from_config(config) as inner:
        scorer: Any = Recorded(inner)
        start = weights(learner(scorer))
        data = data_set("train", 64)
        rows = data.remove_columns("answer") if kind == "gad" else data
        trainer_of(tiny_models, tmp_path / "run", GRPOReward(scorer, columns), rows, max_steps=2).train()
        assert not all(map(torch.equal, weights(learner(scorer)), start))
        assert [call[2] for call in scorer.calls if call[0] == "train"] == [0, 1]
        assert all(pairs for what, _, _, pairs in scorer.calls if what == "update") or kind == "cooper_model"


class Owns:
    """An environment of TRL that owns its reward."""

    def __init__(self, reward: Any, waits: bool = False) -> None:
        self.reward, self.waits = reward, waits
        if waits:
            self.get_reward = self.later

    def get_reward(self):
        return self.reward

    async def later(self):
        return self.reward


@pytest.mark.parametrize(
    ("solved_at", "verdicts"), [(1.0, ["correct", "wrong", "silent", "correct"]), (None, [None] * GROUP)]
)
def test_get_reward_of_an_environment_is_the_verdict(make, solved_at, verdicts):
    trainer, scorer = make()
    reward = trainer.reward_funcs[0]
    reward.solved_at = solved_at
    row = data_set("test", 1)[0]
    columns = {name: [row[name]] * GROUP for name in ("id", "question", "answer", "solution", "metadata")}
    given = [Owns(1.5), Owns(0.5), Owns(None), Owns(1.0, waits=True)]
    texts, ids = ["answer: 1"] * GROUP, [[1, 2]] * GROUP
    paid = reward([row["prompt"]] * GROUP, texts, ids, trainer.state, lambda *_: None, environments=given, **columns)
    (_, _, _, [group]) = scorer.calls[0]
    assert [answer.verdict for answer in group.answers] == verdicts
    assert len(paid) == GROUP


class Raises(Owns):
    def get_reward(self):
        raise ZeroDivisionError("mine")


def test_what_raises_on_one_of_a_group_costs_that_answer(make, tmp_path, monkeypatch, caplog):
    trainer, scorer = make()
    reward = trainer.reward_funcs[0]
    row = data_set("test", 1)[0]
    columns = {name: [row[name]] * GROUP for name in ("id", "question", "answer", "solution", "metadata")}
    right, ids, logged = f"answer: {row['answer']}", [[1, 2]] * GROUP, dict[str, float]()

    def pay(texts: list[str], **more: Any) -> list[float | None]:
        return reward([row["prompt"]] * GROUP, texts, ids, trainer.state, logged.__setitem__, **columns, **more)

    with reading_raises(tmp_path, monkeypatch):
        assert None not in pay([right, RAISES, right, "answer: -1"])
    assert (logged["cooper/rule/unparsed"], logged["cooper/rule/accuracy"]) == (1 / GROUP, 2 / GROUP)
    reward.solved_at = 1.0
    pay([right] * GROUP, environments=[Owns(1.5), Raises(0), Owns(0), Owns(1)])
    (_, _, _, [group]) = scorer.calls[1]
    assert [answer.verdict for answer in group.answers] == ["correct", "silent", "wrong", "correct"]
    assert "Raises.get_reward: a text could not be graded" in caplog.text


def test_odd_texts_and_results_of_tools_do_not_end_a_step(make):
    trainer, scorer = make()
    reward = trainer.reward_funcs[0]
    row = data_set("test", 1)[0]
    columns = {name: [row[name]] * GROUP for name in ("id", "question", "answer", "solution", "metadata")}
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "add", "arguments": {}}}]}
    good = [{"role": "assistant", "content": f"answer: {row['answer']}"}]
    half = [{"role": "assistant", "content": "answer: \ud83d"}]
    asked = [good, half, [call, {"role": "tool", "content": [12, 7]}, *good], [{"role": "assistant", "content": None}]]
    paid = reward([row["prompt"]] * GROUP, asked, [[1, 2]] * GROUP, trainer.state, lambda *_: None, **columns)
    assert None not in paid
    (_, _, _, [group]) = scorer.calls[0]
    assert [answer.text for answer in group.answers] == [good[0]["content"], "answer: ?", good[0]["content"], ""]


def test_the_reward_among_the_callbacks_is_told():
    with pytest.raises(InputError, match=r"pass callbacks=\[reward\.callback\]"):
        GRPOReward(None).on_init_end(None, None, None)
