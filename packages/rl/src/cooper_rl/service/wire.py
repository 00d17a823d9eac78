"""The wire formats: bodies of requests, how they are read, and replies; ours, and those of other trainers.

OpenRLHF, slime and vLLM's `/classify` send no question, reference, group, step or id. Question and reference are JSON
text in the label or input; answers that share them form a group, which the commit closes. An answer is named by its
text and, among equal ones of a request, its number. So a repeated request adds nothing, and equal answers count each.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.data.strict_json import parse_json
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError
from cooper_rl.reward.scored import Scored, Updated
from cooper_rl.service.config import CommitPolicy
from cooper_rl.service.requests import Refusal, ScoreAsk


class Body(BaseModel):
    """A part of a body: unknown keys are errors, and types are strict."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


Checked = TypeVar("Checked", bound=Body)

LARGEST = 2**53
"""Whole numbers of a request are below this: every reader of JSON and every metric then has them exactly."""
DEEPEST = 64
"""Levels of lists and objects in a body: far more than any trainer sends, far fewer than Python's copiers bear."""


class ProblemBody(Body):
    """The problem that the completions answer."""

    id: str = Field(min_length=1)
    """Stable between steps; the choice of pairs depends on it."""
    question: str
    answer: str = ""
    """The reference answer; without one, every completion needs a verdict."""
    solution: str | None = None
    """A reference solution, if there is one."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    rule: str | None = None
    """The rule that checks answers, if not the server's default."""


class CompletionBody(Body):
    """One answer of the policy: `text`, or the `messages` of a run of several turns."""

    text: str | None = None
    """What the rule reads; by default the final reply of the messages."""
    messages: list[dict[str, Any]] | None = None
    """The run after the prompt, as OpenAI's chats: role, content, tool_calls. The reward model reads all of it."""
    verdict: UserVerdict | None = None
    """A verdict from outside, in the place of the rule's."""
    stopped: bool = True
    """False if it was cut off at the length limit."""
    id: str | None = None
    """Its name in the group; required in a partial group."""
    tokens: int | None = Field(default=None, ge=0, lt=LARGEST)
    """Its length in tokens, if a reward or shaping depends on it."""

    def answer(self) -> Answer:
        """Raises InputError without text and messages, or for messages that cannot be read."""
        if self.messages is None and self.text is None:
            raise InputError("completions: one has neither text nor messages")
        fields = {"stopped": self.stopped, "id": self.id, "tokens": self.tokens, "verdict": self.verdict}
        answer = Answer.of(self.text or "" if self.messages is None else self.messages, **fields)
        return answer if self.text is None else replace(answer, text=self.text)


class GroupBody(Body):
    """The answers to one problem in one step."""

    id: str = Field(min_length=1)
    """Unique in the step."""
    problem: ProblemBody
    completions: list[CompletionBody]
    partial: bool = False
    """Whether other requests may add answers to this group. The commit closes it."""


class RunBody(Body):
    """A request that may name the training run."""

    run: str | None = Field(default=None, min_length=1)
    """The training run. The server trains for the first run named and refuses others."""


class ScoreBody(RunBody):
    """`POST /v1/score`."""

    step: int | None = Field(default=None, ge=1, lt=LARGEST)
    """Null lets the server count the steps."""
    phase: Literal["train", "eval"] = "train"
    """Answers of an evaluation are never trained on."""
    groups: list[GroupBody]


class CommitBody(RunBody):
    """`POST /v1/steps/{step}/commit`."""

    expected: int | None = Field(default=None, ge=0, lt=LARGEST)
    """Number of groups that must have been scored in the step; any other number is refused."""
    keep: list[str] | None = None
    """Ids of the groups to train on; null is all."""


class CheckpointBody(RunBody):
    """`POST /v1/checkpoints`."""

    step: int | None = Field(default=None, ge=0, lt=LARGEST)
    """The last committed step; any other is refused."""


class RestoreBody(RunBody):
    """`POST /v1/restore`."""

    step: int = Field(ge=0, lt=LARGEST)
    """The step to go back to."""
    history: str | None = None
    """The `history` of the checkpoint; the server refuses a step that it reached with other answers."""


def groups_of(body: ScoreBody) -> list[AnswerGroup]:
    """The groups of a body. Raises Refusal if a group has no answers or an id is missing or repeated."""
    if not body.groups:
        raise Refusal(422, "groups: there are none to score")
    groups = []
    for body_group in body.groups:
        if not body_group.completions:
            raise Refusal(422, f"group {body_group.id}: it has no completions; omit groups without answers")
        names = [completion.id for completion in body_group.completions]
        if body_group.partial and (None in names or len(set(names)) < len(names)):
            raise Refusal(422, f"group {body_group.id}: completions of a partial group need distinct ids")
        answers = [completion.answer() for completion in body_group.completions]
        groups.append(AnswerGroup(body_group.id, Problem(**body_group.problem.model_dump()), answers))
    if twice := [name for name, count in Counter(group.id for group in groups).items() if count > 1]:
        raise Refusal(422, f"groups: the id {twice[0]!r} is repeated; give every group of a step its own id")
    return groups


