"""The base of every configuration record: unknown keys are errors, fields carry their own documentation."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Immutable settings of one component. The docstring under a field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
