"""Cooper in one file: the demo's run of `kind: cooper`, in plain PyTorch and transformers.

    python examples/one_file.py [STEPS] [SEED]

It imports the world (questions, a function in the place of the assistant, true labels to measure with) and the rule,
and nothing of `cooper_rl`. A test compares its rewards, advantages, losses and gradients with the framework's. Symbols
are those of docs/algorithm.md; constants have the names of the settings.

Left out, because it changes no formula: a fast sampler, packed rows, micro-batches, devices, caches, records, resuming,
the alarm, chat servers, completions of several turns, inputs cut to a length, shapings, labelled replay, forged tags,
the bound of 4,096 remembered pairs, verdicts that time out. Left out, although it changes the gradient a little: rows
without a backward pass (`skip_gradient_share`, `settled_below`), which save time.
"""

import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle, islice
from math import inf, isnan, nan
from statistics import fmean
from typing import Any
from zlib import crc32

import torch
from torch import Tensor
from torch.nn.functional import softplus
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from cooper_lab.arithmetic.corruption import corrupt
from cooper_lab.arithmetic.figures import figures_verdict
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.world import ASSETS
from cooper_verify.rules.other_answers import are_different, gives_several

JUDGED = ("sum", "difference", "product", "two_steps")  # families of questions; on the others the rule is silent
PROBLEMS_PER_STEP, N, MAX_TOKENS = 32, 8, 32
POLICY_RATE, MODEL_RATE, MODEL_WARMUP, WEIGHT_DECAY, MAX_GRAD_NORM = 5e-4, 6e-4, 3, 0.01, 1.0
STD_FLOOR, MIN_SPREAD, CLIP, KL, KL_CLAMP = 0.2, 0.01, 0.2, 0.001, 10.0
PAIRS_PER_PROBLEM, ANCHOR, PAST_PAIRS, TRIES, BEFORE_POLICY = 4, 0.5, 32, 3, 0.1
MEMORY = 16  # verdicts of a class to which older ones fill up a step that has fewer

Row = tuple[str, str, str]  # what the reward model reads: question, reference answer, completion
Pair = tuple[Row, Row]
See = Callable[[str, Tensor, Any], None]  # called with the name of a model, its loss, and the model with its gradient


@dataclass
class Completion:
    tokens: list[int]  # with the end token, if it ended by itself
    text: str
    stopped: bool
    verdict: str = ""  # correct, wrong, unparsed, silent
    logit: float = 0.0
    swapped: float = -inf  # its logit under another problem's reference, if that was asked
    reward: float = nan  # NaN is no opinion
    advantage: float = 0.0


@dataclass
class Group:
    problem: Any
    prompt: list[int]
    answers: list[Completion]

    @property
    def row(self) -> Callable[..., Row]:
        problem = self.problem
        return lambda text, answer=problem.answer: (problem.question, answer, text.strip())


class Cooper:
    """Both models, the pairs that are remembered, and the verdicts by which the reward model earns its weight."""

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float32) -> None:
        self.seed, self.dtype, self.steps = seed, dtype, 0
        policy, reward_model = ASSETS / "policy", ASSETS / "reward_model"
        # In evaluation mode in training too: with dropout, new and old log-probabilities would differ by themselves.
        self.policy, self.reference = (AutoModelForCausalLM.from_pretrained(policy, dtype=dtype).eval() for _ in "12")
        self.model = AutoModelForSequenceClassification.from_pretrained(reward_model, dtype=dtype).eval()
        self.tokenizer, self.reader = AutoTokenizer.from_pretrained(policy), AutoTokenizer.from_pretrained(reward_model)
        self.optimizers = {model: adamw(model, rate) for model, rate in ((self.policy, POLICY_RATE), (self.model, 0.0))}
        self.counts = [0.0] * 4  # right, accepted of these; wrong, accepted of these
        self.pairs: list[Pair] = []
        self.replay = random.Random(seed)


def adamw(model: Any, rate: float) -> torch.optim.AdamW:
    decayed, others = ([p for p in model.parameters() if (p.ndim >= 2) == is_matrix] for is_matrix in (True, False))
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.999))


