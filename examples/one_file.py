"""Cooper in one file: `python examples/one_file.py [STEPS] [SEED]` is the demo's `kind: cooper`, in plain PyTorch.

It imports the world (questions, a function in the place of the assistant, true labels to measure with) and the rule. A
test compares its rewards, advantages, losses and gradients with the framework's. docs/algorithm.md has its formulas,
and constants have the names of the settings. Left out, because it changes no formula: fast sampling, packed rows,
micro-batches, devices, records, resuming, the alarm, chat servers, several turns, cut inputs, shapings, labelled
replay. Left out, although it changes the gradient a little: `skip_gradient_share`.
"""

import random
import sys
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
from cooper_verify.rules.near_answers import near_answers, stated_with_near
from cooper_verify.rules.other_answers import are_different, gives_several

JUDGED = ("sum", "difference", "product", "two_steps")  # families of questions; on the others the rule is silent
PROBLEMS_PER_STEP, N, MAX_TOKENS = 32, 8, 32
POLICY_RATE, MODEL_RATE, MODEL_WARMUP, WEIGHT_DECAY, MAX_GRAD_NORM = 5e-4, 6e-4, 3, 0.01, 1.0
STD_FLOOR, MIN_SPREAD, CLIP, KL, KL_CLAMP = 0.2, 0.01, 0.2, 0.001, 10.0
PAIRS_PER_PROBLEM, ANCHOR, PAST_PAIRS, TRIES, BEFORE_POLICY, MEMORY = 4, 0.5, 32, 3, 0.1, 16

Row = tuple[str, str, str]  # what the reward model reads: question, reference answer, completion
Pair = tuple[Row, Row]


@dataclass
class Completion:
    tokens: list[int]  # with the end token, if it stopped by itself
    text: str
    stopped: bool
    verdict: str = ""  # correct, wrong, unparsed, silent
    logit: float = 0.0
    near: float = -inf  # its logit under a reference near to its problem's, if that was asked
    swapped: float = -inf  # its logit under another problem's reference, if that was asked
    reward: float = nan  # NaN is no opinion
    advantage: float = 0.0


@dataclass
class Group:
    problem: Any
    prompt: list[int]
    answers: list[Completion]

    def row(self, text: str, reference: str | None = None) -> Row:
        return self.problem.question, reference or self.problem.answer, text.strip()


class Cooper:
    """Both models, the pairs that are remembered, and the verdicts by which the reward model earns its weight."""

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float32) -> None:
        self.seed, self.dtype, self.steps = seed, dtype, 0
        policy, reward_model = ASSETS / "policy", ASSETS / "reward_model"
        # In evaluation mode in training too: with dropout, new and old log-probabilities would differ by themselves.
        self.policy: Any  # transformers' own types do not know `generate` of what they load
        self.policy, self.reference = (AutoModelForCausalLM.from_pretrained(policy, dtype=dtype).eval() for _ in "12")
        self.model = AutoModelForSequenceClassification.from_pretrained(reward_model, dtype=dtype).eval()
        self.tokenizer, self.reader = AutoTokenizer.from_pretrained(policy), AutoTokenizer.from_pretrained(reward_model)
        self.optimizers = {model: self.adamw(model) for model in (self.policy, self.model)}
        self.pairs, self.replay, self.counts = [], random.Random(seed), [0.0] * 4  # right, accepted; wrong, accepted

    def adamw(self, model: Any) -> torch.optim.AdamW:
        vectors, matrices = (
            [p for p in model.parameters() if (p.ndim > 1) == is_matrix] for is_matrix in (False, True)
        )
        groups = [{"params": vectors, "weight_decay": 0.0}, {"params": matrices, "weight_decay": WEIGHT_DECAY}]
        return torch.optim.AdamW(groups, POLICY_RATE)


def learn(cooper: Cooper, model: Any, loss: Tensor) -> None:
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
    cooper.optimizers[model].step()
    cooper.optimizers[model].zero_grad()


