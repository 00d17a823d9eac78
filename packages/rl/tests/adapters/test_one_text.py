"""One run with a tool, in the form in which each trainer has it: through every adapter the service reads one text."""

# pyright: reportMissingImports=false, reportCallIssue=false

import asyncio
import json
from types import SimpleNamespace

import pytest
from rows import row_of

from cooper_rl import Answer, AnswerGroup
from cooper_rl.adapters import served
from tool_run import TEXT

CALL = {"name": "add", "arguments": {"a": 12, "b": 7}}
HERMES = f"I add them.\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
BACK = "\n<|im_start|>user\n<tool_response>\n19\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
RUN = [
    {"role": "assistant", "content": "I add them.", "tool_calls": [{"type": "function", "function": CALL}]},
    {"role": "tool", "name": "add", "content": "19"},
    {"role": "assistant", "content": "answer: 19"},
]


@pytest.fixture
def judged(monkeypatch):
    """The environment has called the run wrong, although the rule would accept its reply."""
    monkeypatch.setenv(served.COLUMNS, '{"verdict": "verdict"}')
    served.columns.cache_clear()
    yield {"verdict": "wrong"}
    served.columns.cache_clear()


@pytest.fixture
def tokenizer(tmp_path):
    """Byte by byte, with the two special tokens of ChatML, in a folder."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: index for index, letter in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<|im_start|>", special=True)])
    made = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|im_end|>")
    made.save_pretrained(tmp_path)
    return made


def check(seen, verdict: str | None = None) -> None:
    (answer,) = seen()
    assert (answer.transcript, answer.text, answer.verdict) == (TEXT, "answer: 19", verdict)


def test_the_services_clients_and_a_request_by_hand(service, problems, seen):
    import httpx

    service.score([AnswerGroup("g", problems[0], [Answer.of(RUN, verdict="wrong")])], step=1)
    check(seen, "wrong")
    problem = {"id": problems[0].id, "question": problems[0].question, "answer": problems[0].answer}
    groups = [{"id": "h", "problem": problem, "completions": [{"messages": RUN, "verdict": "wrong"}]}]
    found = httpx.post(f"{service.url}/v1/score", json={"step": 1, "groups": groups}).json()
    assert found["groups"][0]["verdicts"] == ["wrong"]
    assert [one.transcript for one in seen()] == [TEXT, TEXT]


def test_trl(service, problems, seen):
    from cooper_rl.adapters.trl import GRPOReward

    reward = GRPOReward(service)
    reward.callback.args = SimpleNamespace(num_generations=1, world_size=1, process_index=0)
    reward.callback.model = SimpleNamespace(training=True)
    columns = {name: [value] for name, value in row_of(problems[0]).items()}
    environments = [SimpleNamespace(verdict="wrong")]
    state = SimpleNamespace(global_step=0)
    reward([""], [RUN], [[1]], state, lambda *_: None, environments=environments, **columns)
    check(seen, "wrong")


def test_trl_async(service, problems, seen):
    from cooper_rl.adapters.trl_async import AsyncGRPOReward

    columns = {name: [value] for name, value in row_of(problems[0]).items()}
    AsyncGRPOReward(service, commit="count:64")([""], [RUN], [[1]], **columns)
    check(seen)


def test_verl(service, problems, seen, tokenizer, judged):
    verl = pytest.importorskip("verl", reason="verl is not installed")
    import numpy as np
    import torch

    from cooper_rl.adapters.verl import CooperRewardManager

    omegaconf = pytest.importorskip("omegaconf")
    config = omegaconf.OmegaConf.create({"actor_rollout_ref": {"rollout": {"response_length": 999}}})
    ids = tokenizer(f"{HERMES}<|im_end|>{BACK}answer: 19<|im_end|>")["input_ids"]
    row = row_of(problems[0])
    fields = {
        "uid": "u",
        "global_steps": 1,
        "data_source": "arithmetic",
        "reward_model": {"ground_truth": row.pop("answer")},
        "extra_info": row,
        "tool_extra_fields": judged,
    }
    tensors = {"responses": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids) + 2, dtype=torch.long)}
    columns = {name: np.array([value], dtype=object) for name, value in fields.items()}
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    manager = CooperRewardManager(config, tokenizer, None)
    loop.run_until_complete(manager.run_single(verl.DataProto.from_dict(tensors=tensors, non_tensors=columns)))
    check(seen, "wrong")


def test_skyrl(service, problems, seen):
    skyrl_gym = pytest.importorskip("skyrl_gym", reason="skyrl-gym is not installed")
    from cooper_rl.adapters.skyrl import CooperEnv

    class Adds(CooperEnv):
        def respond(self, action: str):
            self.verdict = "wrong"
            return [{"role": "user", "content": "19"}] if "<tool_call>" in action else None

    assert issubclass(Adds, skyrl_gym.Env)
    env = Adds({}, {**row_of(problems[0]), "max_turns": 3})
    first = env.step(HERMES)
    assert (first["done"], first["reward"], first["observations"]) == (False, 0.0, [{"role": "user", "content": "19"}])
    assert env.step("answer: 19")["done"]
    check(seen, "wrong")


def test_nemo_rl(service, problems, seen, judged):
    pytest.importorskip("nemo_rl.environments.interfaces", reason="NeMo-RL is not installed")
    from cooper_rl.adapters.nemo_rl import ServedEnvironment

    class Adds(ServedEnvironment):
        def respond(self, messages, row):
            row |= judged
            return "19" if "<tool_call>" in messages[-1]["content"] else None

    log = [{"role": "user", "content": "12 + 7 = ?"}, {"role": "assistant", "content": HERMES}]
    rows = [row_of(problems[0])]
    first = Adds().step([log], rows)
    assert (first.terminateds.tolist(), first.rewards.tolist()) == ([0], [0])
    log += [first.observations[0], {"role": "assistant", "content": "answer: 19"}]
    assert Adds().step([log], rows).terminateds.tolist() == [1]
    check(seen, "wrong")


def test_verifiers(service, problems, seen, judged):
    vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
    from test_verifiers import task_of
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask
    from verifiers.v1.types import AssistantMessage, ToolCall, ToolMessage, UserMessage

    task = task_of(row_of(problems[0]))
    call = ToolCall(id="1", name="add", arguments=json.dumps(CALL["arguments"]))
    messages = [
        UserMessage(content="12 + 7 = ?"),
        AssistantMessage(content="I add them.", tool_calls=[call]),
        ToolMessage(tool_call_id="1", content="19"),
        AssistantMessage(content="answer: 19"),
    ]
    nodes = [
        MessageNode(parent=i - 1 if i else None, message=message, sampled=message.role == "assistant")
        for i, message in enumerate(messages)
    ]
    agent = AgentInfo.model_construct()
    trace = vf.Trace(task=TraceTask(type="Task", data=task.data), agent=agent, nodes=nodes, info=judged)
    asyncio.run(task.score(trace))
    check(seen, "wrong")


def test_ms_swift(service, problems, seen, judged):
    pytest.importorskip("swift.rewards", reason="ms-swift is not installed")
    from cooper_rl.adapters import swift

    swift.SwiftCallback.trainer_of_this_process = SimpleNamespace(model=SimpleNamespace(training=True))
    run = [{"role": "assistant", "content": HERMES}, RUN[1], RUN[2]]
    messages = [{"role": "user", "content": "12 + 7 = ?"}, *run]
    row = {**row_of(problems[0]), "messages": messages, "request_id": "1", "prompt_id": "2"}
    row["rollout_infos"] = {"num_turns": 2, **judged}
    swift.CooperORM(None)(["answer: 19"], SimpleNamespace(global_step=0), **{k: [v] for k, v in row.items()})
    check(seen, "wrong")


def test_slime(service, problems, seen, tokenizer, judged, tmp_path):
    pytest.importorskip("slime.rollout.rm_hub", reason="slime is not installed")
    from slime.utils.types import Sample

    from cooper_rl.adapters.slime import reward

    parts = [f"{HERMES}<|im_end|>", BACK, "answer: 19<|im_end|>"]
    ids = [tokenizer(part)["input_ids"] for part in parts]
    mask = [int(i != 1) for i, part in enumerate(ids) for _ in part]
    row = row_of(problems[0])
    sample = Sample(group_index=1, index=1, response="".join(parts), label=row.pop("answer"), loss_mask=mask)
    sample.tokens, sample.metadata, sample.status = (
        [1, 2, *(token for part in ids for token in part)],
        row | judged,
        Sample.Status.COMPLETED,
    )
    asyncio.run(reward(SimpleNamespace(hf_checkpoint=str(tmp_path)), sample))
    check(seen, "wrong")


@pytest.mark.parametrize("end", ["<|im_end|>", None])
def test_openrlhf(service, problems, seen, monkeypatch, end):
    from cooper_rl.adapters.openrlhf import reward_func

    if end is not None:
        monkeypatch.setenv("COOPER_END_TOKEN", end)
    query = f"ask {HERMES}<|im_end|>{BACK}answer: 19<|im_end|>"
    reward_func([query], ["ask "], [json.dumps(row_of(problems[0]))])
    check(seen)
