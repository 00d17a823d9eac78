"""Collects completions of many models for many problems in one table, which survives interruptions."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cooper_base.data.problem import Problem
from cooper_base.data.text import normalise
from cooper_base.files.durable import check_table_path, table_bytes
from cooper_base.files.hashes import text_key
from cooper_base.files.journal import Journal, journal_path
from cooper_base.files.owned_file import OwnedFile
from cooper_rl.data.prompts import PromptEncoder, chat_messages
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.verifyrm.config import ChatModelConfig, CollectConfig, DatasetConfig, LocalModelConfig, ModelConfig
from cooper_verify.clients.chat import HANDLING, ChatClient
from cooper_verify.problems.config import PromptConfig
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.verifier import Verifier


@dataclass(frozen=True)
class Answered:
    """One completion, or the reason for its absence. `outcome` is `stop`, `length`, `too_long` or a `FailureKind`."""

    text: str | None
    outcome: str


class LocalModel:
    """A model in this process, with the native sampler."""

    def __init__(self, config: LocalModelConfig) -> None:
        self._config = config
        self._sampler = NativeSampler.from_folder(
            config.model, device=config.device, max_rows=config.max_rows, autocast=config.autocast
        )

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """`n` completions for each problem. A prompt that leaves no room for the completion is `too_long`."""
        sampling = self._config.sampling
        encoder = PromptEncoder(self._sampler.tokenizer, prompt)
        prompts = [encoder.encode(problem) for problem in problems]
        room = self._sampler.room(sampling.max_tokens)
        fits = [i for i, ids in enumerate(prompts) if room is None or len(ids) <= room]
        answers = [[Answered(None, "too_long")] * n for _ in problems]
        drawn = list(self._sampler.sample([prompts[i] for i in fits], n, sampling, seed).answers())
        for place, i in enumerate(fits):
            own = drawn[place * n : (place + 1) * n]
            answers[i] = [Answered(answer.text, "stop" if answer.stopped else "length") for answer in own]
        return answers


class ChatModel:
    """A model behind a chat server. The user message is the dataset's prompt template, filled in."""

    def __init__(self, config: ChatModelConfig) -> None:
        self.client = ChatClient(config)

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """`n` completions for each problem, also replies cut off at `max_tokens`. A failure has no text."""
        chats = [chat_messages(prompt, problem) for problem in problems for _ in range(n)]
        seeds = [(seed + number) % 2**31 for number in range(len(chats))]
        answers = []
        for reply in self.client.submit(chats, seeds).result():
            cut_off = reply.failure == "truncated" and reply.text.strip()
            outcome = "length" if cut_off else reply.failure or "stop"
            answers.append(Answered(reply.text if outcome in ("stop", "length") else None, outcome))
        return [answers[start : start + n] for start in range(0, len(answers), n)]


COLUMNS = ("question", "reference_answer", "completion", "model", "dataset", "id")


@dataclass(frozen=True)
class Collected:
    """Rows of the table, and counts by (model, dataset): `kept`, `duplicate`, and every outcome of sampling."""

    rows: list[dict[str, str]]
    counts: dict[tuple[str, str], Counter[str]]


@dataclass(frozen=True)
class _Batch:
    """A batch of problems for one model: the unit of the journal."""

    dataset: DatasetConfig
    problems: list[Problem]

    def key(self, model: ModelConfig) -> str:
        """The key in the journal, with a digest of the settings and questions that the answers depend on."""
        settings = model.model_dump_json(exclude={*HANDLING, "max_rows", "device"})
        questions = "\n".join(problem.question for problem in self.problems)
        text = f"{settings}{self.dataset.prompt.model_dump_json()}\n{questions}"
        return f"{model.name} / {self.dataset.name} / {self.problems[0].id} / {text_key(text)}"


