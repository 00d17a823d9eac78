"""Measures what the machine can do, and what training and decoding reach of it. Engines: gemm, training, decoding.

`gemm` multiplies matrices of the model's shapes, with `--rows` rows, by PyTorch's own kernels, by oneDNN, and by oneDNN
in bfloat16 with packed weights.
"""

from typing import Any

import numpy as np
import torch

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.cpu.linear import FastLinear, has_bfloat16, has_onednn, packed, product, use_fast_linear
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.records import Column
from measure import Meter, report
from workload import arguments, model_folder


def linear_shapes(folder: str) -> list[tuple[int, int]]:
    """(inputs, outputs) of every linear layer of one decoder block."""
    model = TorchPolicyLearner.from_config(LearnerConfig(model=folder, device="cpu"), 0, trainable=False).model
    block: Any = model.base_model.get_submodule("layers.0")
    layers = [module for module in block.modules() if isinstance(module, torch.nn.Linear)]
    return [(layer.in_features, layer.out_features) for layer in layers]


def gemm(options) -> None:
    multiply: dict[str, Any] = {"torch": torch.nn.functional.linear}
    if has_onednn():
        multiply["onednn"] = product
    if has_bfloat16():
        multiply["bfloat16"] = product
    shapes, found = linear_shapes(model_folder(options.model)), {}
    for name, times in multiply.items():
        meter, work = Meter(), 0
        for inputs, outputs in shapes:
            x, w = torch.randn(options.rows, inputs), torch.randn(outputs, inputs)
            if name == "bfloat16":
                x, w = x.bfloat16(), packed(w.bfloat16())
            one = 2 * options.rows * inputs * outputs
            repeats = max(3, int(4e9 / one))
            for measured in (False, True):
                with torch.inference_mode(), meter.measure() if measured else Meter().measure():
                    for _ in range(repeats):
                        times(x, w)
            work += repeats * one
        found[f"gflops_{name}"] = work / meter.cpu / 1e9
        last = meter
    report(last, 1, **found)


def training(options) -> None:
    """Forward and backward of `--rows` tokens in rows of 128. FLOP = 6 x parameters x tokens, without attention."""
    folder = model_folder(options.model)
    learner = TorchPolicyLearner.from_config(LearnerConfig(model=folder, device="cpu"), 10)
    use_fast_linear(learner.model, {"torch": torch.nn.Linear, "onednn": FastLinear}.get(options.kernels))
    vocabulary = learner.model.config.vocab_size
    generator = torch.Generator().manual_seed(0)
    rows = Column.of(torch.randint(4, vocabulary, (options.rows // 128, 128), generator=generator).tolist())
    lengths = np.full(len(rows), 96)
    per_token = np.full(lengths.sum(), 0.1)
    batch = PolicyBatch(rows, lengths, per_token, per_token, per_token, per_token)
    objective = PolicyObjective(loss=PPOClip(), kl=None)
    for _ in range(2):  # after one, memory still grows
        learner.forward_backward(batch, objective)
    meter = Meter()
    with meter.measure():
        learner.forward_backward(batch, objective)
    embedded = _weights(learner.model.get_input_embeddings())
    head = _weights(learner.model.get_output_embeddings())
    body = sum(p.numel() for p in learner.model.parameters()) - embedded - (0 if _tied(learner.model) else head)
    tokens = options.rows // 128 * 128
    flop = 6 * (body * tokens + head * tokens * 96 / 128)
    report(meter, tokens, gflops=flop / meter.cpu / 1e9)


def decoding(options) -> None:
    """One more token for each of `--rows` completions, eight for each prompt. FLOP = 2 x parameters x rows."""
    sampler = NativeSampler.from_folder(model_folder(options.model), device="cpu")
    model = sampler._model
    assert model is not None
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(4, model.config.vocab_size, (max(1, options.rows // 8), 60), generator=generator).tolist()
    meters = []
    for tokens in (48, 80):
        meter = Meter()
        with meter.measure():
            sampler.sample(prompts, min(8, options.rows), SamplingParams(max_tokens=tokens, min_tokens=tokens), 0)
        meters.append(meter)
    step = Meter((meters[1].cpu - meters[0].cpu) / 32, (meters[1].wall - meters[0].wall) / 32)
    embedded = _weights(model.get_input_embeddings())
    used = sum(p.numel() for p in model.parameters()) - (0 if _tied(model) else embedded)
    report(step, options.rows, gflops=2 * used * options.rows / step.cpu / 1e9)


def _weights(layer: Any) -> int:
    return layer.weight.numel()


def _tied(model) -> bool:
    return model.get_input_embeddings().weight is model.get_output_embeddings().weight


if __name__ == "__main__":
    parser = arguments(__doc__, "gemm", "training", "decoding")
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--kernels", default="auto")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    {"gemm": gemm, "training": training, "decoding": decoding}[given.engine](given)
