"""The bodies of requests."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cooper_rl.data.problem import Problem
from cooper_rl.rollouts.answers import Answer, AnswerGroup
from cooper_rl.service.refusal import Refusal


class Body(BaseModel):
    """A part of a body: unknown keys are errors, and types are strict."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class ProblemBody(Body):
    """The problem that the completions answer."""

    id: str = Field(min_length=1)
    """Stable between steps; the choice of pairs depends on it."""
    question: str
    answer: str
    """The reference answer."""
    solution: str | None = None
    """A reference solution, if there is one."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    rule: str | None = None
    """The rule that checks answers, if not the server's default."""


class CompletionBody(Body):
    """One answer of the policy."""

    text: str
    stopped: bool = True
    """False if it was cut off at the length limit."""
    id: str | None = None
    """Its name in the group; required in a partial group."""
    tokens: int | None = Field(default=None, ge=0)
    """Its length in tokens, if a reward or shaping depends on it."""


class GroupBody(Body):
    """The answers to one problem in one step."""

    id: str = Field(min_length=1)
    """Unique in the step."""
    problem: ProblemBody
    completions: list[CompletionBody]
    partial: bool = False
    """Whether other requests may add answers to this group. The commit closes it."""


class ScoreBody(Body):
    """`POST /v1/score`."""

    run: str | None = Field(default=None, min_length=1)
    """The training run. The server trains for the first run named and refuses others."""
    step: int | None = Field(default=None, ge=1, lt=2**53)
    """Null lets the server count the steps."""
    phase: Literal["train", "eval"] = "train"
    """Answers of an evaluation are never trained on."""
    groups: list[GroupBody]


class CommitBody(Body):
    """`POST /v1/steps/{step}/commit`."""

    run: str | None = Field(default=None, min_length=1)
    expected: int | None = Field(default=None, ge=0)
    """Number of groups that must have been scored in the step; any other number is refused."""
    keep: list[str] | None = None
    """Ids of the groups to train on; null is all."""


class CheckpointBody(Body):
    """`POST /v1/checkpoints`."""

    run: str | None = Field(default=None, min_length=1)
    step: int | None = Field(default=None, ge=0, lt=2**53)
    """The last committed step; any other is refused."""


class RestoreBody(Body):
    """`POST /v1/restore`."""

    run: str | None = Field(default=None, min_length=1)
    step: int = Field(ge=0, lt=2**53)
    """The step to go back to."""
    history: str | None = None
    """The `history` of the checkpoint; the server refuses a step that it reached with other answers."""


def groups_of(body: ScoreBody) -> list[AnswerGroup]:
    """The groups of a body. Raises Refusal if a group has no answers or an id is missing or repeated."""
    if not body.groups:
        raise Refusal(422, "groups: there are none to score")
    groups = [_group(group) for group in body.groups]
    if len({group.id for group in groups}) < len(groups):
        names = [group.id for group in groups]
        twice = next(name for name in names if names.count(name) > 1)
        raise Refusal(422, f"groups: the id {twice!r} is repeated; give every group of a step its own id")
    return groups


def _group(body: GroupBody) -> AnswerGroup:
    if not body.completions:
        raise Refusal(422, f"group {body.id}: it has no completions; omit groups without answers")
    if body.partial:
        names = [one.id for one in body.completions]
        if None in names or len(set(names)) < len(names):
            raise Refusal(422, f"group {body.id}: completions of a partial group need distinct ids")
    answers = [Answer(**one.model_dump()) for one in body.completions]
    return AnswerGroup(body.id, Problem(**body.problem.model_dump()), answers)
