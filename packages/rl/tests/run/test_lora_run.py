"""A run whose policy and reward model both have adapters: its record, checkpoints, continuation and final models."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from typer.testing import CliRunner

from cooper_audit.run.run_record import read_metrics
from cooper_base.cli.main import commands
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.local.sampler import NativeSampler
from rank_processes import together, two_ranks


@pytest.fixture
def adapted(settings):
    lora = {"rank": 4, "alpha": 8}
    return {
        **settings,
        "steps": 2,
        "policy": {**settings["policy"], "learning_rate": 2e-2, "lora": lora},
        "reward_model": {**settings["reward_model"], "lora": lora},
        "algorithm": {"min_spread": 0.0, "kl": {"coefficient": 0.05, "where": "loss"}},
        "checkpoint": {"every": 1},
    }


@pytest.mark.slow
@together
def test_a_cluster_trains_the_same_adapters(adapted):
    """With the reference and the reward model in the policy's two processes."""
    adapted |= {"kind": "cooper_model"}  # untrained models earn no trust
    local = _fit({**adapted, "name": "local"})
    two_ranks()  # Ray itself
    both = _fit({**adapted, "engine": {"kind": "cluster", "policy_ranks": 2, "cpus_per_rank": 0.1}})
    for found, expected in zip(_timeless(both), _timeless(local), strict=True):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for name in ("policy", "reward_model"):
        folders = [both.directory / "final" / name, local.directory / "final" / name, Path(adapted[name]["model"])]
        one, other, start = (load_file(folder / "model.safetensors") for folder in folders)
        moved = torch.stack([(other[key] - start[key]).norm() for key in start]).norm()
        apart = torch.stack([(other[key] - one[key]).norm() for key in start]).norm()
        assert apart < 0.02 * moved  # AdamW magnifies the rounding of gradients that are all but 0


def _fit(settings, resume=False, steps=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        if steps is None:
            trainer.fit()
        else:
            trainer.fit(lambda step, _: trainer.request_stop() if step == steps else None)
    return trainer


def _timeless(trainer):
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(trainer.directory)]


def test_both_models_learn_and_the_final_ones_are_plain(adapted):
    trainer = _fit({**adapted, "kind": "cooper_model"})
    first, last = (row for row in _timeless(trainer) if row["step"] > 0)
    assert first["policy/reference_kl"] == pytest.approx(0, abs=1e-6)  # the adapter starts as no change
    assert last["policy/reference_kl"] > 1e-6
    checkpoint, final = trainer.directory / "checkpoints" / "000002", trainer.directory / "final"
    assert not list(checkpoint.rglob("model.safetensors"))
    assert "This folder holds a LoRA adapter" in (checkpoint / "policy" / "README.md").read_text()
    assert "holds a LoRA adapter" not in (final / "policy" / "README.md").read_text()
    tokens = torch.tensor([[5, 6, 7, 8]])
    parts: Any = trainer.parts
    for name, kind, learner in (
        ("policy", AutoModelForCausalLM, parts.policy),
        ("reward_model", AutoModelForSequenceClassification, parts.reward.learning.learner),
    ):
        plain = kind.from_pretrained(final / name)
        assert not any("lora" in key for key in plain.state_dict())
        torch.testing.assert_close(plain(tokens).logits, learner.model(tokens).logits, rtol=0, atol=1e-5)
    # What reads model folders reads a checkpoint's adapter too.
    sampler = NativeSampler.from_folder(str(checkpoint / "policy"))
    expected = AutoModelForCausalLM.from_pretrained(final / "policy")(tokens).logits[0, -1]
    torch.testing.assert_close(sampler.next_token_logits(tokens.tolist())[0], expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(adapted):
    whole = _fit({**adapted, "name": "whole"})
    _fit(adapted, steps=1)
    resumed = _fit(adapted, resume=True)
    assert _timeless(resumed) == _timeless(whole)
    for name in ("policy", "reward_model"):
        for file in ("adapter_model.safetensors", "trainer_state/optimizer.safetensors"):
            one, other = (run.directory / "checkpoints" / "000002" / name / file for run in (resumed, whole))
            assert one.read_bytes() == other.read_bytes()


def test_the_command_merges_a_checkpoint(adapted, tmp_path):
    trainer = _fit({**adapted, "steps": 1, "evaluation": {"every": 0}})
    source = trainer.directory / "checkpoints" / "000001" / "reward_model"
    result = CliRunner().invoke(commands, ["export", str(source), str(tmp_path / "merged")])
    assert result.exit_code == 0, result.output
    merged = AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged")
    final = AutoModelForSequenceClassification.from_pretrained(trainer.directory / "final" / "reward_model")
    torch.testing.assert_close(merged.state_dict(), final.state_dict(), rtol=0, atol=0)
