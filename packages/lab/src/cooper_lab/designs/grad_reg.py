"""Gradient regularisation of the policy: flat regions, where the reward model is said to stay right. No co-training.

Ackermann et al. 2026 (arXiv 2602.18037; its code, C, by the project's notes). The policy follows the gradient of
L + lambda/2 ||grad L||^2, by a finite difference:

    g + (lambda / eps) * (grad L(theta + eps g) - g).

Published: lambda 1e-3 to 1e-2, eps 1e-3, without a KL term (`algorithm.kl: null`), embeddings and head left out of the
difference. Its code clips both gradients at 10 before it takes the difference, which is biased where the clip acts;
here only the sum is clipped, by `policy.max_grad_norm`. It costs a forward and a backward pass a step.

The policy learns in float32. Under bfloat16 the difference is mostly rounding: for SmolLM2-135M and a gradient of norm
0.46, of four short texts, it is 2.3 times as long as in float64, and the cosine of the two is 0.35 (in float32 1.00).

Silence: it reads no verdict; what its reward leaves out is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from cooper_rl import Engine, InputError
from cooper_rl.engines import ENGINES
from cooper_rl.engines.local import LearnsHere, LocalEngine

if TYPE_CHECKING:
    from cooper_rl.engines.config import LearnerConfig, SamplingParams
    from cooper_rl.engines.local.learner import TorchPolicyLearner
    from cooper_rl.engines.local.sampler import NativeSampler


@ENGINES.register
class GradientRegularised(LearnsHere, Engine):
    """The local engine, whose policy is pulled towards small gradients."""

    kind: Literal["gradient_regularised"] = "gradient_regularised"
    strength: float = Field(default=1e-2, ge=0)
    """lambda."""
    distance: float = Field(default=1e-3, gt=0)
    """eps: how far along the gradient the second one is taken."""

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        super().check(policy, sampling)
        if policy.autocast == "bfloat16":
            raise InputError(
                "policy.autocast: bfloat16 rounds off the difference of two gradients, which engine: "
                "gradient_regularised takes; set policy.autocast: off"
            )

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchPolicyLearner:
        if not trainable:
            return super().policy(config, total_steps, trainable)
        in_float32 = config.model_copy(update={"autocast": "off"})
        learner = regularised_learner().from_config(in_float32, total_steps, trainable)
        learner.strength, learner.distance = self.strength, self.distance
        return learner

    def sampler(self, policy: LearnerConfig, max_rows: int) -> NativeSampler:
        return LocalEngine().sampler(policy, max_rows)


def regularised_learner() -> Any:
    """The class of the policy's learner. Settings are read without torch, so it is made on use."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    from cooper_rl.engines.local.learner import TorchPolicyLearner  # noqa: PLC0415

    class RegularisedLearner(TorchPolicyLearner):
        strength, distance = 0.0, 1e-3
        _batches: list[tuple[Any, Any]] = []  # noqa: RUF012 - replaced, never changed

        def forward_backward(self, batch: Any, loss: Any) -> dict[str, float]:
            self._batches = [*self._batches, (batch, loss)]
            return super().forward_backward(batch, loss)

        def optim_step(self) -> dict[str, float]:
            if self._batches and self.strength:
                self._regularise()
            self._batches = []
            return super().optim_step()

        def _regularise(self) -> None:
            model: nn.Module = self.model
            ends = (model.get_input_embeddings(), model.get_output_embeddings())  # pyright: ignore[reportCallIssue]
            left_out = {id(p) for end in ends if end is not None for p in end.parameters()}
            every = [p for p in model.parameters() if p.grad is not None]
            first = [p.grad.clone() for p in every if p.grad is not None]
            moved = [(p, g) for p, g in zip(every, first, strict=True) if id(p) not in left_out]
            before = [p.detach().clone() for p, _ in moved]
            with torch.no_grad():
                for p, g in moved:
                    p.add_(g, alpha=self.distance)
            model.zero_grad()
            for batch, loss in self._batches:
                super().forward_backward(batch, loss)
            with torch.no_grad():
                for (p, g), kept in zip(moved, before, strict=True):
                    assert p.grad is not None
                    p.copy_(kept)
                    p.grad = regularised(g, p.grad, self.strength, self.distance)
                for p, g in zip(every, first, strict=True):
                    if id(p) in left_out:
                        p.grad = g

    return RegularisedLearner


def regularised(first: Any, second: Any, strength: float, distance: float) -> Any:
    """g + (lambda / eps) (g' - g), with g' the gradient at theta + eps g."""
    return first + (strength / distance) * (second - first)