def cooper_step(cooper: Cooper, groups: list[Group]) -> None:
    cooper.steps += 1
    for group, answer in answers_of(groups):
        answer.verdict = verdict(group.problem, answer.text)
    score(cooper, groups)
    pairs, unpaired = make_pairs(cooper, groups)
    wrong = [answer.logit > 0 for _, answer in answers_of(groups) if answer.verdict == "wrong"]
    learns_first = bool(wrong) and fmean(wrong) > BEFORE_POLICY  # the rule contradicts the model: it learns, then pays
    if learns_first:
        update_model(cooper, pairs, unpaired)
        score(cooper, groups)
    pay(cooper, groups)
    update_policy(cooper, groups)
    if not learns_first:
        update_model(cooper, pairs, unpaired)


def answers_of(groups: list[Group]) -> list[tuple[Group, Completion]]:
    return [(group, answer) for group in groups for answer in group.answers]


def sample(cooper: Cooper, problems: list[Any], n: int = N) -> list[Group]:
    """n completions of each problem, at temperature 1."""
    prompts = [cooper.tokenizer(problem.question + "\n")["input_ids"] for problem in problems]
    width, end = max(map(len, prompts)), cooper.tokenizer.eos_token_id
    padded = torch.tensor([[0] * (width - len(row)) + row for row in prompts for _ in range(n)])
    how = {"do_sample": True, "top_k": 0, "max_new_tokens": MAX_TOKENS, "pad_token_id": 0, "eos_token_id": end}
    drawn = cooper.policy.generate(padded, attention_mask=(padded != 0).long(), **how)[:, width:].tolist()
    rows = [row[: row.index(end) + 1] if end in row else row for row in drawn]
    texts = cooper.tokenizer.batch_decode(rows, skip_special_tokens=True)
    answers = iter([Completion(row, text, end in row) for row, text in zip(rows, texts, strict=True)])
    return [Group(problem, row, [*islice(answers, n)]) for problem, row in zip(problems, prompts, strict=True)]


def verdict(problem: Any, text: str) -> str:
    is_judged = problem.metadata["family"] in JUDGED
    return figures_verdict(problem.answer, text, problem.question) if is_judged else "silent"


def read(cooper: Cooper, rows: list[Row]) -> Tensor:
    """The reward model's logits of these rows, each read at its last token."""
    form = "<question>{}</question>\n<reference_answer>{}</reference_answer>\n<completion>{}</completion>"
    batch = cooper.reader([form.format(*row) for row in rows], return_tensors="pt", padding=True, padding_side="right")
    return cooper.model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0]


@torch.no_grad()
def score(cooper: Cooper, groups: list[Group]) -> None:
    """The logit of each answer; of an accepted one without a verdict also that under a near reference, and if it is
    accepted there too, or there is none, that under another problem's reference."""

    def ask(name: str, asked: list[tuple[Completion, Row]]) -> None:
        for (answer, _), logit in zip(asked, read(cooper, [row for _, row in asked]) if asked else [], strict=True):
            setattr(answer, name, logit.item())

    def drawn(references: list[str] | set[str], seed: str) -> str | None:
        return min(references, key=lambda other: (crc32(f"{seed} {other}".encode()), other), default=None)

    for _, answer in answers_of(groups):
        answer.near = answer.swapped = -inf
    ask("logit", [(answer, group.row(answer.text)) for group, answer in answers_of(groups)])
    unsure = [(g, a) for g, a in answers_of(groups) if a.logit > 0 and a.verdict in ("silent", "unparsed")]
    near, other = {}, {}
    for group, options in zip(groups, near_answers([group.problem.answer for group in groups]), strict=True):
        problem, own = group.problem.id, group.problem.answer
        near[problem] = drawn(options, f"{problem} {group.answers[0].text.strip()}")
        other[problem] = drawn({g.problem.answer for g in groups if are_different(own, g.problem.answer)}, problem)
    ask("near", [(a, g.row(a.text, near[g.problem.id])) for g, a in unsure if near[g.problem.id]])
    kept = [(g, a) for g, a in unsure if a.near > 0 or not near[g.problem.id]]
    ask("swapped", [(a, g.row(a.text, other[g.problem.id])) for g, a in kept if other[g.problem.id]])


