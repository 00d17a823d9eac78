"""Everything a reward reads besides its models' weights. It is checked without torch."""

from dataclasses import dataclass

from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.engines.model_folder import check_reward_model_folder
from cooper_rl.rewards.rule.routing import Verifier
from cooper_rl.stage2.assistant import Assistant, build_assistant
from cooper_rl.stage2.reward_config import CooperRewardConfig


@dataclass(frozen=True)
class RewardInputs:
    """The rule verifier, the assistant (None if there is none) and the rows that stage 2 replays (may be empty)."""

    verifier: Verifier
    assistant: Assistant | None
    replayed: list[LabelledCompletion]


def read_reward_inputs(config: CooperRewardConfig) -> RewardInputs:
    """Read and check everything but the models' weights. Raises InputError for any mistake that a user can fix."""
    for part in (*config.rewards, *config.shaping):
        part.build()  # finds the user's functions
    verifier = Verifier(config.rule, config.rules)
    learns = config.learning_model is not None
    assistant = build_assistant(config.cooptimization, verifier) if learns else None
    replay = config.cooptimization.replay.labelled if learns else None
    replayed = read_labelled(replay) if replay else []
    for model in config.used_models.values():
        check_reward_model_folder(model.model)
    return RewardInputs(verifier, assistant, replayed)
