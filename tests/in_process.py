"""Access to the model of the local engine's learners, which the protocol does not offer."""

from typing import Any

from transformers import PreTrainedModel


def model_of(learner: Any) -> PreTrainedModel:
    """The learner's model."""
    assert isinstance(learner.model, PreTrainedModel)
    return learner.model