def pay(cooper: Cooper, groups: list[Group]) -> None:
    """r = w s + (1 - w) v, with s = sigmoid(logit) and v = 1 if the rule accepts the answer, else 0. Where the rule is
    silent on a whole group, r = w max(0, s - s') of an accepted answer, with s' the best under the two other
    references, and 0 of a rejected one; there is no opinion if the rule is silent on some of the group only.

    w = max(0, J)^2 with J = accepted right / (right + 1) - (accepted wrong + 1) / (wrong + 1).
    """
    for place, kind in ((0, "correct"), (2, "wrong")):
        accepted = [answer.logit > 0 for _, answer in answers_of(groups) if answer.verdict == kind]
        before, now = cooper.counts[place], len(accepted)  # older verdicts fill up to MEMORY, or count as much as these
        share = min(1.0, max(now, MEMORY - now) / before) if before and now else 1.0
        cooper.counts[place] = now + share * before
        cooper.counts[place + 1] = sum(accepted) + share * cooper.counts[place + 1]
    right, right_accepted, wrong, wrong_accepted = cooper.counts
    w = max(0.0, right_accepted / (right + 1) - (wrong_accepted + 1) / (wrong + 1)) ** 2
    for group in groups:
        silent = all(answer.verdict == "silent" for answer in group.answers)
        for answer in group.answers:
            s, *others = torch.tensor([answer.logit, answer.near, answer.swapped]).sigmoid().tolist()
            if answer.verdict == "silent":
                worth = max(0.0, s - max(others)) if answer.logit > 0 else 0.0
                answer.reward = w * worth if silent and w > 0 else nan
            else:
                answer.reward = w * s + (1 - w) * (answer.verdict == "correct")


def advantages(rewards: list[float]) -> list[float]:
    """A = (r - mean) / (max(std, STD_FLOOR) + 1e-6) over the group's opinions; 0 where they differ by MIN_SPREAD."""
    opinions = torch.tensor([reward for reward in rewards if not isnan(reward)], dtype=torch.float64)
    if len(opinions) < 2 or opinions.max() - opinions.min() <= MIN_SPREAD:
        return [0.0] * len(rewards)  # scores are never equal: to divide by their std would make noise of size 1
    mean, std = opinions.mean().item(), opinions.std().item()
    return [0.0 if isnan(reward) else (reward - mean) / (max(std, STD_FLOOR) + 1e-6) for reward in rewards]


def logprobs(policy: Any, rows: list[tuple[list[int], list[int]]]) -> Tensor:
    """Log-probabilities of the completions' tokens; a row is a prompt and a completion."""
    longest = max(len(prompt) + len(tokens) for prompt, tokens in rows)
    ids = torch.tensor([[*prompt, *tokens] + [0] * (longest - len(prompt) - len(tokens)) for prompt, tokens in rows])
    of_all = policy(ids).logits[:, :-1].log_softmax(-1)  # padding is on the right, where no earlier token sees it
    of_next = of_all.gather(2, ids[:, 1:, None])[:, :, 0]
    return torch.cat([of_next[i, len(p) - 1 : len(p) + len(t) - 1] for i, (p, t) in enumerate(rows)])


def update_policy(cooper: Cooper, groups: list[Group]) -> None:
    """The loss is the mean over tokens of max(-A ratio, -A clip(ratio, 1 - CLIP, 1 + CLIP)) + KL (exp(d) - 1 - d), with
    ratio = exp(log π - log π_old), which is 1 with one update a step, and d = log π_ref - log π."""
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
    ratio, d = (new - new.detach()).exp(), reference - new
    clipped = torch.maximum(-A * ratio, -A * ratio.clamp(1 - CLIP, 1 + CLIP))
    learn(cooper, cooper.policy, (clipped + KL * (d.expm1() - d).clamp(max=KL_CLAMP)).mean())


