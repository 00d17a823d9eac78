"""Formats of other trainers: OpenRLHF's and slime's remote rewards, vLLM's `/classify`.

They contain no question, reference answer, group or step. Question and reference are JSON text in the label (or, for
`/classify`, in the input); answers with the same question and reference form a group, which the commit closes.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from pydantic import ConfigDict, Field

from cooper_rl.data.problem import Problem
from cooper_rl.rollouts.answers import Answer, AnswerGroup
from cooper_rl.service.asks import ScoreAsk
from cooper_rl.service.bodies import parse_body
from cooper_rl.service.book import Asked
from cooper_rl.service.commit_policy import CommitPolicy
from cooper_rl.service.refusal import Refusal
from cooper_rl.service.wire import Body


class Label(Body):
    """The JSON text that a data set provides as its label."""

    question: str
    answer: str
    split: str = "train"
    """Any other value than `train` is an evaluation."""
    solution: str | None = None
    rule: str | None = None


class Completion(Label):
    """An input of `/classify`: a label with the answer."""

    completion: str
    stopped: bool = True


class OpenRLHFBody(Body):
    """`POST /get_reward`: `query` is the prompt followed by the answer."""

    model_config = ConfigDict(extra="ignore")

    query: list[str]
    prompts: list[str]
    labels: list[str]


class SlimeBody(Body):
    """`POST /remote_rm`."""

    model_config = ConfigDict(extra="ignore")

    prompt: Any = None
    response: str
    label: str | Label


class ClassifyBody(Body):
    """`POST /classify`."""

    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    input: str | list[str] = Field()
    use_activation: bool | None = True
    """False asks for the logit, as in vLLM."""


def openrlhf_answers(body: OpenRLHFBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for columns of different lengths or labels that are not JSON labels."""
    if not len(body.query) == len(body.prompts) == len(body.labels):
        raise Refusal(422, f"{len(body.query)} query, {len(body.prompts)} prompts, {len(body.labels)} labels")
    rows = zip(body.query, body.prompts, body.labels, strict=True)
    return [(read_label(label), Answer(query.removeprefix(prompt))) for query, prompt, label in rows]


def slime_answers(body: SlimeBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for a label that is not a JSON label."""
    label = body.label if isinstance(body.label, Label) else read_label(body.label)
    return [(label, Answer(body.response))]


def classify_answers(body: ClassifyBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for an input without a reference answer."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    found = [_read(text, Completion, "input") for text in texts]
    return [(one, Answer(one.completion, one.stopped)) for one in found]


def read_label(text: str) -> Label:
    """Raises Refusal (422) for anything but a JSON label."""
    return _read(text, Label, "label")


def ask_of(label: Label, answer: Answer, policy: CommitPolicy | None) -> ScoreAsk:
    """A request with one answer, identified by its content."""
    name = _name([label.question, label.answer])
    problem = Problem(name, label.question, label.answer, label.solution, rule=label.rule)
    answer = Answer(answer.text, answer.stopped, id=_name([answer.text, str(answer.stopped)]))
    asked = Asked(AnswerGroup(name, problem, [answer]), partial=True)
    return ScoreAsk([asked], train=label.split == "train", policy=policy)


def _read(text: str, record: type[Any], what: str) -> Any:
    try:
        return parse_body(text.encode(), record)
    except Refusal as error:
        example = '{"question": …, "answer": …, "split": "train"}'
        if record is Completion:
            example = example.replace('"split"', '"completion": …, "split"')
        raise Refusal(422, f"{what}: write it as JSON text {example} ({error})") from error


def _name(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]
