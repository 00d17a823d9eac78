"""verl's reward workers and checkpoint callback, with our classes found as verl finds them."""

# pyright: reportMissingImports=false

import asyncio

import pytest
import torch
from rows import row_of, texts_of

from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl import InputError

verl = pytest.importorskip("verl", reason="verl is not installed")
np = pytest.importorskip("numpy")
omegaconf = pytest.importorskip("omegaconf")

LIMIT = 96


@pytest.fixture
def config(tiny_models, tmp_path):
    return omegaconf.OmegaConf.create(
        {
            "actor_rollout_ref": {
                "model": {"path": str(tiny_models / "policy"), "tokenizer_path": None},
                "rollout": {"response_length": LIMIT},
            },
            "reward": {
                "num_workers": 2,
                "custom_reward_function": {"path": None, "name": "compute_score"},
                "reward_manager": {
                    "source": "importlib",
                    "name": "CooperRewardManager",
                    "module": {"path": "pkg://cooper_rl.adapters.verl"},
                },
                "reward_model": {"enable": False, "enable_resource_pool": False},
                "sandbox_fusion": None,
            },
            "trainer": {
                "checkpoint_callback_class": "cooper_rl.adapters.verl.CooperCheckpoint",
                "resume_mode": "auto",
                "default_local_dir": str(tmp_path / "checkpoints"),
            },
        }
    )


def item(problem, text: str, session: int, step: int, split: str = "train", **changed):
    """One answer as verl's agent loop hands it to a reward worker."""
    tokenizer = build_tokenizer()
    ids = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    responses = torch.tensor([ids + [0] * 3])
    mask = torch.tensor([[1, 1] + [1] * len(ids) + [0] * 3])
    batch = {"prompts": torch.tensor([[5, 5]]), "responses": responses, "attention_mask": mask}
    row = row_of(problem, split)
    extra = {name: row[name] for name in ("question", "solution", "metadata", "split")}
    fields = {
        "uid": f"{problem.id}-{step}",
        "session_id": session,
        "global_steps": step,
        "data_source": "arithmetic",
        "reward_model": {"ground_truth": problem.answer},
        "extra_info": extra,
    }
    columns = {name: np.array([value], dtype=object) for name, value in (fields | changed).items() if value is not None}
    return verl.DataProto.from_dict(tensors=batch, non_tensors=columns)


def manager(config):
    from verl.trainer.ppo.reward import load_reward_manager

    return load_reward_manager(config, build_tokenizer())


async def step_of(found, problems, step: int) -> list[dict]:
    answers = [(p, text, i) for p in problems for i, text in enumerate(texts_of(p))]
    return await asyncio.gather(*(found.run_single(item(p, text, i, step)) for p, text, i in answers))


def test_the_next_step_ends_the_one_before(service, problems, config):
    async def run():
        found = manager(config)
        first = await step_of(found, problems, 1)
        await found.run_single(item(problems[0], "so 4", 9, 1, split="test"))
        assert service.info()["open"] == {"step": 1, "groups": 8, "answers": 32}
        second = await step_of(found, problems, 2)
        return first, second

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    first, second = loop.run_until_complete(run())
    assert {row["reward_extra_info"]["cooper_version"] for row in first} == {0}
    assert {row["reward_extra_info"]["cooper_version"] for row in second} == {1}
    assert [row["reward_extra_info"]["cooper_verdict"] for row in first[:2]] == ["correct", "wrong"]
    assert [row["reward_score"] for row in first] != [row["reward_score"] for row in second]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"extra_info": {"question": "1"}}, "extra_info of arithmetic has no 'split'"),
        ({"extra_info": {"split": "train"}}, "extra_info of arithmetic has no column 'question'"),
        ({"reward_model": {"ground_truth": ""}}, "column 'answer' is empty"),
        ({"global_steps": None}, "set trainer.use_v1=True"),
    ],
)
def test_what_is_missing_is_told(service, problems, config, changed, words):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    found = manager(config)
    with pytest.raises(InputError, match=words):
        loop.run_until_complete(found.run_single(item(problems[0], "so 4", 0, 1, **changed)))


def test_a_checkpoint_ends_the_step_and_a_resumed_run_goes_back(service, problems, config, tmp_path):
    from verl.trainer.ppo.checkpoint_callback import build_checkpoint_callback

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    callback = build_checkpoint_callback(config)
    loop.run_until_complete(step_of(manager(config), problems, 1))
    folder = tmp_path / "checkpoints" / "global_step_1"
    folder.mkdir(parents=True)
    callback.on_save(trainer=None, global_step=1, checkpoint_dir=str(folder), async_save=False)
    assert (service.last_step, service.info()["open"]) == (1, None)
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("1")
    loop.run_until_complete(step_of(manager(config), problems, 2))
    service.update(2)
    build_checkpoint_callback(config)
    assert service.last_step == 1


@pytest.mark.slow
def test_the_reward_workers_of_verl_share_one_service(service, problems, config):
    ray = pytest.importorskip("ray")
    from verl.experimental.reward_loop import RewardLoopManager

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        loop = RewardLoopManager(config)
        rows = [item(p, text, i, 1) for p in problems[:2] for i, text in enumerate(texts_of(p))]
        width = max(row.batch["responses"].shape[1] for row in rows)
        for row in rows:
            gap = width - row.batch["responses"].shape[1]
            padded = {
                "prompts": row.batch["prompts"],
                "responses": torch.nn.functional.pad(row.batch["responses"], (0, gap)),
                "attention_mask": torch.nn.functional.pad(row.batch["attention_mask"], (0, gap)),
            }
            row.batch = verl.DataProto.from_dict(tensors=padded).batch
        scored = loop.compute_rm_score(verl.DataProto.concat(rows))
        assert (scored.batch["rm_scores"].sum(dim=1) > 0).all()
        assert service.info()["open"] == {"step": 1, "groups": 2, "answers": 8}
    finally:
        ray.shutdown()