def make_pairs(cooper: Cooper, groups: list[Group]) -> tuple[list[Pair], list[Row]]:
    """Right completions beside the assistant's wrong versions of them and beside the policy's own wrong completions;
    the latter alone, of groups that have no right one; and of each group one completion under the answer that it
    states, beside itself under an answer near to that: nobody has to know which is the problem's."""
    written, own, near, unpaired = [], [], [], []
    for group in sorted(groups, key=lambda group: group.problem.id):
        seed = f"{cooper.seed} {cooper.steps} {group.problem.id}"
        draw = random.Random(f"pairs {seed}")
        right = list(dict.fromkeys(a.text.strip() for a in group.answers if a.verdict == "correct" and a.stopped))
        positives = draw.sample(right, min(PAIRS_PER_PROBLEM, len(right)))
        for positive in islice(cycle(positives), PAIRS_PER_PROBLEM):
            slip = draw.getrandbits(31)
            tries = [corrupt(group.problem, positive, attempt, slip) for attempt in range(TRIES)]
            wrong = [text for text in tries if text != positive and verdict(group.problem, text) == "wrong"]
            written += [(group.row(positive), group.row(text)) for text in wrong[:1]]
        negatives = [group.row(text) for text in wrong_completions(group)]
        own += [(group.row(text), wrong) for text, wrong in zip(cycle(positives), negatives, strict=False)]
        unpaired += [] if positives else negatives
        whole = [(answer.logit, answer.text.strip()) for answer in group.answers if answer.stopped]
        if whole:
            text = max(whole)[1]
            stated, *others = stated_with_near([text])[0] or [""]
            if others:
                other = random.Random(f"near {seed}").choice(others)
                near.append((group.row(text, stated), group.row(text, other)))
    return [*dict.fromkeys(written), *own, *near], unpaired  # a slip that the policy makes too counts twice


def wrong_completions(group: Group) -> list[str]:
    """The policy's own: those that ended by themselves first, and of these the best-scored, which show a hack. Without
    a verdict, several answers, none, a cut-off or one accepted under another problem's reference too are wrong."""
    several = gives_several([answer.text for answer in group.answers], group.problem.answer)
    right = {answer.text.strip() for answer in group.answers if answer.verdict == "correct"}
    wrong: list[tuple[bool, float, str]] = []
    for answer, has_several in zip(group.answers, several, strict=True):
        text, says_nothing = answer.text.strip(), not any(map(str.isalnum, answer.text))
        looks_wrong = has_several or says_nothing or not answer.stopped or answer.swapped > 0
        if text not in right and (answer.verdict == "wrong" or looks_wrong):
            wrong.append((not answer.stopped, -answer.logit, text))
    return [*dict.fromkeys(text for _, _, text in sorted(wrong, key=lambda row: row[:2]))][:PAIRS_PER_PROBLEM]


def update_model(cooper: Cooper, pairs: list[Pair], unpaired: list[Row]) -> None:
    """The loss is the mean over pairs of -log σ(p - n) + ANCHOR (BCE(p, 1) + BCE(n, 0)) / 2, and ANCHOR / 2 BCE(u, 0) /
    (pairs + unpaired) of each unpaired wrong completion. A pair of one completion under two references counts
    PAIRS_PER_PROBLEM times. Without the anchor, all logits could shift together. Past pairs are there so that an update
    undoes nothing."""
    both = pairs + cooper.replay.sample(cooper.pairs, min(PAST_PAIRS, len(cooper.pairs)))
    for group in cooper.optimizers[cooper.model].param_groups:
        group["lr"] = MODEL_RATE * min(1.0, cooper.steps / MODEL_WARMUP)
    if both or unpaired:
        logits = read(cooper, [right for right, _ in both] + [wrong for _, wrong in both] + unpaired)
        p, n, u = logits.split([len(both), len(both), len(unpaired)])
        of_pairs = softplus(n - p) + ANCHOR * (softplus(-p) + softplus(n)) / 2
        of_unpaired = ANCHOR / 2 * softplus(u) / (len(both) + len(unpaired))
        weights = torch.tensor([PAIRS_PER_PROBLEM if right[2] == wrong[2] else 1 for right, wrong in both])
        learn(cooper, cooper.model, (weights * of_pairs).sum() / max(weights.sum(), 1) + of_unpaired.sum())
    cooper.pairs += pairs


def main(steps: int = 40, seed: int = 0) -> None:
    torch.manual_seed(seed)
    cooper, order = Cooper(seed), random.Random(seed)
    problems, test = arithmetic_problems("train", 4000), arithmetic_problems("test", 128)
    for step in range(1, steps + 1):
        groups = sample(cooper, order.sample(problems, PROBLEMS_PER_STEP))
        cooper_step(cooper, groups)
        print(f"step {step}: gold {fmean(gold(g.problem, a.text) for g, a in answers_of(groups)):.3f}", flush=True)
    at_end = answers_of(sample(cooper, test, n=2))
    print(f"one file: gold at the end {fmean(gold(g.problem, a.text) for g, a in at_end):.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
