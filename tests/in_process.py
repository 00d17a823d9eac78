"""What the local engine's learners have and the protocol does not promise: a model in this process."""

from typing import Any

from transformers import PreTrainedModel


def model_of(learner: Any) -> PreTrainedModel:
    """The learner's model."""
    assert isinstance(learner.model, PreTrainedModel)
    return learner.model
