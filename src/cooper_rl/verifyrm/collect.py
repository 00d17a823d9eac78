"""Collects completions of many models for many problems in one table, which survives interruptions."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from cooper_rl.clients.chat import HANDLING, ChatClient
from cooper_rl.data.config import PromptConfig
from cooper_rl.data.loading import load_problems
from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder, chat_messages
from cooper_rl.data.text import normalise
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.persist.durable import Journal, journal_path
from cooper_rl.rules.verifier import Verifier
from cooper_rl.verifyrm.config import ChatModelConfig, CollectConfig, DatasetConfig, LocalModelConfig, ModelConfig
from cooper_rl.verifyrm.table_file import check_table_path, write_table


@dataclass(frozen=True)
class Answered:
    """One completion, or the reason for its absence. `outcome` is `stop`, `length`, `too_long` or a `FailureKind`."""

    text: str | None
    outcome: str


class AnsweringModel(Protocol):
    """Draws completions. A failure is an `Answered` without text and never an exception."""

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """`n` completions for each problem."""
        ...

    def check(self) -> None:
        """Raises InputError if the model cannot be reached."""
        ...

    def close(self) -> None:
        """Release connections and threads."""
        ...


def open_model(config: ModelConfig) -> AnsweringModel:
    """Load the model, or connect to its server. Raises InputError for an unusable folder or a missing key."""
    return LocalModel(config) if isinstance(config, LocalModelConfig) else ChatModel(config)


def batch_seed(seed: int, *names: str) -> int:
    """A seed for one unit of work. It differs between units and is the same in every run."""
    return zlib.crc32("\n".join([str(seed), *names]).encode())


class LocalModel:
    """A model in this process, with the native sampler."""

    def __init__(self, config: LocalModelConfig) -> None:
        self._config = config
        self._sampler = NativeSampler.from_folder(
            config.model, device=config.device, max_rows=config.max_rows, autocast=config.autocast
        )

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """See `AnsweringModel`. A prompt that leaves no room for the completion is `too_long`."""
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

    def check(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class ChatModel:
    """A model behind a chat server. The user message is the dataset's prompt template, filled in."""

    def __init__(self, config: ChatModelConfig) -> None:
        self._client = ChatClient(config)

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """See `AnsweringModel`. A reply cut off at `max_tokens` counts as a completion, as with a local model."""
        chats = [chat_messages(prompt, problem) for problem in problems for _ in range(n)]
        seeds = [(seed + number) % 2**31 for number in range(len(chats))]
        replies = self._client.submit(chats, seeds).result()
        answers = []
        for reply in replies:
            if reply.failure is None:
                answers.append(Answered(reply.text, "stop"))
            elif reply.failure == "truncated" and reply.text.strip():
                answers.append(Answered(reply.text, "length"))
            else:
                answers.append(Answered(None, reply.failure))
        return [answers[start : start + n] for start in range(0, len(answers), n)]

    def check(self) -> None:
        """See `AnsweringModel`."""
        self._client.check()

    def close(self) -> None:
        """See `AnsweringModel`."""
        self._client.close()


COLUMNS = ("question", "reference_answer", "completion", "model", "dataset", "id")

Progress = Callable[[int, int], None]
"""Called with the number of completions asked for so far, and the total."""


@dataclass(frozen=True)
class Collected:
    """Rows of the table, and counts by (model, dataset): `kept`, `duplicate`, and every outcome of sampling."""

    rows: list[dict[str, str]]
    counts: dict[tuple[str, str], Counter[str]]


@dataclass(frozen=True)
class _Batch:
    """Problems that one model is asked together. This is the unit of the journal."""

    dataset: DatasetConfig
    problems: list[Problem]

    def key(self, model: ModelConfig) -> str:
        """The key of the unit, with a digest of the settings and questions that its answers depend on."""
        settings = (
            model.model_dump_json(exclude={*HANDLING, "max_rows", "device"}) + self.dataset.prompt.model_dump_json()
        )
        questions = "\n".join(problem.question for problem in self.problems)
        digest = zlib.crc32(f"{settings}\n{questions}".encode())
        return f"{model.name} / {self.dataset.name} / {self.problems[0].id} / {digest:08x}"


def collect(config: CollectConfig, progress: Progress | None = None) -> Collected:
    """Sample `config.n` completions from every model for every problem and write the table.

    Every finished batch is in the journal beside the output. The same command therefore continues after an
    interruption, and may name more models or datasets; it repeats requests that failed. Equal completions of one
    problem are kept once.

    Raises InputError for unusable data, models or servers, before sampling from that model, and MissingExtraError for
    Parquet without pyarrow.
    """
    check_table_path(config.output)
    set_threads(config.threads)
    with Verifier(config.rule, config.rules) as verifier:
        batches = [batch for dataset in config.datasets for batch in _batches(dataset, config.batch_size, verifier)]
    total = config.n * sum(len(batch.problems) for batch in batches) * len(config.models)
    with Journal(journal_path(config.output), _journal_settings(config)) as journal:
        done = 0
        for model_config in config.models:
            for batch, answers in _answers(model_config, batches, config, journal):
                done += config.n * len(batch.problems)
                if answers is not None:
                    journal.put(batch.key(model_config), answers)
                if progress is not None:
                    progress(done, total)
        collected = _assemble(config, batches, journal)
    write_table(config.output, collected.rows, COLUMNS)
    return collected


def _batches(dataset: DatasetConfig, size: int, verifier: Verifier) -> Iterator[_Batch]:
    problems = load_problems(dataset, verifier.fault).problems
    for start in range(0, len(problems), size):
        yield _Batch(dataset, problems[start : start + size])


def _answers(
    config: ModelConfig, batches: Sequence[_Batch], settings: CollectConfig, journal: Journal
) -> Iterator[tuple[_Batch, list[list[dict[str, Any]]] | None]]:
    """Every batch with its new answers, or with None if the journal has all of them. Loads the model only if needed."""
    model: AnsweringModel | None = None
    try:
        for batch in batches:
            earlier = journal.get(batch.key(config))
            if earlier is not None and not any(_failed(row) for row in earlier):
                yield batch, None
                continue
            if model is None:
                model = open_model(config)
                model.check()
            answers = earlier or [[] for _ in batch.problems]
            wanted = [i for i, row in enumerate(answers) if not row or _failed(row)]
            seed = batch_seed(settings.seed, config.name, batch.dataset.name, batch.problems[0].id)
            found = model.answer([batch.problems[i] for i in wanted], batch.dataset.prompt, settings.n, seed)
            for i, row in zip(wanted, found, strict=True):
                answers[i] = [asdict(answer) for answer in row]
            yield batch, answers
    finally:
        if model is not None:
            model.close()


def _failed(answers: Sequence[dict[str, Any]]) -> bool:
    return any(answer["text"] is None and answer["outcome"] != "too_long" for answer in answers)


def _assemble(config: CollectConfig, batches: Sequence[_Batch], journal: Journal) -> Collected:
    rows: list[dict[str, str]] = []
    counts: dict[tuple[str, str], Counter[str]] = {}
    seen: set[tuple[str, str]] = set()
    for model in config.models:
        for batch in batches:
            count = counts.setdefault((model.name, batch.dataset.name), Counter())
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
    return Collected(rows, counts)


def _journal_settings(config: CollectConfig) -> dict[str, Any]:
    """The settings that all values of the journal depend on. Those of models and datasets are part of the keys."""
    return {"n": config.n, "seed": config.seed, "batch_size": config.batch_size}