def learn(cooper: Cooper, name: str, loss: Tensor, see: See) -> None:
    model = cooper.policy if name == "policy" else cooper.model
    loss.backward()
    see(name, loss, model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
    cooper.optimizers[model].step()
    cooper.optimizers[model].zero_grad()


def cooper_step(cooper: Cooper, groups: list[Group], see: See = lambda *_: None) -> None:
    """One step on its rollouts: verdicts, scores, rewards, and both updates."""
    cooper.steps += 1
    for group, answer in answers_of(groups):
        answer.verdict = verdict(group.problem, answer.text)
    score(cooper, groups)
    pairs, unpaired = make_pairs(cooper, groups)
    wrong = [answer.logit > 0 for _, answer in answers_of(groups) if answer.verdict == "wrong"]
    learns_first = bool(wrong) and fmean(wrong) > BEFORE_POLICY  # the rule contradicts the model: it learns, then pays
    if learns_first:
        update_model(cooper, pairs, unpaired, see)
        score(cooper, groups)
    pay(cooper, groups)
    update_policy(cooper, groups, see)
    if not learns_first:
        update_model(cooper, pairs, unpaired, see)


def answers_of(groups: list[Group]) -> Iterable[tuple[Group, Completion]]:
    return [(group, answer) for group in groups for answer in group.answers]


# Rollouts


def sample(cooper: Cooper, problems: list[Any], n: int = N) -> list[Group]:
    """n completions of each problem, at temperature 1."""
    prompts = [cooper.tokenizer(problem.question + "\n")["input_ids"] for problem in problems]
    width, end = max(map(len, prompts)), cooper.tokenizer.eos_token_id
    padded = torch.tensor([[0] * (width - len(row)) + row for row in prompts for _ in range(n)])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts for _ in range(n)])
    how = {"do_sample": True, "top_k": 0, "max_new_tokens": MAX_TOKENS, "pad_token_id": 0, "eos_token_id": end}
    drawn = cooper.policy.generate(padded, attention_mask=mask, **how)[:, width:].tolist()
    rows = iter([row[: row.index(end) + 1] if end in row else row for row in drawn])
    decode = cooper.tokenizer.decode
    return [
        Group(problem, prompt, [Completion(t, decode(t, skip_special_tokens=True), end in t) for t in islice(rows, n)])
        for problem, prompt in zip(problems, prompts, strict=True)
    ]


def verdict(problem: Any, text: str) -> str:
    return figures_verdict(problem.answer, text) if problem.metadata["family"] in JUDGED else "silent"


# The reward


def read(cooper: Cooper, rows: list[Row]) -> Tensor:
    """The reward model's logits of these rows, each read at its last token."""
    form = "<question>{}</question>\n<reference_answer>{}</reference_answer>\n<completion>{}</completion>"
    batch = cooper.reader([form.format(*row) for row in rows], return_tensors="pt", padding=True, padding_side="right")
    return cooper.model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0]


@torch.no_grad()
def score(cooper: Cooper, groups: list[Group]) -> None:
    """The logit of each answer, and of an accepted one without a verdict also that under another reference."""
    answers = answers_of(groups)
    for (_, answer), logit in zip(answers, read(cooper, [g.row(a.text) for g, a in answers]).tolist(), strict=True):
        answer.logit, answer.swapped = logit, -inf
    others = {group.problem.id: other_reference(group.problem, groups) for group in groups}
    asked = [(g, a) for g, a in answers if a.logit > 0 and a.verdict in ("silent", "unparsed") and others[g.problem.id]]
    rows = [g.row(a.text, others[g.problem.id]) for g, a in asked]
    for (_, answer), logit in zip(asked, read(cooper, rows).tolist() if rows else [], strict=True):
        answer.swapped = logit


def other_reference(problem: Any, groups: list[Group]) -> str | None:
    answers = {group.problem.answer for group in groups}
    mixed = sorted(answers, key=lambda other: (crc32(f"{problem.id} {other}".encode()), other))
    return next((other for other in mixed if are_different(problem.answer, other)), None)


def pay(cooper: Cooper, groups: list[Group]) -> None:
    """r = w s + (1 - w) v, with s = sigmoid(logit) and v = 1 if the rule accepts the answer, else 0. Where the rule is
    silent on a whole group, r = w max(0, s - s under another reference). Where it is silent on some, no opinion.

    w = max(0, J)^2 with J = accepted right / (right + 1) - (accepted wrong + 1) / (wrong + 1).
    """
    now = [0.0] * 4
    for _, answer in answers_of(groups):
        if answer.verdict in ("correct", "wrong"):
            place = 0 if answer.verdict == "correct" else 2
            now[place] += 1
            now[place + 1] += answer.logit > 0
    cooper.counts = [*newer(cooper.counts[:2], now[:2]), *newer(cooper.counts[2:], now[2:])]
    right, right_accepted, wrong, wrong_accepted = cooper.counts
    w = max(0.0, right_accepted / (right + 1) - (wrong_accepted + 1) / (wrong + 1)) ** 2
    for group, answer in answers_of(groups):
        s, swapped = torch.tensor([answer.logit, answer.swapped]).sigmoid().tolist()
        if answer.verdict == "silent":
            silent = all(other.verdict == "silent" for other in group.answers)
            answer.reward = w * max(0.0, s - swapped) if silent and w > 0 else nan
        else:
            answer.reward = w * s + (1 - w) * (answer.verdict == "correct")


