"""An engine whose reward model is the policy itself, asked for a yes or no after question and completion.

What trains the reward model thus trains the policy in a second task: to judge. The parts of a run (pairs, rewards,
metrics, checkpoints) see a `RewardModelLearner` as always. After Learning to Self-Verify (arXiv 2602.07594), whose
verdicts are written, with a chain of thought, and paid by GRPO; here a verdict is one token.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from cooper_base.errors import InputError
from cooper_rl import Engine
from cooper_rl.engines.config import YesNo
from cooper_rl.engines.local import LearnsHere, LocalEngine
from cooper_rl.engines.model_folder import YES_NO

if TYPE_CHECKING:
    from cooper_rl.engines.config import LearnerConfig, ScorerConfig
    from cooper_rl.engines.local.learner import TorchPolicyLearner
    from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
    from cooper_rl.engines.local.sampler import NativeSampler


class OneModel(LearnsHere, Engine):
    """The local engine with one set of weights for both learners. Each learner has its own optimizer and learning rate.

    Of the folder `reward_model.model` only the input's format and tokenizer are read (`verdict_folder`), or with
    `kind: yes_no` the policy's folder again.
    """

    words: tuple[str, str] = ("yes", "no")
    """For yes and no: the words, each one token, where the reward model has no `kind: yes_no` with words of its own."""
    _policy: TorchPolicyLearner | None = PrivateAttr(default=None)

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> TorchPolicyLearner:
        """As in `Engine`. Raises InputError for a low-rank adapter."""
        _check_whole("policy", config)
        learner = super().policy(config, total_steps, trainable)
        if trainable:
            self._policy = learner
        return learner

    def reward_model(self, config: ScorerConfig, total_steps: int, trainable: bool = True) -> TorchRewardModelLearner:
        """A learner of the policy's own weights, after `policy`. Raises InputError for words that are not one token, a
        low-rank adapter, and other frozen layers than the policy's."""
        from cooper_rl.engines.local.models import load_tokenizer
        from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
        from cooper_rl.engines.yes_no import yes_no_of

        if self._policy is None:
            raise InputError("engine: OneModel judges with the policy of a run, and there is none; train with it")
        _check_whole("reward_model", config)
        if config.frozen_layers != (trained := self._policy.config.frozen_layers):
            raise InputError(
                f"reward_model.frozen_layers: the policy has {trained}, and both are one model; set it too"
            )
        tokenizer = load_tokenizer(config.model)
        asked = yes_no_of(config, tokenizer) or self._asked(tokenizer.get_vocab(), config.model)
        setattr(self._policy.model.config, YES_NO, asked.model_dump())
        # Always trainable: a frozen learner would freeze the policy.
        return TorchRewardModelLearner(self._policy.model, config, total_steps, tokenizer)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> NativeSampler:
        return LocalEngine().sampler(policy, max_rows)

    def _asked(self, vocabulary: dict[str, int], path: str) -> YesNo:
        ids = [vocabulary.get(word) for word in self.words]
        if ids[0] is None or ids[1] is None or ids[0] == ids[1]:
            raise InputError(
                f"engine.words: {self.words} are not two tokens of {path}; set engine.words to two that are"
            )
        return YesNo(yes=ids[0], no=ids[1], ask="")


def _check_whole(part: str, config: LearnerConfig) -> None:
    if config.lora is not None:
        raise InputError(f"{part}.lora: the engine OneModel trains one model in both tasks; leave out {part}.lora")


def verdict_folder(policy: str | Path, folder: Path, ask: str) -> Path:
    """Write what a verdict reads as the folder of a reward model with `input: chat`: question, a line break,
    completion, `ask`. Question and completion are thus as the policy reads and writes them.

    Its weights, the policy's with a new head, make the folder a whole model; `OneModel` leaves them unread. Raises
    InputError for a policy that cannot be loaded.
    """
    from cooper_rl.engines.local.models import load_reward_model, load_tokenizer

    tokenizer = load_tokenizer(str(policy))
    tokenizer.chat_template = "{{ messages[0].content }}\n{{ messages[1].content }}" + ask
    tokenizer.save_pretrained(folder)
    load_reward_model(str(policy), new_head_seed=0).save_pretrained(folder)
    return folder
