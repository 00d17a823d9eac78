"""Measures what `cooptimization.skip_gradient_share` leaves out of the demo's updates, by kind.

    python benchmarks/speed/skipped_gradient.py cooper

Every fourth step of a run with the whole gradient is compared with the same step without the skipped pairs: the error
of the gradient and that of AdamW's update, each divided by the norm of the whole one. `bound` is what the gradient's
error could at most be: the skipped pull times the steepest logit. Two rows say how little or much an error is:
`rounding` is the whole gradient in other micro-batches, `other pairs` is the gradient on as many pairs drawn from the
step's with replacement, which is about what another step's draw would change.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import torch
from torch import Tensor

from cooper_lab.arithmetic.world import run_settings
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.base import Metrics, PairBatch
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import RewardLoss
from cooper_rl.reward.row_selection import Part, needed, pulls
from workload import arguments, scratch

STEPS, EVERY = 40, 4
SHARES = (0.001, 0.01, 0.03, 0.05, 0.1, 0.2)


@dataclass
class Comparing:
    """A learner that compares gradients before it learns."""

    learner: TorchRewardModelLearner
    found: dict[str, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def forward_backward(self, batch: PairBatch, loss: RewardLoss) -> Metrics:
        if self.learner.steps and self.learner.steps % EVERY == 0:
            self._compare(batch, loss)
        return self.learner.forward_backward(batch, loss)

    def _compare(self, batch: PairBatch, loss: RewardLoss) -> None:
        whole, pairs = self._gradient(batch, loss), len(batch.weights)
        update = self._update(whole)

        def add(name: str, other: Tensor, *more: float) -> None:
            errors = (other - whole).norm() / whole.norm(), (self._update(other) - update).norm() / update.norm()
            self.found[name].append((*(error.item() for error in errors), *more))

        usual = self.learner.config
        self.learner.config = usual.model_copy(update={"tokens_per_microbatch": usual.tokens_per_microbatch // 4})
        add("rounding", self._gradient(batch, loss))
        self.learner.config = usual
        drawn = torch.randint(pairs, (pairs,), generator=torch.Generator().manual_seed(0)).tolist()
        add("other pairs", self._gradient(batch.take(drawn), loss))
        pull, _ = pulls(Part("", batch, loss), self.learner.score(batch.inputs))
        steepest = max(self._steepness(row) for row in batch.inputs)
        for share in SHARES:
            kept = needed(pull, share)
            left = batch.take(kept.nonzero().flatten().tolist())
            bound = pull[~kept].sum().item() * steepest / whole.norm().item()
            add(f"{share}", self._gradient(left, loss), kept.double().mean().item(), bound)

    def _gradient(self, batch: PairBatch, loss: RewardLoss) -> Tensor:
        self.learner.forward_backward(batch, loss)
        return self._taken()

    def _steepness(self, row: list[int]) -> float:
        """The norm of a logit's gradient."""
        self.learner.model(torch.tensor([row])).logits.sum().backward()
        return self._taken().norm().item()

    def _taken(self) -> Tensor:
        found = torch.cat([p.grad.flatten() for p in self.learner.model.parameters() if p.grad is not None])
        self.learner.model.zero_grad()
        return found

    def _update(self, gradient: Tensor) -> Tensor:
        """AdamW's step for a gradient, without weight decay and divided by the learning rate."""
        config, optimizer = self.learner.config, self.learner.optimizer
        assert optimizer is not None
        states = [optimizer.state[p] for p in self.learner.model.parameters()]
        first, second = (torch.cat([state[name].flatten() for state in states]) for name in ("exp_avg", "exp_avg_sq"))
        count, (beta1, beta2) = states[0]["step"].item() + 1, config.betas
        gradient = gradient * min(1.0, config.max_grad_norm / gradient.norm().item())
        mean = (beta1 * first + (1 - beta1) * gradient) / (1 - beta1**count)
        square = (beta2 * second + (1 - beta2) * gradient.square()) / (1 - beta2**count)
        return mean / (square.sqrt() + 1e-8)


def main() -> None:
    options = arguments(__doc__, "cooper_model", "cooper_light", "paper").parse_args()
    changes = {"kind": options.engine, "evaluation": {"every": 0}, "threads": options.threads}
    settings = run_settings("cooper", scratch(), options.seed, changes)
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        model = trainer.parts.reward.learning
        assert model is not None
        assert isinstance(model.learner, TorchRewardModelLearner)
        trainer.parts.reward.learning = replace(model, learner=(comparing := Comparing(model.learner)))
        for _ in range(STEPS):
            trainer.step()
    print("skipped share | gradient: median, max | update: median, max | pairs kept | bound")
    for name, rows in comparing.found.items():
        gradient, update, *more = zip(*rows, strict=True)
        errors = " | ".join(f"{median(values):.2g}, {max(values):.2g}" for values in (gradient, update))
        print(f"{name} | {errors} | {' | '.join(f'{median(values):.2g}' for values in more)}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