def collect(config: CollectConfig, progress: Callable[[int, int], None] | None = None) -> Collected:
    """Sample `config.n` completions from every model for every problem and write the table.

    Every finished batch is in the journal beside the output, so the same command continues after an interruption; it
    may name more models or datasets, and repeats requests that failed. Equal completions of one problem are kept once.
    `progress` counts completions. Raises InputError for unusable data, models or servers.
    """
    check_table_path(config.output)
    set_threads(config.threads)
    with Verifier(config.rule, config.rules) as verifier:
        batches = [batch for dataset in config.datasets for batch in _batches(dataset, config.batch_size, verifier)]
    total = config.n * sum(len(batch.problems) for batch in batches) * len(config.models)
    done = 0
    # Those of models and datasets are part of the keys.
    settings = {"n": config.n, "seed": config.seed, "batch_size": config.batch_size}
    sources = [Path(dataset.source) for dataset in config.datasets]
    with (
        OwnedFile(config.output, "cooper verifyrm collect", sources) as out,
        Journal(journal_path(config.output), settings) as journal,
    ):
        for model_config in config.models:
            for batch in _answered(model_config, batches, config, journal):
                done += config.n * len(batch.problems)
                if progress is not None:
                    progress(done, total)
        collected = _assemble(config, batches, journal)
        out.write(table_bytes(config.output, collected.rows, COLUMNS))
    return collected


def _batches(dataset: DatasetConfig, size: int, verifier: Verifier) -> Iterator[_Batch]:
    problems = load_problems(dataset, verifier).problems
    for start in range(0, len(problems), size):
        yield _Batch(dataset, problems[start : start + size])


def _answered(
    config: ModelConfig, batches: Sequence[_Batch], settings: CollectConfig, journal: Journal
) -> Iterator[_Batch]:
    """Every batch as soon as the journal has all its answers. Loads the model only if some are missing."""
    model: LocalModel | ChatModel | None = None
    try:
        for batch in batches:
            answers = journal.get(batch.key(config)) or [[] for _ in batch.problems]
            wanted = [i for i, row in enumerate(answers) if not row or _failed(row)]
            if wanted:
                if model is None:
                    model = LocalModel(config) if isinstance(config, LocalModelConfig) else ChatModel(config)
                    if isinstance(model, ChatModel):
                        model.client.check()
                unit = (str(settings.seed), config.name, batch.dataset.name, batch.problems[0].id)
                seed = zlib.crc32("\n".join(unit).encode())  # differs between units, and is the same in every run
                found = model.answer([batch.problems[i] for i in wanted], batch.dataset.prompt, settings.n, seed)
                for i, row in zip(wanted, found, strict=True):
                    answers[i] = [asdict(answer) for answer in row]
                journal.put(batch.key(config), answers)
            yield batch
    finally:
        if isinstance(model, ChatModel):
            model.client.close()


def _failed(answers: Sequence[dict[str, Any]]) -> bool:
    return any(answer["text"] is None and answer["outcome"] != "too_long" for answer in answers)


def _assemble(config: CollectConfig, batches: Sequence[_Batch], journal: Journal) -> Collected:
    rows: list[dict[str, str]] = []
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    seen: set[tuple[str, str]] = set()
    for model in config.models:
        for batch in batches:
            count = counts[model.name, batch.dataset.name]
            for problem, answers in zip(batch.problems, journal.get(batch.key(model)), strict=True):
                for number, answer in enumerate(answers):
                    count[answer["outcome"]] += 1
                    if answer["text"] is None:
                        continue
                    text = normalise(answer["text"])
                    if (problem.question, text) in seen:
                        count["duplicate"] += 1
                        continue
                    seen.add((problem.question, text))
                    count["kept"] += 1
                    name = f"{batch.dataset.name}/{problem.id}/{model.name}/{number}"
                    values = (problem.question, problem.answer, text, model.name, batch.dataset.name, name)
                    rows.append(dict(zip(COLUMNS, values, strict=True)))
    return Collected(rows, dict(counts))
