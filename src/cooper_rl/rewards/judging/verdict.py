"""A judge's verdict on one completion, read from its reply or from the probabilities of its first token."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cooper_rl.clients.chat import ChatReply
from cooper_rl.rewards.judging.verdict_prompt import JudgeVerdict, parse_reply

LEAST_MASS = 0.05
"""Least probability that yes and no must have together. Below it the model did not mean to answer."""


@dataclass(frozen=True)
class Judgement:
    """The verdict of a judge on one completion.

    `probability` is that of yes, if it was read from the first token. `detail` is the reply, or the reason for its
    absence. `failed` says that the judge gave no reply at all and may be asked again.
    """

    verdict: JudgeVerdict
    probability: float | None = None
    detail: str = ""
    failed: bool = False


def judgement_of(reply: ChatReply, read_first_token: bool) -> Judgement:
    """The judgement in a reply, or `unreadable`. Without token probabilities the text is read."""
    if read_first_token and reply.first_token:
        probabilities = {token: math.exp(logprob) for token, logprob in reply.first_token.items()}
        return from_probabilities(probabilities, reply.text)
    if reply.failure is not None:
        return Judgement("unreadable", detail=f"{reply.failure}: {reply.detail}", failed=not reply.heard)
    return Judgement(parse_reply(reply.text), detail=reply.text)


def from_probabilities(probabilities: Mapping[str, float], detail: str = "") -> Judgement:
    """A judgement from first-token probabilities: the share of yes in yes and no. Unreadable if both are unlikely."""
    yes = sum(p for token, p in probabilities.items() if token.strip().lower() == "yes")
    no = sum(p for token, p in probabilities.items() if token.strip().lower() == "no")
    if yes + no < LEAST_MASS:
        return Judgement("unreadable", detail=detail or f"yes {yes:.3g}, no {no:.3g}")
    share = yes / (yes + no)
    return Judgement("yes" if share > 0.5 else "no", share, detail)