def newer(before: list[float], now: list[float]) -> list[float]:
    """Verdicts of a class and the accepted of these. Old ones fill a step up to MEMORY, or count as much as the step."""
    share = min(1.0, max(now[0], MEMORY - now[0]) / before[0]) if before[0] and now[0] else 1.0
    return [new + share * old for old, new in zip(before, now, strict=True)]


# Stage 1: the policy's update


def advantages(rewards: list[float]) -> list[float]:
    """A = (r - mean) / (max(std, STD_FLOOR) + 1e-6) over the group's opinions; 0 where they differ by MIN_SPREAD."""
    opinions = torch.tensor([reward for reward in rewards if not isnan(reward)], dtype=torch.float64)
    if len(opinions) < 2 or opinions.max() - opinions.min() <= MIN_SPREAD:
        return [0.0] * len(rewards)  # scores are never equal: to divide by their std would make noise of size 1
    mean, std = opinions.mean().item(), opinions.std().item()
    return [0.0 if isnan(reward) else (reward - mean) / (max(std, STD_FLOOR) + 1e-6) for reward in rewards]


def logprobs(policy: Any, rows: list[tuple[list[int], list[int]]]) -> Tensor:
    """Log-probabilities of the tokens of completions, given (prompt, completion), one row after the other."""
    longest = max(len(prompt) + len(tokens) for prompt, tokens in rows)
    ids = torch.tensor([[*prompt, *tokens] + [0] * (longest - len(prompt) - len(tokens)) for prompt, tokens in rows])
    of_all = policy(ids).logits[:, :-1].log_softmax(-1)  # padding is on the right, where no earlier token sees it
    of_next = of_all.gather(2, ids[:, 1:, None])[:, :, 0]
    return torch.cat([of_next[i, len(p) - 1 : len(p) + len(t) - 1] for i, (p, t) in enumerate(rows)])


def policy_loss(new: Tensor, old: Tensor, reference: Tensor, A: Tensor) -> Tensor:
    """The mean over tokens of max(-A ratio, -A clip(ratio, 1 - CLIP, 1 + CLIP)) + KL k3, with ratio = exp(new - old)
    and k3 = exp(reference - new) - 1 - (reference - new). With one update a step, the ratio is 1: only its gradient
    counts."""
    ratio, inverse = (new - old).exp(), reference - new
    clipped = torch.maximum(-A * ratio, -A * ratio.clamp(1 - CLIP, 1 + CLIP))
    return (clipped + KL * (inverse.expm1() - inverse).clamp(max=KL_CLAMP)).mean()


def update_policy(cooper: Cooper, groups: list[Group], see: See) -> None:
    for group in groups:
        for answer, A in zip(group.answers, advantages([answer.reward for answer in group.answers]), strict=True):
            answer.advantage = A
    trained = [(g, a) for g, a in answers_of(groups) if not isnan(a.reward)]  # no opinion: as if it were not sampled
    if not trained:
        return
    rows = [(group.prompt, answer.tokens) for group, answer in trained]
    A = torch.tensor([answer.advantage for _, answer in trained for _ in answer.tokens], dtype=cooper.dtype)
    with torch.no_grad():
        reference = logprobs(cooper.reference, rows)
    new = logprobs(cooper.policy, rows)
    learn(cooper, "policy", policy_loss(new, new.detach(), reference, A), see)


# Stage 2: the reward model's update


