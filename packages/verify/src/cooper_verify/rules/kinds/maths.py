"""The default rule: mathematics by value, in processes that can be killed, options by letter, all else as text."""

import asyncio
import queue
import weakref
from collections import Counter, OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from threading import Lock
from typing import Any, Literal

from pydantic import Field

from cooper_base.config.base import Config
from cooper_base.data.problem import Problem
from cooper_base.data.text import boxed
from cooper_base.data.verdict import Verdict
from cooper_verify.faults import note_fault
from cooper_verify.rules.processes.child import Budget, current_budget
from cooper_verify.rules.processes.guard import guarded
from cooper_verify.rules.processes.worker import Checked, WorkerProcess
from cooper_verify.rules.rule import RULES, ProblemAndText, Rule, RuleConfig, unverified
from cooper_verify.rules.verdicts.fast_path import FastReading, fast_reading, reference_readings

WALL_S = 60.0


class RuleVerifier(Rule):
    """Checks final answers against reference answers according to their kind. No answer can stall or crash it.

    Math-Verify compares mathematics by value, in `workers` processes. The verdict is `timeout` if an answer takes more
    than `timeout_s` seconds of CPU time or more than `memory_mib` MiB. A process that is killed from outside, or silent
    for `wall_s` seconds of wall time (by default `WALL_S` and 20 times `timeout_s`), is replaced and asked again, once.
    All else is decided by the process that reads texts (`guarded`), except for references of more than 8,000
    characters. If the answer in one is as long, the verdict is `unparsed`: of a completion less is read. The last
    `cache_size` slow verdicts are cached by final answer. `counts` has the number of verdicts of each name, of the
    outcomes `fast`, `cached`, `unasked` (a `cpu_budget` was spent) and those of `Checked`, and of `lost` processes;
    `cpu_s` the CPU seconds of the questions to Math-Verify.
    """

    def __init__(
        self,
        workers: int = 1,
        timeout_s: float = 5.0,
        cache_size: int = 65536,
        memory_mib: int = 2048,
        expressions: bool = False,
        wall_s: float | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.cpu_s = 0.0
        self._workers = workers
        self._expressions = expressions
        self._cache_size = cache_size
        self._cache: OrderedDict[bytes, Checked] = OrderedDict()
        self._cpu_s_of: dict[bytes, float] = {}
        self._lock = Lock()
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        wall_s = WALL_S + 20 * timeout_s if wall_s is None else wall_s
        self._processes = [WorkerProcess(timeout_s, memory_mib, wall_s) for _ in range(workers)]
        for process in self._processes:
            self._idle.put(process)
            weakref.finalize(self, process.close)

    def verify(self, answer: str, completion: str, question: str = "") -> Verdict:
        """The verdict on a completion. Words of the question change no answer: "12 apples" is 12 where it asks for
        apples. The question again is `wrong`."""
        return self._verdicts([(question, answer, completion)])[0]

    async def verify_async(self, answer: str, completion: str, question: str = "") -> Verdict:
        """`verify` for async code; it does not block the event loop."""
        return await asyncio.to_thread(self.verify, answer, completion, question)

    def verify_many(self, pairs: Sequence[tuple[str, str]], questions: Sequence[str] | None = None) -> list[Verdict]:
        """Verdicts on (answer, completion) pairs, in order; all workers take part. `questions` has one for each."""
        asked = zip(questions or [""] * len(pairs), pairs, strict=True)
        return self._verdicts([(question, *pair) for question, pair in asked])

    def verify_problems(self, asked: Sequence[ProblemAndText], /) -> list[Verdict]:
        """Verdicts against the problems' reference answers, in order. The question again is `wrong`."""
        return self._verdicts([(problem.question, problem.answer, text) for problem, text in asked])

    def faults(self, asked: Sequence[ProblemAndText], /) -> list[str | None]:
        """The answer in a box must be correct, and read without an exception."""
        faults = [*map(unverified, self.verify_many([(problem.answer, boxed(answer)) for problem, answer in asked]))]
        verified = [place for place, fault in enumerate(faults) if fault is None]
        counts = guarded(reference_readings, [(asked[place][1],) for place in verified], 0, at_fault=None)
        for place, count in zip(verified, counts, strict=True):
            if count is None:  # verified as the same text, but no other answer could be compared with it
                faults[place] = "raises an exception when the rule reads it, a fault of Cooper's that you may report"
        return faults

    def unread(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems with a mathematical reference that is no value as a whole."""
        return self._with_readings(problems, 0)

    def ambiguous(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems with a reference such as `(1,3)`, a pair or an interval."""
        return self._with_readings(problems, 2)

    def _with_readings(self, problems: Sequence[Problem], count: int) -> list[Problem]:
        counts = guarded(reference_readings, [(problem.answer,) for problem in problems], 0)
        return [problem for problem, found in zip(problems, counts, strict=True) if found == count]

    def settings(self) -> dict[str, Any]:
        """As `rule_settings` has them."""
        return {"kind": "rule", **rule_settings(MathsRule(expressions=self._expressions))}

    def cpu_s_of(self, answer: str, completion: str) -> float:
        """CPU seconds that the verdict on a completion cost; 0 if no process was asked, or it was long ago."""
        with self._lock:
            return self._cpu_s_of.get(_digest(answer, completion), 0.0)

    def close(self) -> None:
        for process in self._processes:
            process.close()

    def _verdicts(self, asked: Sequence[tuple[str, str, str]]) -> list[Verdict]:
        """Verdicts on completions: each with its question, empty if it is not known, and its reference."""
        calls = list(dict.fromkeys(asked))
        replies = guarded(
            fast_reading,
            [(*call, self._expressions) for call in calls],
            FastReading("timeout"),
            at_fault=FastReading("unparsed"),
        )
        readings = {call: FastReading(*reply) for call, reply in zip(calls, replies, strict=True)}
        decided = [verdict for call in asked if (verdict := readings[call].verdict) is not None]
        with self._lock:
            self.counts.update(decided)
            self.counts.update("killed" if verdict == "timeout" else "fast" for verdict in decided)
        slow = [call for call in calls if readings[call].verdict is None]
        budget = current_budget()

        def slowly(call: tuple[str, str, str]) -> Verdict:
            return self._verify_slowly(*call[1:], readings[call], budget)

        if self._workers == 1 or len(slow) < 2:
            late: dict[tuple[str, str, str], Verdict] = {call: slowly(call) for call in slow}
        else:
            with ThreadPoolExecutor(self._workers) as threads:
                late = dict(zip(slow, threads.map(slowly, slow), strict=True))
        return [late[call] if (verdict := readings[call].verdict) is None else verdict for call in asked]

    def _verify_slowly(self, answer: str, completion: str, reading: FastReading, budget: Budget) -> Verdict:
        key = _digest(answer, reading.key)
        with self._lock:
            checked = self._cache.get(key)
            if checked is not None:
                self._cache.move_to_end(key)
                self.counts.update(["cached", checked.verdict])
                self._note_cpu_s(answer, completion, checked)
                return checked.verdict
            if budget.is_spent:
                self.counts.update(["timeout", "unasked"])
                return "timeout"
        process = self._idle.get()
        try:
            checked = process.ask(answer, reading.tail, self._expressions, reading.question)
        finally:
            self._idle.put(process)
        budget.spend(checked.cpu_s)
        if checked.fault:
            note_fault("Math-Verify's part", checked.fault, (answer, completion))
        with self._lock:
            self.counts.update([checked.verdict, checked.outcome, *["lost"] * checked.stalls])
            self.cpu_s += checked.cpu_s
            if checked.outcome != "stalled":  # all else is true of the question whenever it is asked
                self._cache[key] = checked
                self._note_cpu_s(answer, completion, checked)
                while len(self._cache) > self._cache_size:
                    self._cache.popitem(last=False)
        return checked.verdict

    def _note_cpu_s(self, answer: str, completion: str, checked: Checked) -> None:
        self._cpu_s_of[_digest(answer, completion)] = checked.cpu_s
        while len(self._cpu_s_of) > self._cache_size:
            del self._cpu_s_of[next(iter(self._cpu_s_of))]


def _digest(answer: str, completion: str) -> bytes:
    return blake2b(repr((answer, completion)).encode(), digest_size=16).digest()  # the cache stays small


@RULES.register
class MathsRule(Config):
    """Compares mathematics by value, in processes that can be killed; options by letter; all else (names, words, dates,
    times) as text, because a data set of mathematics has such answers too, and would lose their problems."""

    kind: Literal["maths"] = "maths"
    workers: int = Field(default=1, ge=1)
    """Number of worker processes: so many answers are checked at a time."""
    timeout_s: float = Field(default=5.0, gt=0)
    """CPU seconds that checking an answer may take before its verdict is `timeout`. How busy the machine is does not
    count."""
    expressions: bool = False
    """Whether an expression with the value of a reference that is a number is `correct`: `19 - 10` and `Find 19 - 10.`
    for 9. This is Math-Verify's reading, and it pays whoever copies the question. Without it they are `unparsed`."""

    def build(self) -> RuleVerifier:
        return RuleVerifier(self.workers, self.timeout_s, expressions=self.expressions)


def rule_settings(rule: RuleConfig | None) -> dict[str, Any]:
    """The rule's entry in a journal: the settings that decide its verdicts, or nothing for the default `maths`."""
    if not isinstance(rule, Config):
        return {}
    default = (RULES.dump(MathsRule()) if isinstance(rule, MathsRule) else {}).items()
    decisive = {
        name: value
        for name, value in RULES.dump(rule).items()
        if name == "kind" or (name not in ("workers", "timeout_s") and (name, value) not in default)
    }
    return {} if decisive == {"kind": "maths"} else {"rule": decisive}
