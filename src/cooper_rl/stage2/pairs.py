"""Pairs of a right and a wrong completion: how both are chosen, and the reference that is swapped."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from random import Random
from typing import Literal

from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content, normalise
from cooper_rl.data.transcript import split_reply
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.rules.other_answers import are_unrelated, gives_several
from cooper_rl.rules.rule import Rule
from cooper_rl.stage2.assistant import RewriteRequest
from cooper_rl.stage2.config import NegativeOrigin, OnPolicyConfig, PositiveOrigin, TieOrigin


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
class Judged:
    """A group with the rule's verdict and the reward model's logit of each answer, before any update of the step."""

    group: AnswerGroup
    verdicts: Sequence[str]
    logits: Sequence[float]
    trusted: Sequence[bool] | None = None
    """Answers that are never on-policy negatives (`OnPolicyConfig.agree_with`)."""
    suspects: Sequence[bool] | None = None
    """Answers whose scores say that they are wrong (`OnPolicyConfig.unread`)."""

    @cached_property
    def texts(self) -> list[str]:
        """The normalised completions, as a reward model reads them."""
        return [normalise(answer.transcript) for answer in self.group.answers]

    def different(self, verdict: str, stopped: bool) -> list[str]:
        """The different completions with this verdict, in order of appearance; with `stopped` only whole ones."""
        rows = zip(self.group.answers, self.texts, self.verdicts, strict=True)
        texts = [text for answer, text, own in rows if own == verdict and (answer.stopped or not stopped)]
        return [text for text in dict.fromkeys(texts) if has_content(text)]


@dataclass
class Contribution:
    """What a group adds to the step's update: its pairs, its requests to the assistant, and what other groups need."""

    judged: Judged
    positives: list[str]
    """Empty if the group has none. All have the same origin."""
    partners: Random
    """Chooses what other groups are combined with."""
    origin: PositiveOrigin = "rollout"
    on_policy: list[Pair] = field(default_factory=list)
    unpaired: list[str] = field(default_factory=list)
    """Wrong completions of a group that has no positive."""
    requests: list[RewriteRequest] = field(default_factory=list)
    """For wrong versions, then for repairs."""

    @property
    def problem(self) -> Problem:
        """The group's problem."""
        return self.judged.group.problem

    @cached_property
    def _logits(self) -> dict[str, float]:
        return dict(zip(self.judged.texts, self.judged.logits, strict=True))

    def pair(
        self, positive: str, negative: str, negative_origin: NegativeOrigin, origin: PositiveOrigin | None = None
    ) -> Pair:
        """A pair of this problem, with its logits before the update where they are known."""
        ids = (self.problem.id, self.problem.question, self.problem.answer)
        logits = (self._logits.get(positive), self._logits.get(negative))
        return Pair(*ids, positive, negative, origin or self.origin, negative_origin, *logits)

    def rewritten(self, texts: Sequence[str | None]) -> list[Pair]:
        """The pairs with texts from the assistant, one text or None per request."""
        return [
            self.pair(request.whole(request.text), request.whole(text), "assistant")
            if request.goal == "wrong"
            else self.pair(request.whole(text), request.whole(request.text), "on_policy", "repaired")
            for request, text in zip(self.requests, texts, strict=True)
            if text is not None
        ]


def choose_positives(judged: Judged, count: int, rng: Random) -> list[str]:
    """Up to `count` different rule-accepted completions of a group, drawn at random.

    A completion that was cut at the length limit is never a positive, even if the rule found the answer in it.
    Texts are normalised before they are compared and kept in order of appearance, so equal seeds give equal choices.
    """
    candidates = judged.different("correct", stopped=True)
    return rng.sample(candidates, min(count, len(candidates)))


def choose_on_policy_negatives(
    judged: Judged, positives: Sequence[str], count: int, config: OnPolicyConfig, rng: Random
) -> list[str]:
    """Up to `count` different wrong completions of a group, normalised.

    Completions that stopped on their own come first. Those cut at the length limit come last, because they would teach
    "unfinished is wrong" rather than "wrong is wrong". Within each kind, `config.order` decides. A text is never a
    negative if it is also a positive, if the rule accepts it anywhere in the group, or if it is `trusted`.
    """

    def is_wrong(answer: Answer, verdict: str, suspect: bool) -> bool:
        if verdict in ("unparsed", "silent"):
            several = "several_answers" in config.unread and gives_several(answer.text, judged.group.problem.answer)
            cut_off = "cut_off" in config.unread and not answer.stopped
            trusted = config.trust_unparsed and verdict == "unparsed"
            return several or cut_off or trusted or suspect or not has_content(normalise(answer.transcript))
        return verdict == "wrong"

    none = [False] * len(judged.texts)
    marks = (judged.trusted or none, judged.suspects or none)
    rows = list(zip(judged.group.answers, judged.texts, judged.verdicts, judged.logits, *marks, strict=True))
    excluded = {*positives, *(text for _, text, verdict, _, known, _ in rows if verdict == "correct" or known)}
    if config.order == "random":
        rng.shuffle(rows)
    else:
        rows.sort(key=lambda row: -row[3] if isfinite(row[3]) else inf)
    rows.sort(key=lambda row: not row[0].stopped)  # stable sort: keeps the order within each kind
    texts = [text for answer, text, verdict, _, _, suspect in rows if is_wrong(answer, verdict, suspect)]
    return [text for text in dict.fromkeys(texts) if text not in excluded][:count]


OTHERS = 3
"""References of other problems that are tried for one pair, after the nearby numbers."""


def swapped_pairs(work: Sequence[Contribution], verifier: Rule, count: int) -> list[Pair]:
    """Up to `count` pairs per problem, one for each positive, that differ in the reference answer only.

    Contrast Instructions (Shen et al. 2023, arXiv 2309.16155) swaps the instruction under a response. A reference-based
    reward model reads a reference too, and a model that reads the text alone cannot tell these pairs apart.
    The negative is the positive under another reference: a number close to the true one where that is a whole number,
    else the reference of another of these problems. A reference is used only if the rule says that the positive is
    `wrong` under it, so it is never another form of the true answer. Where the rule is silent, any is used that shares
    no word with the true one and is a different answer (`are_different`). A problem without a reference has no such
    pairs.
    """
    work = [one for one in work if one.problem.answer]
    answers = list(dict.fromkeys(one.problem.answer for one in work))
    wanted: list[tuple[Contribution, str, list[str]]] = []
    for one in work:
        others = [answer for answer in answers if answer != one.problem.answer]
        for positive in one.positives[:count]:
            picked = one.partners.sample(others, min(OTHERS, len(others)))
            wanted.append((one, positive, nearby(one.problem.answer, one.partners) + picked))
    asked = [(one.problem, positive, answer) for one, positive, candidates in wanted for answer in candidates]
    verdicts = iter(
        verifier.verify_problems(
            [(replace(problem, answer=answer), split_reply(text)[1]) for problem, text, answer in asked]
        )
    )
    pairs: list[Pair] = []
    for one, positive, candidates in wanted:
        said = [(answer, next(verdicts)) for answer in candidates]
        if wrong := [
            answer
            for answer, verdict in said
            if verdict == "wrong" or (verdict == "silent" and are_unrelated(one.problem.answer, answer))
        ]:
            pair = one.pair(positive, positive, "swapped_reference")
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
