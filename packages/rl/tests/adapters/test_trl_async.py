"""TRL's AsyncGRPO: its own scoring of a group, with our reward as it arrives in the other process."""

import asyncio
import pickle
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import pytest
from rows import row_of, texts_of

from cooper_rl import InputError

worker = pytest.importorskip("trl.experimental.async_grpo.async_rollout_worker", reason="needs the extra trl")


def loop_with(reward, tokenizer):
    """The loop that TRL runs in its child process."""
    from accelerate import PartialState
    from datasets import Dataset

    PartialState()  # TRL's log wants it
    spawn = get_context("spawn")
    return worker._AsyncRolloutLoop(
        model_name="policy",
        dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": "1+1"}]}]),
        reward_funcs=[reward],
        processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id],
        rollout_buffer=spawn.Queue(),
        model_version_value=spawn.Value("i", 0),
        heartbeat_value=spawn.Value("d", 0.0),
        failed_event=spawn.Event(),
        exception_info_queue=spawn.Queue(),
        metrics_queue=spawn.Queue(),
        num_generations=4,
    )


def group_of(problem, number: int, **missing):
    texts = texts_of(problem)
    row = {name: [value] * 4 for name, value in row_of(problem).items() if name not in missing}
    return worker.RolloutGroup(
        prompts=[[{"role": "user", "content": problem.question}]] * 4,
        reward_kwargs=row,
        completions=[[{"role": "assistant", "content": text}] for text in texts],
        completions_ids=[[5, 6, 1]] * 4,
        completions_sequences=[[worker.TrainingSequence([5, 6], [0, 1], [0.0, -1.0], rollout_id=None)] for _ in texts],
        tool_call_counts=[0] * 4,
        tool_failure_counts=[0] * 4,
        model_version=0,
        group_id=number,
        env_rewards=[None] * 4,
        rollout_rewards=[None] * 4,
    )


@pytest.fixture
def tokenizer():
    from cooper_lab.arithmetic.tokenizer import build_tokenizer

    found = build_tokenizer()
    found.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    found.response_template = {}  # TRL makes one only for chat templates that it knows
    return found


def test_groups_are_scored_in_the_other_process_and_the_service_counts_steps(service, problems, tokenizer):
    from cooper_rl.adapters.trl_async import AsyncGRPOReward

    reward = pickle.loads(pickle.dumps(AsyncGRPOReward(service, commit="count:16")))
    loop = loop_with(reward, tokenizer)

    async def run():
        return [await loop._score_group(group_of(problem, i)) for i, problem in enumerate(problems)]

    samples = asyncio.run(run())
    assert all(0 < sample.metrics["rewards/cooper"] < 1 for group in samples for sample in group)
    assert service.last_step >= 1  # 32 answers, 16 a step
    service.update(2)
    assert (service.last_step, service.version) == (2, 2)


def test_a_missing_column_is_told(service, problems, tokenizer):
    from cooper_rl.adapters.trl_async import AsyncGRPOReward

    loop = loop_with(AsyncGRPOReward(service, commit="count:16"), tokenizer)
    with pytest.raises(InputError, match="the data set has no column 'answer'"):
        asyncio.run(loop._score_group(group_of(problems[0], 0, answer=True)))


def test_checkpoints_go_with_those_of_trl(service, problems, tmp_path):
    from cooper_rl.adapters.trl_async import AsyncGRPOReward

    callback: Any = AsyncGRPOReward(service, commit="count:4").callback
    args, state = SimpleNamespace(output_dir=str(tmp_path)), SimpleNamespace(global_step=3, is_world_process_zero=True)
    callback.on_save(args, state, None)
    AsyncGRPOReward(service, commit="count:4")([], ["1", "2", "3", "4"], [[1]] * 4, **columns_of(problems[0]))
    service.update(1)
    callback.on_train_begin(args, state, None)
    assert service.last_step == 0


def columns_of(problem):
    return {name: [value] * 4 for name, value in row_of(problem).items()}
