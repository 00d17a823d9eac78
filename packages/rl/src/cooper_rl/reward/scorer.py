"""Further reward models beside the run's own, which do not learn."""

from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.context import RewardModel


def load_scorer(config: ScorerConfig) -> RewardModel:
    """A frozen reward model for a part that reads more models than the run's own, such as an ensemble.

    It computes in this process, on `config.device`. Whoever loads it holds it. Raises InputError for a folder that
    holds no reward model.
    """
    learner = LocalEngine().reward_model(config, 0, trainable=False)
    return RewardModel(learner, RewardModelInput.of(config, load_tokenizer(config.model)))
