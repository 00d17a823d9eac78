"""verl's own trainer (GRPO, FSDP2 on a CPU) with our reward manager and checkpoint callback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rows import row_of

from cooper_lab.arithmetic.arms import ASSETS
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import Answer, AnswerGroup

for needed in ("verl", "ray", "transfer_queue"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")
datasets = pytest.importorskip("datasets")

HERE = Path(__file__).parent
REWARD = {
    "reward.reward_manager.source": "importlib",
    "reward.reward_manager.module.path": "pkg://cooper_rl.adapters.verl",
    "reward.reward_manager.name": "CooperRewardManager",
    "trainer.checkpoint_callback_class": "cooper_rl.adapters.verl.CooperCheckpoint",
}
SMALL = {
    "data.train_batch_size": 2,
    "data.max_prompt_length": 64,
    "data.max_response_length": 16,
    "data.dataloader_num_workers": 0,
    "algorithm.adv_estimator": "grpo",
    "actor_rollout_ref.rollout.n": 2,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 2,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 2,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 2,
    "actor_rollout_ref.rollout.agent.num_workers": 1,
    "reward.num_workers": 2,
    "trainer.val_before_train": False,
    "trainer.test_freq": -1,
    "trainer.save_freq": 2,
}
ON_A_CPU = {
    "trainer.device": "cpu",
    "trainer.n_gpus_per_node": 1,
    "trainer.logger": "[console]",
    "actor_rollout_ref.actor.strategy": "fsdp2",
    "actor_rollout_ref.actor.fsdp_config.model_dtype": "fp32",
    "+actor_rollout_ref.model.override_config.attn_implementation": "eager",
    "actor_rollout_ref.model.use_remove_padding": False,
    "actor_rollout_ref.model.enable_gradient_checkpointing": False,
    "actor_rollout_ref.rollout.name": "transformers",
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
    "actor_rollout_ref.rollout.free_cache_engine": False,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    "ray_kwargs.ray_init.num_cpus": 24,  # slots for its many actors, not cores
    "+ray_kwargs.ray_init.resources": "{NPU: 1}",
    "+ray_kwargs.ray_init.include_dashboard": False,
}
PROCESSES = {
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "verl_on_cpu",
    "VERL_ENGINE_DEVICE": "cuda",
    "RAY_memory_monitor_refresh_ms": "0",  # Ray ends workers where other programs have filled the memory
}


def train(folder: Path, steps: int) -> str:
    """What verl has said."""
    files = {"data.train_files": folder / "train.parquet", "data.val_files": folder / "train.parquet"}
    places = {"actor_rollout_ref.model.path": folder / "policy", "trainer.default_local_dir": folder / "checkpoints"}
    places["hydra.run.dir"] = folder / "hydra"
    settings = {**REWARD, **SMALL, **ON_A_CPU, **files, **places, "trainer.total_training_steps": steps}
    command = [sys.executable, "-m", "verl.trainer.main_ppo", *(f"{name}={value}" for name, value in settings.items())]
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **PROCESSES, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, (run.stdout + run.stderr)[-6000:]
    return run.stdout


@pytest.mark.slow
def test_verls_trainer_trains_the_reward_model_and_resumes_with_it(service, tmp_path):
    rows = [
        {
            "data_source": "arithmetic",
            "prompt": [{"role": "user", "content": problem.question}],
            "reward_model": {"style": "rule", "ground_truth": problem.answer},
            "extra_info": row_of(problem),
        }
        for problem in arithmetic_problems("train", 8)
    ]
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "train.parquet"))
    shutil.copytree(ASSETS / "policy", tmp_path / "policy")
    template = "{% for message in messages %}{{ message['content'] + '\\n' }}{% endfor %}"
    (tmp_path / "policy" / "chat_template.jinja").write_text(template)

    said = train(tmp_path, 2)
    assert [f"step:{step} " in said for step in (1, 2, 3)] == [True, True, False]
    assert (service.last_step, service.version, service.info()["open"]) == (2, 2, None)

    stray = AnswerGroup("stray", arithmetic_problems("test", 1)[0], [Answer("answer: 1")])
    service.score([stray], step=3)  # by what was interrupted
    said = train(tmp_path, 3)
    assert [f"step:{step} " in said for step in (2, 3)] == [False, True]
    assert (service.last_step, service.version, service.info()["open"]) == (3, 3, None)
