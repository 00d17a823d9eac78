"""`engine: {kind: vllm}`: a run on one machine, completions drawn by vLLM."""

from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")

from transformers import Qwen2Config, Qwen2ForCausalLM

from cooper_audit.run.run_record import read_metrics
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl import CooperTrainer, build_config

ENGINE = {"kind": "vllm", "kv_cache_gib": 0.1}


def small_policy(folder: Path) -> str:
    """As small as vLLM takes them on a CPU."""
    tokenizer = build_tokenizer()
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1}
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    config = Qwen2Config(**shape, **ids, num_key_value_heads=1, vocab_size=len(tokenizer), max_position_embeddings=256)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def policy(tmp_path):
    return small_policy(tmp_path / "policy")


def test_a_run_trains_with_ratios_of_one_and_evaluates_with_filters(settings, policy):
    """The sampler's log-probabilities serve as the old ones: no ratio differs from 1 before the first update."""
    settings["policy"] |= {"model": policy}
    run = {**settings, "kind": "cooper", "steps": 3, "engine": ENGINE, "evaluation": {"every": 2, "k": 2, "top_p": 0.9}}
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert all(abs(row["policy/ratio"] - 1) < 1e-5 for row in rows[1:])
    assert {"test/rule_avg", "time/sample"} <= rows[2].keys()
    assert rows[3]["policy/skipped_updates"] == 0
