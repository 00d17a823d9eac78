"""Pairs of a right and a wrong completion, ties, and the weights of pairs in an update."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite
from random import Random
from typing import Literal

from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content, normalise
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.stage2.assistant import AnswerVerifier
from cooper_rl.stage2.config import NegativeOrigin, OnPolicyConfig, PositiveOrigin, TieOrigin, Weighting


@dataclass(frozen=True)
class Pair:
    """A right and a wrong completion of one problem, both normalised. Logits are the reward model's, if known.

    If the label is `tie`, the two completions should score the same, and only the names of the fields call one of them
    positive. The negative is read with the reference `negative_answer` if that is not None, else with `answer`.
    """

    problem_id: str
    question: str
    answer: str
    positive: str
    negative: str
    positive_origin: PositiveOrigin
    negative_origin: NegativeOrigin | TieOrigin
    positive_logit_before: float | None = None
    negative_logit_before: float | None = None
    positive_logit_after: float | None = None
    negative_logit_after: float | None = None
    label: Literal["better", "tie"] = "better"
    negative_answer: str | None = None

    @property
    def answer_of_negative(self) -> str:
        """The reference answer with which the negative is read."""
        return self.answer if self.negative_answer is None else self.negative_answer


@dataclass(frozen=True)
class Solved:
    """A problem with at least one positive. All its positives have the same origin."""

    problem: Problem
    positives: list[str]
    origin: PositiveOrigin
    logits: dict[str, float]
    """The reward model's logit of each of the group's normalised completions, before any update of the step."""

    def pair(self, positive: str, negative: str, negative_origin: NegativeOrigin) -> Pair:
        """A pair of this problem, with its logits before the update where they are known."""
        return Pair(
            self.problem.id,
            self.problem.question,
            self.problem.answer,
            positive,
            negative,
            self.origin,
            negative_origin,
            positive_logit_before=self.logits.get(positive),
            negative_logit_before=self.logits.get(negative),
        )


def choose_positives(group: AnswerGroup, verdicts: Sequence[str], count: int, rng: Random) -> list[str]:
    """Up to `count` different rule-accepted completions of a group, drawn at random.

    A completion that was cut at the length limit is never a positive, even if the rule found the answer in it.
    Texts are normalised before they are compared and kept in order of appearance, so equal seeds give equal choices.
    """
    accepted = [
        normalise(completion.text)
        for completion, verdict in zip(group.answers, verdicts, strict=True)
        if verdict == "correct" and completion.stopped
    ]
    candidates = [text for text in dict.fromkeys(accepted) if has_content(text)]
    return rng.sample(candidates, min(count, len(candidates)))


def pair_weights(pairs: Sequence[Pair], weighting: Weighting) -> list[float]:
    """Weights with mean 1 from the pairs' logits before their update; see `CooptimizationConfig.weighting`.

    A pair that has no such logits weighs as one whose logits are 0. All weights are 1 if the unscaled ones are all 0.
    """
    if weighting == "equal":
        return [1.0] * len(pairs)
    raw = []
    for pair in pairs:
        positive, negative = pair.positive_logit_before or 0.0, pair.negative_logit_before or 0.0
        wrong = negative - positive if weighting == "misranked" else negative
        raw.append(1 / (1 + exp(min(700.0, -wrong))))
    mean = sum(raw) / len(raw) if raw else 0.0
    return [value / mean for value in raw] if mean > 0 else [1.0] * len(raw)


def choose_on_policy_negatives(
    group: AnswerGroup,
    verdicts: Sequence[str],
    rm_logits: Sequence[float],
    positives: Sequence[str],
    count: int,
    config: OnPolicyConfig,
    rng: Random,
    trusted: Sequence[bool] | None = None,
) -> list[str]:
    """Up to `count` different wrong completions of a group, normalised.

    Completions that stopped on their own come first. Those cut at the length limit come last, because they would teach
    "unfinished is wrong" rather than "wrong is wrong". Within each kind, `config.order` decides. A text is never a
    negative if it is also a positive, if the rule accepts it anywhere in the group, or if it is `trusted` (see
    `OnPolicyConfig.agree_with`). `rm_logits` are the group's reward-model logits.
    """
    rows = list(zip(group.answers, verdicts, rm_logits, strict=True))
    right = [normalise(completion.text) for completion, verdict, _ in rows if verdict == "correct"]
    excluded = {*right, *positives}
    if trusted is not None:
        excluded |= {normalise(answer.text) for answer, known in zip(group.answers, trusted, strict=True) if known}
    if config.order == "random":
        rng.shuffle(rows)
    else:
        rows.sort(key=lambda row: -row[2] if isfinite(row[2]) else inf)
    rows.sort(key=lambda row: not row[0].stopped)  # stable sort: keeps the order within each kind
    texts = [normalise(completion.text) for completion, verdict, _ in rows if _is_wrong(completion, verdict, config)]
    return [text for text in dict.fromkeys(texts) if text not in excluded][:count]


def _is_wrong(completion: Answer, verdict: str, config: OnPolicyConfig) -> bool:
    if verdict == "unparsed":
        return config.trust_unparsed or not has_content(completion.text)
    return verdict == "wrong"


OTHERS = 3
"""References of other problems that are tried for one pair, after the nearby numbers."""


def swapped_pairs(items: Sequence[tuple[Solved, Random]], verifier: AnswerVerifier, count: int) -> list[Pair]:
    """Up to `count` pairs per problem, one for each positive, that differ in the reference answer only.

    Contrast Instructions (Shen et al. 2023, arXiv 2309.16155) swaps the instruction under a response. A reference-based
    reward model reads a reference too, and a model that reads the text alone cannot tell these pairs apart.
    The negative is the positive under another reference: a number close to the true one where that is a whole number,
    else the reference of another of these problems. A reference is used only if the rule says that the positive is
    `wrong` under it, so it is never another form of the true answer.
    """
    answers = list(dict.fromkeys(solved.problem.answer for solved, _ in items))
    wanted: list[tuple[Solved, str, list[str]]] = []
    for solved, random in items:
        for positive in solved.positives[:count]:
            others = [answer for answer in answers if answer != solved.problem.answer]
            picked = random.sample(others, min(OTHERS, len(others)))
            wanted.append((solved, positive, nearby(solved.problem.answer, random) + picked))
    asked = [
        (replace(solved.problem, answer=answer), positive)
        for solved, positive, candidates in wanted
        for answer in candidates
    ]
    verdicts = iter(verifier.verify_problems(asked))
    pairs: list[Pair] = []
    for solved, positive, candidates in wanted:
        wrong = [answer for answer in candidates if next(verdicts) == "wrong"]
        if wrong:
            pair = solved.pair(positive, positive, "swapped_reference")
            pairs.append(replace(pair, negative_answer=wrong[0], negative_logit_before=None))
    return pairs


def nearby(answer: str, random: Random) -> list[str]:
    """Numbers that a reader could take for this one, in random order: off by one or ten, ten times, the other sign.

    Empty unless the answer is a whole number of at most 15 figures.
    """
    text = answer.strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 15:
        return []
    value = int(text)
    numbers = [value + 1, value - 1, value + 10, value - 10, value * 10, -value]
    near = [str(number) for number in dict.fromkeys(numbers) if number != value]
    random.shuffle(near)
    return near[:OTHERS]


def two_right(group: AnswerGroup, verdicts: Sequence[str], count: int, random: Random) -> list[Pair]:
    """Up to `count` ties of two different completions of a group that the rule accepts and that ended by themselves.

    What tells them apart is style, and style must not count: the neutrals of Crome (Srivastava et al. 2025, arXiv
    2506.16507).
    """
    accepted = choose_positives(group, verdicts, 2 * count, random)
    problem = group.problem
    return [
        Pair(problem.id, problem.question, problem.answer, first, second, "rollout", "two_right", label="tie")
        for first, second in zip(accepted[::2], accepted[1::2], strict=False)
    ]


def wrong_texts(group: AnswerGroup, verdicts: Sequence[str], count: int, random: Random) -> list[str]:
    """Up to `count` different completions that the rule calls wrong, normalised."""
    texts = [
        normalise(answer.text) for answer, verdict in zip(group.answers, verdicts, strict=True) if verdict == "wrong"
    ]
    candidates = [text for text in dict.fromkeys(texts) if has_content(text)]
    return random.sample(candidates, min(count, len(candidates)))


def irrelevant_questions(items: Sequence[tuple[Solved, Sequence[str], Random]], verifier: AnswerVerifier) -> list[Pair]:
    """For each problem and each of its wrong texts, the pair (positive, wrong text) under another problem's question.

    Neither answers that question, so neither should score higher. A pair is left out if the rule accepts one of the two
    under the other problem, and so is a problem without any other.
    """
    asked: list[tuple[Solved, str, str]] = []
    for solved, wrong, random in items:
        others = [other for other, _, _ in items if other.problem.question != solved.problem.question]
        for positive, negative in zip(solved.positives, wrong, strict=False):
            if others:
                asked.append((random.choice(others), positive, negative))
    texts = [(other.problem, text) for other, positive, negative in asked for text in (positive, negative)]
    verdicts = list(verifier.verify_problems(texts))
    pairs = []
    for (other, positive, negative), first, second in zip(asked, verdicts[::2], verdicts[1::2], strict=True):
        if "correct" not in (first, second):
            problem = other.problem
            ids = (problem.id, problem.question, problem.answer)
            pairs.append(Pair(*ids, positive, negative, "rollout", "irrelevant_question", label="tie"))
    return pairs
