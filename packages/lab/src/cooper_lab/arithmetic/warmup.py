"""Makes the demo's policy for reinforcement learning by supervised training on noisy solutions."""

import copy
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from random import Random

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from cooper_lab.arithmetic.corruption import corrupt
from cooper_lab.arithmetic.solutions import draw_solution
from cooper_lab.arithmetic.tokenizer import END, PAD
from cooper_rl import Config, Problem

IGNORED = -100

BATCHES_SORTED_TOGETHER = 16


class WarmupConfig(Config):
    """How the policy is warmed up."""

    updates: int = 3000
    """Optimizer steps."""
    clean_updates: int = 2400
    """Number of first updates that see only right solutions. With noise from the start the policy would not learn to
    calculate."""
    batch_size: int = 32
    """Solutions per update."""
    learning_rate: float = 2e-3
    """Peak learning rate; cosine decay to a twentieth after a short linear warm-up."""
    slip_rate: float = 0.35
    """Share of solutions with a wrong final answer, a habit that reinforcement learning has to undo."""
    mess_rate: float = 0.08
    """Share of solutions that hedge, repeat or leave out the answer."""
    hidden_size: int = 128
    """Width of the model."""
    layers: int = 3
    """Number of layers."""


def small_llama(hidden_size: int, layers: int, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """The architecture of both models, with 0.2 M parameters per layer at width 128.

    It is a Llama because for most other kinds of models `AutoTokenizer` replaces the saved tokenizer by one of its own.
    """
    vocabulary = tokenizer.get_vocab()
    return LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden_size,
        intermediate_size=3 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        attention_bias=True,
        bos_token_id=None,
        eos_token_id=vocabulary[END],
        pad_token_id=vocabulary[PAD],
    )


def prompt_text(problem: Problem) -> str:
    """The prompt of the policy."""
    return f"{problem.question}\n"


def noisy_solution(problem: Problem, config: WarmupConfig, random: Random) -> str:
    """A solution as an unpractised student writes it: right, with a slip, or messy."""
    solution = draw_solution(problem, random)
    kind = random.random()
    if kind < config.slip_rate:
        return corrupt(problem, solution, seed=random.getrandbits(32))
    if kind < config.slip_rate + config.mess_rate:
        return _messy(problem, solution, random)
    return solution


def _messy(problem: Problem, solution: str, random: Random) -> str:
    work = problem.metadata["work"]
    other = corrupt(problem, solution, seed=random.getrandbits(32))
    return random.choice(
        (
            work,
            f"{work} answer: ",
            f"{work} answer: {problem.metadata['unit'] or '?'}",
            f"{solution} or {other[-6:].strip()}",
            f"{solution}{other[other.rfind(' answer') :] if ' answer' in other else ''}",
            f"{problem.question}",
        )
    )


TokensAndLabels = tuple[list[int], list[int]]
"""Token ids of a prompt and its completion, and the labels, which leave the prompt out."""


def tokens_and_labels(problem: Problem, completion: str, tokenizer: PreTrainedTokenizerFast) -> TokensAndLabels:
    """What the policy learns from one completion."""
    prompt = tokenizer(prompt_text(problem))["input_ids"]
    answer = [*tokenizer(completion)["input_ids"], tokenizer.eos_token_id]
    return prompt + answer, [IGNORED] * len(prompt) + answer


def padded(
    rows: Sequence[TokensAndLabels], tokenizer: PreTrainedTokenizerFast
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Token ids and labels of a batch, padded on the right."""
    width, pad = max(len(ids) for ids, _ in rows), tokenizer.pad_token_id
    return (
        torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in rows]),
        torch.tensor([labels + [IGNORED] * (width - len(labels)) for _, labels in rows]),
    )


def solution_batches(
    problems: Sequence[Problem], tokenizer: PreTrainedTokenizerFast, config: WarmupConfig, random: Random, noisy: bool
) -> Iterator[list[TokensAndLabels]]:
    """An endless stream of batches of solutions of similar length, so that there is little padding."""
    size = config.batch_size
    while True:
        rows = []
        for problem in random.choices(problems, k=size * BATCHES_SORTED_TOGETHER):
            solution = noisy_solution(problem, config, random) if noisy else draw_solution(problem, random)
            rows.append(tokens_and_labels(problem, solution, tokenizer))
        rows.sort(key=lambda row: len(row[0]))
        batches = [rows[start : start + size] for start in range(0, len(rows), size)]
        random.shuffle(batches)
        while batches:
            yield batches.pop()


def learn(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    rows: Sequence[TokensAndLabels],
    tokenizer: PreTrainedTokenizerFast,
) -> float:
    """One update on a batch, with the norm of the gradient at most 1. Returns the loss."""
    tokens_BT, labels_BT = padded(rows, tokenizer)
    # Padding is on the right and ignored in the labels, so causal attention needs no mask.
    loss = model(input_ids=tokens_BT, labels=labels_BT).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def warm_up(
    problems: list[Problem],
    tokenizer: PreTrainedTokenizerFast,
    config: WarmupConfig,
    seed: int,
    snapshots: Collection[int] = (),
    on_update: Callable[[int, float], None] | None = None,
) -> tuple[LlamaForCausalLM, dict[int, LlamaForCausalLM]]:
    """Train a policy from scratch. Returns it and its copies after each number of updates in `snapshots`.

    `on_update(updates, loss)` is called after every update. Reseeds torch's global generator.
    """
    torch.manual_seed(seed)
    model = LlamaForCausalLM(small_llama(config.hidden_size, config.layers, tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.01, betas=(0.9, 0.95))
    random = Random(f"warm-up {seed}")
    clean, noisy = (solution_batches(problems, tokenizer, config, random, noisy) for noisy in (False, True))
    data = chain(islice(clean, config.clean_updates), noisy)
    kept: dict[int, LlamaForCausalLM] = {}
    for update, rows in enumerate(islice(data, config.updates), 1):
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * learning_rate_share(update - 1, config.updates)
        loss = learn(model, optimizer, rows, tokenizer)
        if update in snapshots:
            kept[update] = copy.deepcopy(model).eval()
        if on_update is not None:
            on_update(update, loss)
    return model.eval(), kept


def learning_rate_share(step: int, updates: int) -> float:
    """Share of the peak learning rate: linear warm-up over 5 % of the updates, then a cosine down to a twentieth."""
    start = max(1, updates // 20)
    if step < start:
        return (step + 1) / start
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - start) / max(1, updates - start)))
