"""An engine whose reward model is a language model that scores by its own log-probabilities: an implicit reward.

The reward of token t is beta * (log pi_phi(y_t) - log pi_ref(y_t)), the logit of a completion their sum (DPO's reward,
read as a verifier's: Yuan et al. 2024, arXiv 2412.01981). Learned by the cross-entropy of sigmoid(logit) with the
rule's verdict it is the reward model of PRIME (`prime.py`; arXiv 2502.01456, compared with verl's `recipe/prime`).

Where the rule is silent, nothing is learned, unless the source of labels says otherwise. At the start pi_phi is pi_ref,
so every logit is 0 and nothing is accepted. An implicit reward grows with length.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PrivateAttr

from cooper_rl import Engine, InputError
from cooper_rl.engines import ENGINES
from cooper_rl.engines.local import LearnsHere, LocalEngine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor

    from cooper_lab.designs.implicit_learner import ImplicitLearner
    from cooper_rl.engines.config import LearnerConfig
    from cooper_rl.engines.local.learner import TorchPolicyLearner
    from cooper_rl.engines.local.sampler import NativeSampler

MARK = "implicit_mark"
"""In the `config.json` of an implicit reward model: the token that its chat template writes before the completion. The
model itself never reads it."""


@ENGINES.register
class ImplicitEngine(LearnsHere, Engine):
    """The local engine with an implicit reward model, from a folder that `implicit_folder` wrote.

    With `reward_model.input: chat` it reads what the policy reads, with `chat_with_reference` the reference too.
    """

    reward_model_has_head: ClassVar[bool] = False
    kind: Literal["implicit"] = "implicit"
    beta: float = Field(default=0.05, gt=0)
    """Factor of the log-ratios (nats)."""
    against: Literal["start", "policy"] = "start"
    """pi_ref: the policy as it was before the first step, or as it is. These are two methods."""
    _policy: tuple[LearnerConfig, TorchPolicyLearner] | None = PrivateAttr(default=None)

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchPolicyLearner:
        learner = super().policy(config, total_steps, trainable)
        if trainable:
            self._policy = config, learner
        return learner

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> ImplicitLearner:
        """A learner of the folder's model, after `policy`. Raises InputError without a policy, which is pi_ref."""
        from cooper_lab.designs.implicit_learner import ImplicitLearner  # noqa: PLC0415 - settings without torch

        if self._policy is None:
            raise InputError("engine: an implicit reward model is compared with the policy of a run; train with it")
        of_policy, moving = self._policy
        learner = ImplicitLearner.from_config(config, total_steps, trainable)
        start = LocalEngine().policy(of_policy, 0, trainable=False) if self.against == "start" else moving
        return learner.scoring_by(self, start)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> NativeSampler:
        return LocalEngine().sampler(policy, max_rows)

    def logits(self, ratios_BT: Float[Tensor, "B T"], lengths_B: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """What says if a completion is accepted (above 0), from the log-ratios of its tokens, which are 0 after it."""
        return self.beta * ratios_BT.sum(1)

    def terms(self, labels: Sequence[float], prompts: Sequence[bytes]) -> tuple[list[float], list[float]]:
        """A weight and a margin for each labelled completion, which answers this prompt."""
        return [1.0] * len(labels), [0.0] * len(labels)

    def outcome_losses(
        self,
        ratios_BT: Float[Tensor, "B T"],
        lengths_B: Float[Tensor, " B"],
        labels_B: Float[Tensor, " B"],
        margins_B: Float[Tensor, " B"],
    ) -> Float[Tensor, " B"]:
        """BCE(sigmoid(logit_i), label_i) of each completion."""
        from torch.nn.functional import binary_cross_entropy_with_logits  # noqa: PLC0415 - as above

        return binary_cross_entropy_with_logits(self.logits(ratios_BT, lengths_B), labels_B, reduction="none")


def implicit_folder(policy: str | Path, folder: Path, template: str = "{{ messages[0].content }}\n") -> Path:
    """Write the policy as an implicit reward model that has learned nothing yet.

    `template` is what the policy reads of a question, as a chat template. The tokenizer's padding token marks where it
    ends, and its end of sequence closes the completion; where the two are one, another special token is the padding
    token. Raises InputError for a policy that cannot be loaded, and for a tokenizer that has no other.
    """
    from cooper_rl.engines.local.models import load_policy, load_tokenizer  # noqa: PLC0415 - as above

    tokenizer: Any = load_tokenizer(str(policy))
    if tokenizer.pad_token in (None, tokenizer.eos_token):  # the input drops padding at its end
        others = [token for token in tokenizer.all_special_tokens if token != tokenizer.eos_token]
        if not others:
            raise InputError(
                f"{policy}: the tokenizer needs a special token beside its end of sequence; add a pad_token"
            )
        tokenizer.pad_token = others[0]
    tokenizer.chat_template = f"{template}{tokenizer.pad_token}{{{{ messages[1].content }}}}{tokenizer.eos_token}"
    tokenizer.save_pretrained(folder)
    model = load_policy(str(policy))
    setattr(model.config, MARK, tokenizer.pad_token_id)
    model.config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


def split_at(mark: int, token_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """What stands before the first mark and what after it. Raises ValueError without a mark."""
    place = list(token_ids).index(mark)
    return list(token_ids[:place]), list(token_ids[place + 1 :])


def rows_of(values: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """A flat array, cut into rows of these lengths."""
    return np.split(values, np.cumsum(lengths)[:-1])
