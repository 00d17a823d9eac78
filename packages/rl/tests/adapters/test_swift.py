"""ms-swift's scoring of completions, with our reward function and callback out of its tables."""

# pyright: reportMissingImports=false

from types import SimpleNamespace

import pytest
import torch
from rows import row_of, texts_of

from cooper_rl import InputError

pytest.importorskip("swift", reason="ms-swift is not installed")


@pytest.fixture
def plugin(service):
    from swift.callbacks import callbacks_map
    from swift.rewards import orms

    import cooper_rl.adapters.swift as adapter

    trainer = SimpleNamespace(model=torch.nn.Linear(1, 1))
    yield SimpleNamespace(reward=orms["cooper"](), callback=callbacks_map["cooper"](None, trainer), trainer=trainer)
    adapter.SwiftCallback.trainer_of_this_process = None


def scored(plugin, problems, step: int, **missing):
    from swift.rl_core.data import GRPOSample
    from swift.rl_core.grpo_algorithm import score_completions

    samples = []
    for number, problem in enumerate(problems):
        for i, text in enumerate(texts_of(problem)):
            messages = [{"role": "user", "content": problem.question}, {"role": "assistant", "content": text}]
            row = {"messages": messages, **row_of(problem)}
            sample = GRPOSample.from_row({name: value for name, value in row.items() if name not in missing})
            sample.prompt_id, sample.request_id = f"prompt_{number}", f"chatcmpl-{step}-{number}-{i}"
            samples.append(sample)
    state = SimpleNamespace(global_step=step - 1)
    return score_completions(samples, [plugin.reward], [None], False, torch.device("cpu"), trainer_state=state)


def test_a_step_is_scored_and_trained_and_an_evaluation_is_not(service, plugin, problems):
    rewards = scored(plugin, problems, 1)
    assert rewards.shape == (32, 1)
    assert ((rewards > 0) & (rewards < 1)).all()
    assert service.info()["open"] == {"step": 1, "groups": 8, "answers": 32}
    plugin.trainer.model.eval()
    scored(plugin, problems, 1)
    assert service.info()["open"]["answers"] == 32
    state = SimpleNamespace(global_step=1, is_world_process_zero=True)
    plugin.callback.on_step_end(None, state, None)
    assert (service.version, service.last_step) == (1, 1)


def test_checkpoints_go_with_those_of_ms_swift(service, plugin, problems, tmp_path):
    args, state = SimpleNamespace(output_dir=str(tmp_path)), SimpleNamespace(global_step=1, is_world_process_zero=True)
    scored(plugin, problems, 1)
    plugin.callback.on_step_end(args, state, None)
    plugin.callback.on_save(args, state, None)
    plugin.trainer.model.train()
    scored(plugin, problems, 2)
    plugin.callback.on_train_begin(args, state, None)
    assert (service.last_step, service.info()["open"]) == (1, None)


def test_missing_columns_and_a_missing_callback_are_told(service, plugin, problems):
    with pytest.raises(InputError, match="no column 'question'"):
        scored(plugin, problems, 1, question=True)
    import cooper_rl.adapters.swift as adapter

    adapter.SwiftCallback.trainer_of_this_process = None
    with pytest.raises(InputError, match="add --callbacks cooper"):
        scored(plugin, problems, 1)
