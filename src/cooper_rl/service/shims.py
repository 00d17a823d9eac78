"""Wires of other trainers: OpenRLHF's remote reward, slime's remote reward, vLLM's `/classify`.

None of them carries the question, the reference answer, a group or a step. The first two come as JSON text in the
label (or, for `/classify`, in the input); answers to one question and reference make a group, which the commit closes.
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
    """What a data set must carry for these wires, as JSON text."""

    question: str
    answer: str
    split: str = "train"
    """Anything but `train` is an evaluation."""
    solution: str | None = None
    rule: str | None = None


class Completion(Label):
    """An input of `/classify`: a label, and the answer."""

    completion: str
    stopped: bool = True


class OpenRLHFBody(Body):
    """`POST /get_reward`: `query` is the prompt with the answer behind it."""

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
    """Raises Refusal (422) for columns that do not fit each other, and labels that are no JSON labels."""
    if not len(body.query) == len(body.prompts) == len(body.labels):
        raise Refusal(422, f"{len(body.query)} query, {len(body.prompts)} prompts, {len(body.labels)} labels")
    rows = zip(body.query, body.prompts, body.labels, strict=True)
    return [(read_label(label), Answer(query.removeprefix(prompt))) for query, prompt, label in rows]


def slime_answers(body: SlimeBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for a label that is no JSON label."""
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
    """One answer, named by its content: the same one is the same however often it comes."""
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
