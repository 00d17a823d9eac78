"""The fuzz targets. Each takes any bytes and fails unless the outcome is a valid object or a proper refusal.

`test_properties.py` drives the targets with Hypothesis, `coverage_guided.py` with Atheris.
"""

import json
import math
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml
from grammar import read_all, texts_of
from html_page import executable_parts

from chat_server import ChatServer, HttpAnswer
from cooper_audit.report.report import SCRIPTS, write_report
from cooper_base.data.labelled import read_labelled
from cooper_base.data.readers import read_file
from cooper_base.data.text import normalise
from cooper_base.data.transcript import outside_turns, rendered, turns_in, turns_of
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_base.files.journal import Journal
from cooper_lab.benchmarks.bench import read_bench
from cooper_rl.reward.pairs.assistant import unframe
from cooper_rl.run_config import load_config
from cooper_verify.clients.chat import ChatClient, ChatConfig, ChatReply
from cooper_verify.grader import Asked
from cooper_verify.graders.judge import ChatJudge, ChatJudgeConfig
from cooper_verify.graders.judgement import Judgement, parse_reply
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import read_problems
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.verdicts.fast_path import fast_verdict
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from cooper_verify.verdict_file import verify_file

Target = Callable[[bytes], None]
SEPARATOR = "\x1e"
"""Separates the two texts of a target that takes two."""


@cache
def scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="cooper-fuzz-"))


def read_or_refuse(name: str, data: bytes, read: Callable[[Path], Any]) -> Any:
    """The result of `read` on a file that holds `data`; None if it refuses with a message that names the file."""
    path = scratch() / name
    path.write_bytes(data)
    try:
        return read(path)
    except InputError as error:
        assert str(path) in str(error), f"the message names no file: {error}"
        return None


def is_writable(value: Any) -> None:
    """Assert that these are plain JSON values that a file can hold, without half characters."""
    json.dumps(value, ensure_ascii=False, default=str).encode()


def no_surprise_numbers(value: Any) -> None:
    if isinstance(value, float):
        assert math.isfinite(value), "a setting is not finite"
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        no_surprise_numbers(inner)


def config_file(data: bytes) -> None:
    config = read_or_refuse("run.yaml", data, load_config)
    if config is not None:
        no_surprise_numbers(config.model_dump())
        is_writable(config.model_dump(mode="json"))


