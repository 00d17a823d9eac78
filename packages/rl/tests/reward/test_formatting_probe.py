"""Formatting alone must not tell positives from negatives: a probe that sees only the format stays at chance."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
import torch
import torch.nn.functional as F

from chat_server import ChatServer, completion  # pyright: ignore[reportMissingImports]
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.chat_assistant import ChatAssistant
from cooper_rl.reward.recipes import RECIPES
from cooper_verify.clients.chat import ChatClient, ChatConfig
from cooptimization_cases import answer_text, context_of, make_group  # pyright: ignore[reportMissingImports]

PAPER = RECIPES["paper"]["cooptimization"]

PROBLEMS = 300
POLICY_STYLES = ("{}", " {}", "{} ", "{}\n", "\n{}")
CHAT_STYLES = (
    "{}\n",
    "```\n{}\n```",
    "```text\n{}\n```\n",
    "Sure, here is the rewritten solution:\n\n{}",
    "Here's the solution with a slip:\n```\n{}\n```",
    "<think>\nAdd one.\n</think>\n\n{}",
    "{}<|im_end|>",
)


def features(token_ids: list[int], text: str) -> list[float]:
    """Features of a text's format and of its encoded input that do not depend on the number it states."""
    lines = text.split("\n")
    inside = Counter(text)
    marks = [inside[mark] for mark in "\n\r\t `<>|:{}\\$*#"]
    edges = [text[:1].isspace(), text[-1:].isspace(), text[:1].isalpha(), text[-1:].isdigit(), text[-1:] == "}"]
    blanks = [sum(not line.strip() for line in lines), sum(line != line.rstrip() for line in lines)]
    opening = [text.lower().startswith(word) for word in ("sure", "here", "<", "`", "a")]
    ends = [float(token == token_ids[-back]) for back in range(1, 18) for token in range(100)]
    return [*map(float, marks), *map(float, edges), *map(float, blanks), *map(float, opening), *ends]


def held_out_accuracy(positives: list[list[float]], negatives: list[list[float]]) -> float:
    """The accuracy on the second half of the pairs of a logistic regression trained on the first half."""
    inputs = torch.tensor([[p, n] for p, n in zip(positives, negatives, strict=True)])
    labels = torch.tensor([1.0, 0.0]).expand(len(inputs), 2)
    half = len(inputs) // 2
    train, test = inputs[:half].flatten(0, 1), inputs[half:].flatten(0, 1)
    mean, spread = train.mean(0), train.std(0).clamp(min=1e-3)
    train, test = (train - mean) / spread, (test - mean) / spread
    weights = torch.zeros(train.shape[1], requires_grad=True)
    optimizer = torch.optim.AdamW([weights], lr=0.02, weight_decay=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(train @ weights, labels[:half].flatten()).backward()
        optimizer.step()
    return ((test @ weights > 0) == (labels[half:].flatten() > 0.5)).float().mean().item()


@pytest.fixture(scope="module")
def pairs(verifier):
    """Pairs whose content does not reveal the label, from two sources with different formatting."""
    rng = Random(0)
    groups, replies, raw = [], {}, {}
    for i in range(PROBLEMS):
        right, wrong = rng.sample(range(100, 1000), 2)
        question = f"Number {i}?"
        said = rng.choice(POLICY_STYLES).format(answer_text(right))
        replies[question] = rng.choice(CHAT_STYLES).format(answer_text(wrong))
        group = make_group([said], str(right), id=str(i))
        groups.append(replace(group, problem=replace(group.problem, id=str(i), question=question, answer=str(right))))
        raw[str(i)] = (said, replies[question])

    def respond(body, number):
        question = body["messages"][-1]["content"].split("Problem:\n")[1].split("\n")[0]
        return completion(replies[question])

    with ChatServer(respond) as server:
        client = ChatClient(ChatConfig(base_url=server.url, model="test"))
        cooptimization = Cooptimizer(
            CooptimizationConfig.model_validate(PAPER), verifier, ChatAssistant(client, verifier)
        )
        made = cooptimization.finish([cooptimization.start(context_of(groups, verifier), 1)])
        cooptimization.close()
    return made, raw


def test_formatting_alone_does_not_separate_positives_from_negatives(pairs, encoder):
    made, _ = pairs
    assert len(made) == PROBLEMS
    encoded = [
        [features(encoder.encode(pair.question, pair.answer, text), text) for text in (pair.positive, pair.negative)]
        for pair in made
    ]
    accuracy = held_out_accuracy([row[0] for row in encoded], [row[1] for row in encoded])
    assert abs(accuracy - 0.5) < 0.08  # 300 held-out texts at chance: standard deviation 0.029


def test_the_same_probe_tells_the_raw_sources_apart(pairs, encoder):
    made, raw = pairs
    encoded = [
        [features(encoder.encode(pair.question, pair.answer, text), text) for text in raw[pair.problem_id]]
        for pair in made
    ]
    assert held_out_accuracy([row[0] for row in encoded], [row[1] for row in encoded]) > 0.8
