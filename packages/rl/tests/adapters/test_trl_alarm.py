"""The reward-hacking alarm as a callback of TRL's GRPOTrainer, with Cooper's reward and with another's."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra trl")

from transformers import TrainerControl
from trl_runs import GROUP, GRPOReward, data_set, reward_config, trainer_of

from cooper_rl import InputError
from cooper_rl.adapters.trl import HackingCallback

HACKED = [{"reward": 0.5 + 0.03 * t, "rewards/exact/mean": 0.6 - 0.03 * t} for t in range(15)]


NOTHING: Any = None  # what the callback does not read


def log(callback: HackingCallback, rows, history) -> TrainerControl:
    control = TrainerControl()
    for row in rows:
        history.append({**row, "step": len(history) + 1})
        state = SimpleNamespace(global_step=len(history), log_history=history)
        callback.on_log(None, state, control, logs=dict(row))
    return control


def test_it_warns_once_and_can_stop(caplog):
    history = []
    callback = HackingCallback("rewards/exact/mean", stop=True)
    assert not log(callback, HACKED[:6], history).should_training_stop
    assert log(callback, HACKED[6:], history).should_training_stop
    assert "rule/accuracy fell" in callback.signs[0]
    (said,) = [record.message for record in caplog.records if "signs of reward hacking" in record.message]
    first = next(row["step"] for row in history if row["watch/reward_hacking"])
    assert said.startswith(f"step {first}: ")
    assert history[-1]["watch/reward_hacking"] == 1


def test_a_resumed_run_sees_what_the_whole_run_would():
    whole, history = HackingCallback("rewards/exact/mean"), []
    log(whole, HACKED, history)
    resumed, kept = HackingCallback("rewards/exact/mean"), history[:6]
    state: Any = SimpleNamespace(log_history=kept)
    resumed.on_train_begin(NOTHING, state, NOTHING)
    log(resumed, HACKED[6:], kept)
    assert kept == history
    assert resumed.alarm.state() == whole.alarm.state()


def test_an_accuracy_that_is_not_logged_is_told():
    with pytest.raises(InputError, match="accuracy: 'rewards/right/mean' is not logged; there are rewards/exact/mean"):
        log(HackingCallback("rewards/right/mean"), HACKED, [])
    with pytest.raises(InputError, match=r"did you mean 'rewards/exact/mean'\?"):
        log(HackingCallback("rewards/exakt/mean"), HACKED, [])
    log(HackingCallback("rewards/right/mean"), [{"train_runtime": 1.0}, {"eval_reward": 1.0}], [])


def ends(completions, **unused) -> list[float]:
    return [float(len(completion) % 2) for completion in completions]


def test_it_reads_what_the_trainer_logs_of_any_reward(tiny_models, tmp_path):
    reward = GRPOReward.from_config(reward_config(tiny_models))
    cooper, other = HackingCallback(), HackingCallback("rewards/ends/mean")
    trainer = trainer_of(tiny_models, tmp_path, reward, data_set("train", 2 * GROUP), max_steps=2)
    trainer.reward_funcs.append(ends)
    trainer.reward_func_names.append("ends")
    trainer.reward_processing_classes.append(None)
    trainer.reward_weights = trainer.reward_weights.new_tensor([1.0, 0.0])
    trainer.add_callback(cooper)
    trainer.add_callback(other)
    trainer.train()
    rows = [row for row in trainer.state.log_history if "reward" in row]
    assert [row["watch/reward_hacking"] for row in rows] == [0, 0]
    read = cooper._read(rows[-1])
    assert read["reward/mean"] == rows[-1]["reward"]
    assert {"rule/accuracy", "reward_model/mean", "rollout/cut_off_rate"} <= read.keys()
    assert other._read(rows[-1])["rule/accuracy"] == rows[-1]["rewards/ends/mean"]