def config_override(data: bytes) -> None:
    path = scratch() / "minimal.yaml"
    if not path.exists():
        path.write_text(yaml.safe_dump({"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "p.jsonl"}}))
    override = data.decode(errors="surrogateescape")  # command lines are decoded like this
    try:
        config = load_config(path, [override])
    except InputError as error:
        assert "override" in str(error) or "command line" in str(error) or str(path) in str(error)
    else:
        no_surprise_numbers(config.model_dump())
        is_writable(config.model_dump(mode="json"))


def rows(suffix: str) -> Target:
    def target(data: bytes) -> None:
        for row in read_or_refuse(f"rows{suffix}", data, lambda path: list(read_file(path))) or ():
            assert all(isinstance(name, str) for name in row.fields)
            is_writable(row.fields)

    return target


def problems(suffix: str) -> Target:
    def target(data: bytes) -> None:
        def read(path: Path) -> Any:
            return read_problems(ProblemsConfig(source=str(path))).problems

        for problem in read_or_refuse(f"problems{suffix}", data, read) or ():
            assert problem.question.strip()
            assert problem.answer.strip()
            assert problem.answer not in ("nan", "inf", "-inf") or f'"{problem.answer}"'.encode() in data

    return target


def labelled(suffix: str) -> Target:
    def target(data: bytes) -> None:
        for row in read_or_refuse(f"labelled{suffix}", data, read_labelled) or ():
            assert type(row.label) is float
            assert row.label in (0.0, 1.0)
            assert row.question.strip()
            assert row.answer.strip()

    return target


def bench(data: bytes) -> None:
    for row in read_or_refuse("bench.jsonl", data, read_bench) or ():
        assert row.labelled.label in (0.0, 1.0)


def earlier_verdicts(data: bytes) -> None:
    table = scratch() / "answers.jsonl"
    table.write_text('{"answer": "2", "completion": "answer: 2"}\n{"answer": "2", "completion": ""}\n')
    counts = read_or_refuse("verdicts.jsonl", data, lambda out: verify_file(table, out))
    assert counts is None or sum(counts.verdicts.values()) == 2
    assert counts is None or set(counts.verdicts) <= set(get_args(Verdict))


def journal(data: bytes) -> None:
    def read(path: Path) -> None:
        with Journal(path, {"n": 2}) as found:
            found.put("a", 1)
            assert found.get("a") == 1
        with Journal(path, {"n": 2}) as again:
            assert again.get("a") == 1

    read_or_refuse("any.journal.jsonl", data, read)


class _OddServer:
    """A chat server that sends the body it was given, with a client and a judge that ask it."""

    def __init__(self) -> None:
        self.body = ""
        self._server = ChatServer(self._respond).__enter__()
        settings: dict[str, Any] = {"base_url": self._server.url, "model": "m", "max_retries": 0}
        self.client = ChatClient(ChatConfig(**settings))
        self.judge = ChatJudge(ChatJudgeConfig(**settings, read="first_token"))

    def close(self) -> None:
        self.judge.close()
        self.client.close()
        self._server.__exit__()

    def _respond(self, *_: Any) -> HttpAnswer:
        self._server.requests.clear()
        return HttpAnswer(self.body)


_odd_server = cache(_OddServer)


def chat_reply(data: bytes) -> None:
    server = _odd_server()
    server.body = data.decode(errors="replace")
    [reply] = server.client.submit([[{"role": "user", "content": "?"}]]).result(timeout=30)
    assert isinstance(reply, ChatReply)
    assert isinstance(reply.text, str)
    is_writable(reply.text)
    [judgement] = server.judge.judge([Asked.about("1+1?", "2", "2")])
    assert isinstance(judgement, Judgement)
    assert judgement.probability is None or 0 <= judgement.probability <= 1
    is_writable([judgement.detail, judgement.probability])


def reply_text(data: bytes) -> None:
    text = data.decode(errors="replace")
    assert parse_reply(text) in ("yes", "no", "unreadable")
    assert normalise(normalise(text)) == normalise(text)
    for like in ("plain", "<think>a</think>b", "Sure, here is:\nx", "```\nx\n```"):
        assert unframe(text, like) == normalise(unframe(text, like))


def transcript(data: bytes) -> None:
    """No text forges who speaks in a run, and a second reading changes nothing."""
    text = data.decode(errors="replace")
    turns = turns_of([{"role": role, "content": text} for role in ("assistant", "tool", "user")])
    assert turns_of(turns) == turns
    speakers = [line for line in rendered(turns).split("\n") if line in ("<assistant>", "<tool>", "<user>")]
    assert speakers == [f"<{turn['role']}>" for turn in turns]
    assert turns_in([text, text])[0]["role"] == "assistant"
    is_writable(outside_turns(text))


def two_texts(data: bytes) -> tuple[str, str]:
    answer, _, completion = data.decode(errors="surrogatepass" if b"\xed" in data else "replace").partition(SEPARATOR)
    return answer, completion


def fast_path(data: bytes) -> None:
    """Where the fast path decides, the slow path says the same."""
    try:
        answer, completion = two_texts(data)
    except UnicodeDecodeError:
        return
    verdict = fast_verdict(answer, completion)
    assert verdict is None or verdict == maths_verdict(answer, completion)


def readers(data: bytes) -> None:
    """No text in the grammar of a reader raises in it."""
    read_all(*texts_of(data))


@cache
def _verifier() -> RuleVerifier:
    return RuleVerifier(timeout_s=1)


def rule_verifier(data: bytes) -> None:
    try:
        answer, completion = two_texts(data)
    except UnicodeDecodeError:
        return
    assert _verifier().verify(answer, completion) in get_args(Verdict)


def report_page(data: bytes) -> None:
    """No model text adds anything to the page that a browser would run."""
    text = data.decode(errors="replace")
    folder = scratch() / "run"
    for name in ("rollouts", "pairs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    completion = {"text": text, "verdict": "wrong", "reward": 0.5}
    row = {"problem": text, "question": text, "answer": text, "completions": [completion]}
    pair = {"question": text, "positive": text, "negative": text, "negative_origin": text}
    (folder / "rollouts" / "000001.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (folder / "pairs" / "000001.jsonl").write_text(json.dumps(pair) + "\n", encoding="utf-8")
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 1, text: 0.5}) + "\n", encoding="utf-8")
    assert executable_parts(write_report(folder).read_text(encoding="utf-8")) == _parts_of_an_empty_report()


@cache
def _parts_of_an_empty_report() -> list[str]:
    """What the page runs itself."""
    folder = scratch() / "empty-run"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("", encoding="utf-8")
    parts = executable_parts(write_report(folder).read_text(encoding="utf-8"))
    assert parts.count("script") == len(SCRIPTS) + 1, "the scripts and their data"
    return parts


def close() -> None:
    """End the server, client, judge and verifier that targets have started."""
    for part in (_odd_server, _verifier):
        if part.cache_info().currsize:
            part().close()
            part.cache_clear()


TARGETS: dict[str, Target] = {
    "config_file": config_file,
    "config_override": config_override,
    **{f"rows{suffix}": rows(suffix) for suffix in (".jsonl", ".json", ".csv", ".parquet")},
    **{f"problems{suffix}": problems(suffix) for suffix in (".jsonl", ".csv")},
    **{f"labelled{suffix}": labelled(suffix) for suffix in (".jsonl", ".csv")},
    "bench": bench,
    "earlier_verdicts": earlier_verdicts,
    "journal": journal,
    "chat_reply": chat_reply,
    "reply_text": reply_text,
    "transcript": transcript,
    "fast_path": fast_path,
    "readers": readers,
    "rule_verifier": rule_verifier,
    "report_page": report_page,
}
