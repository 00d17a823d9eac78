"""Log-probabilities are also true for models whose layers are not plain attention with rotary positions."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, MistralConfig, MistralForCausalLM

from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.local.sampler import NativeSampler
from drawn import draw

PLAIN = {"vocab_size": 64, "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": 1}
ROTARY = PLAIN | {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
}
CONFIGS = {
    "gpt2": PLAIN | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 96},  # learned absolute positions
    "bloom": PLAIN | {"hidden_size": 32, "n_layer": 2, "n_head": 4},  # ALiBi, no position ids
    "mistral": ROTARY | {"sliding_window": 8},
    "gemma2": ROTARY | {"sliding_window": 8, "head_dim": 8},  # alternating windows
    "qwen3": ROTARY | {"head_dim": 8},
    "mamba": PLAIN | {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},  # no attention at all
}


CASES = [(kind, "eager") for kind in CONFIGS] + [(kind, "sdpa") for kind in ("gpt2", "mistral", "qwen3")]


@pytest.mark.parametrize(("kind", "attention"), CASES)
def test_logprobs_equal_a_teacher_forced_forward(kind, attention, tokenizer):
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **CONFIGS[kind])
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()
    prompts = [[5, 6, 7], list(range(10, 31)), [40]]
    groups = draw(NativeSampler(tokenizer, model), prompts, 4, SamplingParams(max_tokens=20), seed=0)
    for prompt, group in zip(prompts, groups, strict=True):
        for completion in group:
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([prompt + completion.token_ids])).logits[0]
            chosen = torch.tensor(completion.token_ids)[:, None]
            expected = logits.log_softmax(-1)[len(prompt) - 1 : -1].gather(-1, chosen).squeeze(-1)
            torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=1e-4, rtol=0)


def test_a_row_at_the_end_of_the_context_may_wait_for_the_others(tokenizer):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", **CONFIGS["gpt2"])).eval()
    long = [5 + i % 40 for i in range(94)]  # leaves two tokens; one row of eight does not leave the batch
    params = SamplingParams(max_tokens=20, min_tokens=20)
    groups = draw(NativeSampler(tokenizer, model), [long] + [[4 + i, 5] for i in range(7)], 1, params, seed=0)
    assert [len(group[0].token_ids) for group in groups] == [2] + [20] * 7


class TakesCache(MistralForCausalLM):
    """The signature of transformers from 5.24 on, where `past_key_values` is deprecated."""

    def forward(self, input_ids, cache=None, attention_mask=None, position_ids=None, use_cache=None):
        return super().forward(input_ids, attention_mask, position_ids, cache, use_cache=use_cache)


def test_the_cache_goes_by_the_name_that_the_model_has_for_it(tokenizer):
    config = MistralConfig.from_dict(CONFIGS["mistral"])
    torch.manual_seed(0)
    plain = AutoModelForCausalLM.from_config(config).eval()
    renamed = TakesCache(config).eval()
    renamed.load_state_dict(plain.state_dict())
    params = SamplingParams(max_tokens=8)
    expected, drawn = (draw(NativeSampler(tokenizer, m), [[5, 6, 7]], 2, params, seed=0) for m in (plain, renamed))
    assert [one.token_ids for one in drawn[0]] == [one.token_ids for one in expected[0]]