async def read_body(request: Request, record: type[Checked]) -> Checked:
    """Raises Refusal: 400 if the body is not UTF-8 or not JSON, 422 if it does not fit. An empty one is `{}`."""
    return await run_in_threadpool(parse_body, await request.body(), record)


def parse_body(data: bytes, record: type[Checked]) -> Checked:
    try:
        values = parse_json(data.decode("utf-8-sig")) if data else {}
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the body is not UTF-8: {error}") from error
    except ValueError as error:
        raise Refusal(400, f"the body is not JSON: {error}") from error
    if _depth(values) > DEEPEST:
        raise Refusal(422, f"the body: lists and objects are nested more than {DEEPEST} deep; send flatter metadata")
    try:
        return record.model_validate(values)
    except ValidationError as error:
        issues = [
            f"{'.'.join(map(str, issue['loc'])) or 'the body'}: {issue['msg'].removeprefix('Value error, ')}"
            for issue in error.errors(include_url=False)[:5]
        ]
        raise Refusal(422, "\n".join(issues)) from error


def _depth(value: Any) -> int:
    """Levels of lists and objects, counted level by level, because deep values exhaust Python's stack."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > DEEPEST:
            break
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def reply(content: Any, status: int = 200) -> Response:
    """Floats are written with all their digits, and NaN and the infinities as null."""
    return Response(to_json(content, inf_nan_mode="null"), status, media_type="application/json")


def scores(result: Scored, groups: Sequence[AnswerGroup]) -> dict[str, Any]:
    """The reply to `/v1/score`, which had these groups."""
    logits = result.logits or [None] * len(groups)
    scored = [
        {"id": group.id, "rewards": result.rewards[p], "logits": logits[p], "verdicts": result.verdicts[p]}
        for p, group in enumerate(groups)
    ]
    return {"step": result.step, "version": result.version, "groups": scored, "metrics": result.metrics}


def step_view(view: Updated, pairs: bool) -> dict[str, Any]:
    """The state of a step, with the pairs it was trained on if `pairs`."""
    content = {name: getattr(view, name) for name in ("step", "state", "version", "metrics", "error")}
    return content | ({"pairs": [asdict(pair) for pair in view.pairs]} if pairs else {})


class Completion(Body):
    """An input of `/classify`, as JSON text: an answer with its problem."""

    question: str
    answer: str = ""
    """The problem's reference answer."""
    split: str = "train"
    """Any other value than `train` is an evaluation."""
    solution: str | None = None
    rule: str | None = None
    completion: str | list[dict[str, Any]]
    """A text, or messages as in `/v1/score`."""
    verdict: UserVerdict | None = None
    stopped: bool = True
    id: str | None = None
    """Its name in the group, for clients that send equal answers in several requests."""


class ClassifyBody(Body):
    """`POST /classify`, whose clients may send more keys."""

    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    input: str | list[str]
    use_activation: bool | None = True
    """False asks for the logit, as in vLLM."""


def read_completion(text: str) -> Completion:
    """The record in a text. Raises Refusal (422) for anything but its JSON."""
    try:
        return parse_body(text.encode(), Completion)
    except Refusal as error:
        example = '{"question": …, "answer": …, "completion": …, "split": "train"}'
        raise Refusal(422, f"input: write it as JSON text {example} ({error})") from error


def asks_of(rows: Sequence[Completion], policy: CommitPolicy | None) -> list[ScoreAsk]:
    """One request to the training for each answer of one HTTP request."""
    equal: Counter[tuple[str, str]] = Counter()
    asks = []
    for row in rows:
        answer = Answer.of(row.completion, row.stopped, id=row.id, verdict=row.verdict)
        more = [answer.transcript, str(answer.verdict)] if answer.messages or answer.verdict else []
        group, content = _name([row.question, row.answer]), _name([answer.text, str(answer.stopped), *more])
        name = answer.id or (f"{content}-{equal[group, content]}" if equal[group, content] else content)
        equal[group, content] += answer.id is None
        problem = Problem(group, row.question, row.answer, row.solution, rule=row.rule)
        single = AnswerGroup(group, problem, [replace(answer, id=name)])
        asks.append(ScoreAsk([single], train=row.split == "train", policy=policy, partial=frozenset([group])))
    return asks


def _name(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]
