"""Compares bfloat16 with our float32 in one process, in turns: CPU seconds, log-probabilities or logits, gradients.

    python benchmarks/speed/precision.py training --model models/smollm2-135m-instruct --repeats 5

`training` is a forward and backward pass of the policy, `scoring` the reward model, `sampling` the native sampler, on
random tokens of random length. The arms share one model: `float32`; `autocast`, PyTorch's own bfloat16 products and
attention; `bfloat16`, Cooper's. Ratios say how many times faster an arm is than the float32 turn before it.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.cpu.linear import BFloat16Linear, has_bfloat16
from cooper_rl.engines.local import attention
from cooper_rl.engines.local.learner import TorchLearner, TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.records import Column
from measure import Meter, cpu_seconds, report
from workload import arguments, model_folder, prompts

ARMS = ("float32", "autocast", "bfloat16")
GROUP = 8
PROMPT = 60


@dataclass
class Work:
    """What is timed, and what it computes: log-probabilities or logits."""

    run: Callable[[], None]
    outputs: Callable[[], np.ndarray]
    learner: TorchLearner
    sampler: NativeSampler | None = None

    def choose(self, arm: str) -> None:
        """Compute like this arm from now on."""
        self.learner.model.zero_grad()
        self.learner.bfloat16 = arm != "float32"
        if self.sampler is not None:
            self.sampler._autocast = "off" if arm == "float32" else "bfloat16"
        for module in self.learner.model.modules():
            if isinstance(module, BFloat16Linear):
                module.keeps_packed = arm == "bfloat16"
        attention.has_bfloat16 = (lambda: False) if arm == "autocast" else has_bfloat16

    def gradient(self) -> torch.Tensor:
        """Of the last run; empty for a model that does not learn."""
        return torch.cat(
            [torch.zeros(0), *(p.grad.flatten() for p in self.learner.model.parameters() if p.grad is not None)]
        )


def rows(options, model) -> Column:
    """Groups of eight random rows that share their first tokens."""
    draw = np.random.default_rng(options.seed)
    found = []
    for _ in range(max(1, options.tokens // (GROUP * (PROMPT + 48)))):
        prompt = draw.integers(4, model.config.vocab_size, PROMPT)
        found += [[*prompt, *draw.integers(4, model.config.vocab_size, draw.integers(16, 81))] for _ in range(GROUP)]
    return Column.of([[int(token) for token in row] for row in found])


def training(options) -> Work:
    config = LearnerConfig(model=model_folder(options.model), device="cpu")
    learner = TorchPolicyLearner.from_config(config, 10)
    tokens = rows(options, learner.model)
    lengths = tokens.lengths - PROMPT
    each = np.full(lengths.sum(), 0.1)
    advantages = np.random.default_rng(1).normal(size=len(each))
    batch = PolicyBatch(tokens, lengths, each, each, advantages, each)

    def run() -> None:
        learner.model.zero_grad()
        learner.forward_backward(batch, PolicyObjective(loss=PPOClip(), kl=None))

    return Work(run, lambda: learner.logprobs(tokens, lengths), learner)


def scoring(options) -> Work:
    config = LearnerConfig(model=model_folder(options.model, "reward_model"), device="cpu")
    learner = TorchRewardModelLearner.from_config(config, 0, False, new_head_seed=0)
    inputs = [list(map(int, row)) for row in rows(options, learner.model)]
    found: list[np.ndarray] = []

    def run() -> None:
        found[:] = [learner.score(inputs).numpy()]

    return Work(run, lambda: found[0], learner)


def sampling(options) -> Work:
    config = LearnerConfig(model=model_folder(options.model), device="cpu")
    learner = TorchPolicyLearner.from_config(config, 0, False)
    assert learner.tokenizer is not None
    sampler = NativeSampler(learner.tokenizer, learner.model)
    texts = prompts(max(1, options.batch // GROUP), options.model, options.seed)
    encoded = [learner.tokenizer.encode(text) for text in texts]
    params = SamplingParams(max_tokens=options.new_tokens, min_tokens=options.new_tokens)

    def run() -> None:
        sampler.sample(encoded, GROUP, params, options.seed)

    return Work(run, lambda: sampler.next_token_logits(encoded).log_softmax(-1).numpy(), learner, sampler)


def take_turns(options) -> None:
    work = {"training": training, "scoring": scoring, "sampling": sampling}[options.engine](options)
    seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
    found: dict[str, float] = {}
    truth, gradient = np.zeros(0), torch.zeros(0)
    meter = Meter()
    for turn in range(options.repeats + 1):
        for arm in ARMS:
            work.choose(arm)
            start = cpu_seconds()
            with meter.measure():
                work.run()
            if turn:
                seconds[arm].append(cpu_seconds() - start)
                continue
            # The first turn packs weights and compiles kernels; it is not timed, but compared.
            if arm == "float32":
                truth, gradient = work.outputs(), work.gradient()
            else:
                found |= {f"{arm}_{what}": value for what, value in differences(work, truth, gradient).items()}
    for arm, measured in seconds.items():
        ratios = [full / own for full, own in zip(seconds["float32"], measured, strict=True)]
        found |= {f"{arm}_cpu": statistics.median(measured), f"{arm}_min": min(ratios), f"{arm}_max": max(ratios)}
        found[f"{arm}_median"] = statistics.median(ratios)
    report(meter, 1, **found)


def differences(work: Work, truth: np.ndarray, gradient: torch.Tensor) -> dict[str, float]:
    """Of outputs (largest, mean) and of gradients (relative error, cosine), to float32."""
    error = np.abs(work.outputs() - truth)
    found = {"difference_max": float(error.max()), "difference_mean": float(error.mean())}
    own = work.gradient()
    if len(own):
        found["gradient_error"] = ((own - gradient).norm() / gradient.norm()).item()
        # In this form float32 is precise enough, and hundreds of millions of float64 numbers are not needed.
        found["gradient_cosine"] = 1 - (own / own.norm() - gradient / gradient.norm()).square().sum().item() / 2
    return found


if __name__ == "__main__":
    parser = arguments(__doc__, "training", "scoring", "sampling")
    parser.add_argument("--tokens", type=int, default=2048, help="of training and scoring, before rows are packed")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    take_turns(given)
