"""What any number of processes has saved, any number goes on from; and what a bad row does to all of them."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from file_sender import FileSender
from safetensors import safe_open
from safetensors.torch import load_file
from sharded import CONFIG, PLAIN, policy_batch, train
from transformers import LlamaForCausalLM

from cooper_base.errors import InputError
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from rank_processes import together, two_ranks
from tiny_llama import tiny_config


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@together
@pytest.mark.slow
@pytest.mark.parametrize(
    ("saver", "loader"),
    [(1, 2), (2, 2), (2, 1), (4, 2), (2, 4), (4, 1), (1, 4)],
)
def test_a_checkpoint_goes_on_in_another_number_of_processes(engines, folder, tmp_path, saver, loader):
    config = CONFIG.model_copy(update={"model": str(folder)})
    first = engines(saver).policy(config, 10)
    train(first, 2)
    first.save(tmp_path / "two")
    train(first, 2)
    first.save(tmp_path / "four")
    second = engines(loader).policy(config, 10)
    second.load(tmp_path / "two")
    train(second, 2)
    second.save(tmp_path / "again")
    expected, found, start = (weights_of(at) for at in (tmp_path / "four", tmp_path / "again", folder))
    assert "lm_head.weight" not in expected | found
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)
    assert max((expected[name] - start[name]).abs().max() for name in start) > 1e-3


@pytest.mark.slow
@together
def test_every_process_writes_its_own_moments_and_only_tensors(folder, tmp_path):
    learner = two_ranks().policy(CONFIG.model_copy(update={"model": str(folder)}), 10)
    train(learner, 1)
    learner.save(tmp_path)
    parts = sorted((tmp_path / "trainer_state").glob("*.safetensors"))
    assert [part.name for part in parts] == [f"optimizer-0000{i}-of-00002.safetensors" for i in (1, 2)]
    rows = [safe_open(part, "pt").get_slice("model.embed_tokens.weight:exp_avg").get_shape()[0] for part in parts]
    whole = weights_of(tmp_path)["model.embed_tokens.weight"].shape[0]
    assert sum(rows) == whole
    assert max(rows) == math.ceil(whole / 2)


@pytest.mark.slow
@together
def test_a_checkpoint_of_another_model_is_refused(folder, tmp_path):
    config = CONFIG.model_copy(update={"model": str(folder)})
    learner = two_ranks().policy(config, 10)
    train(learner, 1)
    learner.save(tmp_path / "saved")
    other = tmp_path / "other"
    LlamaForCausalLM(tiny_config(vocab_size=200, intermediate_size=40)).save_pretrained(other)
    build_tokenizer().save_pretrained(other)
    with pytest.raises(InputError, match="does not fit this model"):
        two_ranks().policy(CONFIG.model_copy(update={"model": str(other)}), 10).load(tmp_path / "saved")


@together
@pytest.mark.slow
def test_a_bad_row_in_one_process_skips_the_update_in_all(folder, tmp_path):
    learner = two_ranks().policy(CONFIG.model_copy(update={"model": str(folder)}), 10)
    good = policy_batch()
    weights = good.weights.copy()
    weights[0] = math.nan
    assert math.isnan(learner.forward_backward(replace(good, weights=weights), PLAIN)["loss"])
    assert learner.optim_step()["skipped_updates"] == 1
    learner.save(tmp_path / "skipped")
    torch.testing.assert_close(weights_of(tmp_path / "skipped"), weights_of(folder), rtol=0, atol=0)
    learner.forward_backward(good, PLAIN)
    assert math.isfinite(learner.optim_step()["grad_norm"])


@pytest.mark.slow
@together
def test_a_refused_batch_leaves_the_processes_in_step(folder):
    """One process has the bad row, and neither waits for the other afterwards."""
    learner = two_ranks().policy(CONFIG.model_copy(update={"model": str(folder)}), 10)
    good = policy_batch()
    lengths = good.lengths.copy()
    lengths[0] = len(good.token_ids[0])
    with pytest.raises(ValueError, match="at least one prompt token"):
        learner.logprobs(good.token_ids, lengths)
    assert len(learner.logprobs(good.token_ids, good.lengths)) == good.lengths.sum()


@together
def test_weights_are_handed_over_whole(folder, tmp_path):
    learner = two_ranks().policy(CONFIG.model_copy(update={"model": str(folder)}), 10)
    with pytest.raises(RuntimeError, match="connect first"):
        learner.sync_weights("none")
    learner.connect(partial(FileSender, tmp_path))
    learner.sync_weights("start")
    train(learner, 1)
    learner.logprobs(policy_batch().token_ids, policy_batch().lengths)
    learner.sync_weights("trained")
    learner.save(tmp_path / "saved")
    torch.testing.assert_close(load_file(tmp_path / "start.safetensors"), weights_of(folder), rtol=0, atol=0)
    torch.testing.assert_close(
        load_file(tmp_path / "trained.safetensors"), weights_of(tmp_path / "saved"), rtol=0, atol=0
    )
    learner.connect(partial(FileSender, tmp_path))
    assert sorted(path.name for path in tmp_path.glob("closed*")) == ["closed 0", "closed 1"]
