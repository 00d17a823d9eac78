"""The demo's VerifyRM: labelled samples of several warm-up checkpoints, and training on them.

Labels come from the rule verifier, or are known because the text was written right or wrong on purpose. Gold is not
asked: it only measures.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from cooper_rl.configuration import Config
from cooper_rl.cooptimization.labelled import LabelledCompletion
from cooper_rl.learning.learner import LabelledBatch
from cooper_rl.learning.reward_learner import TorchRewardModelLearner
from cooper_rl.learning.reward_losses import BinaryCrossEntropyLoss
from cooper_rl.problems.arithmetic_answers import form_of, read_answer, render_answer
from cooper_rl.problems.arithmetic_corruption import corrupt, wrong_value
from cooper_rl.problems.arithmetic_solutions import draw_solution, find_answer
from cooper_rl.problems.problem import Problem
from cooper_rl.rewards.reward_model_input import RewardModelInput
from cooper_rl.rewards.rule_verifier import RuleVerifier


class VerifyRMConfig(Config):
    """How the demo's reward model is trained."""

    problems: int = 1500
    """Training problems that are sampled."""
    epochs: float = 2.0
    """Passes over the labelled completions."""
    batch_size: int = 64
    """Labelled completions per update."""
    learning_rate: float = 1e-3
    """Peak learning rate; cosine decay to 0."""
    replayed: int = 2000
    """Labelled completions that are stored for replay during reinforcement learning."""


def label_samples(
    problems: Sequence[Problem], completions: Sequence[Sequence[str]], verifier: RuleVerifier, random: Random
) -> list[LabelledCompletion]:
    """Labelled completions out of samples; `completions[i]` are samples for `problems[i]`.

    A sample is labelled by the rule against the reference, against the answer it states itself, against a near
    miss of that answer, and against another problem's reference; what the rule cannot parse is left out. A written
    solution and its corruption come with every problem, in all surface forms, and are right and wrong by
    construction.
    """
    asked: list[tuple[str, str, str]] = []
    written: list[LabelledCompletion] = []
    for problem, texts in zip(problems, completions, strict=True):
        for text in texts:
            asked += [(problem.question, answer, text) for answer in _references(problem, problems, text, random)]
        solution = draw_solution(problem, random)
        slip = corrupt(problem, solution, seed=random.getrandbits(31))
        written += [
            LabelledCompletion(problem.question, problem.answer, text, label)
            for text, label in ((solution, 1.0), (slip, 0.0))
        ]
    verdicts = verifier.verify_many([(answer, text) for _, answer, text in asked])
    labels = {"correct": 1.0, "wrong": 0.0}
    natural = [
        LabelledCompletion(*row, labels[verdict])
        for row, verdict in zip(asked, verdicts, strict=True)
        if verdict in labels
    ]
    return natural + written


def _references(problem: Problem, problems: Sequence[Problem], text: str, random: Random) -> Iterator[str]:
    """The references a sample is paired with: the problem's, its own answer, a near miss, another problem's."""
    yield problem.answer
    stated = find_answer(text)
    answer = text[stated.start : stated.end]
    value, form = read_answer(answer), form_of(answer)
    if value is None or form is None:
        return
    yield render_answer(value, "plain")
    yield render_answer(wrong_value(value, form, random), "plain")
    if random.random() < 0.3:
        yield random.choice(problems).answer


def train_reward_model(
    learner: TorchRewardModelLearner,
    encoder: RewardModelInput,
    rows: Sequence[LabelledCompletion],
    config: VerifyRMConfig,
    random: Random,
    on_update: Callable[[int, float], None] | None = None,
) -> None:
    """Binary cross-entropy on `rows`; inputs of similar length share a batch. `on_update(updates, loss)` reports."""
    encoded = [(encoder.encode(row.question, row.answer, row.completion), row.label) for row in rows]
    share = 1 / config.batch_size
    for update in range(learner.total_steps):
        picked = random.sample(encoded, config.batch_size)
        batch = LabelledBatch([ids for ids, _ in picked], [label for _, label in picked], [share] * len(picked))
        loss = learner.forward_backward(batch, BinaryCrossEntropyLoss())["loss"]
        learner.optim_step()
        if on_update is not None:
            on_update(update + 1, loss)


def updates_of(rows: Sequence[LabelledCompletion], config: VerifyRMConfig) -> int:
    """Optimizer steps for `config.epochs` passes over `rows`."""
    return max(1, round(config.epochs * len(rows) / config.batch_size))


def accuracy(
    learner: TorchRewardModelLearner,
    encoder: RewardModelInput,
    items: Sequence[tuple[Problem, str]],
    is_right: Callable[[Problem, str], bool],
) -> float:
    """Share of (problem, completion) on which the reward model's yes (logit above 0) agrees with `is_right`."""
    logits = learner.score([encoder.encode(p.question, p.answer, text) for p, text in items])
    agreed = [(logit > 0) == is_right(p, text) for logit, (p, text) in zip(logits.tolist(), items, strict=True)]
    return sum(agreed) / len(agreed)