def make_pairs(cooper: Cooper, groups: list[Group]) -> tuple[list[Pair], list[Row]]:
    """Right completions beside the assistant's wrong versions of them and beside the policy's own wrong completions;
    and the latter alone, of groups that have no right one."""
    written, drawn, unpaired = [], [], []
    for group in sorted(groups, key=lambda group: group.problem.id):
        draw = random.Random(f"pairs {cooper.seed} {cooper.steps} {group.problem.id}")
        right = list(dict.fromkeys(a.text.strip() for a in group.answers if a.verdict == "correct" and a.stopped))
        positives = draw.sample(right, min(PAIRS_PER_PROBLEM, len(right)))
        for positive in islice(cycle(positives), PAIRS_PER_PROBLEM):
            negative = wrong_version(group.problem, positive, draw.getrandbits(31))
            written += [] if negative is None else [(group.row(positive), group.row(negative))]
        negatives = [group.row(text) for text in wrong_completions(group)]
        drawn += [(group.row(text), wrong) for text, wrong in zip(cycle(positives), negatives, strict=False)]
        unpaired += [] if positives else negatives
    return list(dict.fromkeys(written + drawn)), unpaired


def wrong_version(problem: Any, positive: str, seed: int) -> str | None:
    """What the assistant makes of a right completion, if the rule calls it wrong."""
    versions = (corrupt(problem, positive, attempt, seed) for attempt in range(TRIES))
    return next((text for text in versions if text != positive and verdict(problem, text) == "wrong"), None)


def wrong_completions(group: Group) -> list[str]:
    """The policy's wrong completions: those that ended by themselves first, and of these the best-scored, which show a
    hack. One without a verdict is wrong if it gives several answers, was cut off, says nothing, or is accepted under
    the reference of another problem too."""
    several = gives_several([answer.text for answer in group.answers], group.problem.answer)
    says_nothing = [not any(map(str.isalnum, answer.text)) for answer in group.answers]
    wrong = [
        answer
        for answer, has_several, is_empty in zip(group.answers, several, says_nothing, strict=True)
        if answer.verdict == "wrong"
        or (answer.verdict != "correct" and (has_several or is_empty or not answer.stopped or answer.swapped > 0))
    ]
    wrong.sort(key=lambda answer: (not answer.stopped, -answer.logit))
    right = {answer.text.strip() for answer in group.answers if answer.verdict == "correct"}
    texts = dict.fromkeys(answer.text.strip() for answer in wrong if any(map(str.isalnum, answer.text)))
    return [text for text in texts if text not in right][:PAIRS_PER_PROBLEM]


def update_model(cooper: Cooper, pairs: list[Pair], unpaired: list[Row], see: See) -> None:
    """One update on the step's pairs, and on past ones so that it undoes nothing."""
    past = cooper.replay.sample(cooper.pairs, min(PAST_PAIRS, len(cooper.pairs)))
    for group in cooper.optimizers[cooper.model].param_groups:
        group["lr"] = MODEL_RATE * min(1.0, cooper.steps / MODEL_WARMUP)
    if pairs or past or unpaired:
        learn(cooper, "reward model", model_loss(cooper, pairs + past, unpaired), see)
    cooper.pairs += pairs


def model_loss(cooper: Cooper, pairs: list[Pair], unpaired: list[Row]) -> Tensor:
    """The mean over pairs of -log sigmoid(p - n) + ANCHOR (BCE(p, 1) + BCE(n, 0)) / 2, and ANCHOR / 2 BCE(u, 0) /
    (pairs + unpaired) of each unpaired wrong completion. Without the anchor, all logits could shift together."""
    logits = read(cooper, [right for right, _ in pairs] + [wrong for _, wrong in pairs] + unpaired)
    p, n, u = logits.split([len(pairs), len(pairs), len(unpaired)])
    of_pairs = softplus(n - p) + ANCHOR * (softplus(-p) + softplus(n)) / 2
    return of_pairs.sum() / max(len(pairs), 1) + ANCHOR / 2 * softplus(u).sum() / (len(pairs) + len(unpaired))


# The run


def accuracy(groups: list[Group]) -> float:
    return fmean(gold(group.problem, answer.text) for group, answer in answers_of(groups))


def main(steps: int = 40, seed: int = 0) -> None:
    torch.manual_seed(seed)
    cooper, order = Cooper(seed), random.Random(seed)
    problems, test = arithmetic_problems("train", 4000), arithmetic_problems("test", 128)
    start = accuracy(sample(cooper, test, n=2))
    for step in range(1, steps + 1):
        groups = sample(cooper, order.sample(problems, PROBLEMS_PER_STEP))
        cooper_step(cooper, groups)
        paid = fmean(answer.reward for _, answer in answers_of(groups) if not isnan(answer.reward))
        print(f"step {step:3}: gold {accuracy(groups):.3f}, paid {paid:.3f}", flush=True)
    print(f"one file: gold on test problems {start:.3f} → {accuracy(sample(cooper, test, n=2)):.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
