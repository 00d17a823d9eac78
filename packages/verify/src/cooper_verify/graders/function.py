"""A function of the user's that says what an answer is worth: whose signature it has, and how it is called.

The signatures of five libraries, and of functions of two texts, are recognised by the names of the parameters.
Whatever takes such a function does it here: `cooper attack`, `cooper audit --grader` and the reward `function`.
"""

import math
import reprlib
from array import array
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Literal

from cooper_base.config.user_functions import UserFunction, load_function, parameters_of, source_file
from cooper_base.data.answer import Answer
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_verify.grader import Asked, Grader, Opinion, hashes_of

Signature = Literal["cooper", "batched", "trl", "verl", "rubric", "openrlhf", "texts"]
SIGNATURES: dict[Signature, str] = {
    "cooper": "Cooper's function(problem, completion)",
    "batched": "Cooper's function(problems, completions), for all at once",
    "trl": "a reward function of TRL, with lists by name",
    "verl": "verl's compute_score(data_source, solution_str, ground_truth, extra_info)",
    "rubric": "a reward function of verifiers (prompt, completion, answer, state, info, task by name)",
    "openrlhf": "OpenRLHF's reward_func(queries, prompts, labels), with lists",
    "texts": "a function of an answer and a reference, as texts",
}
"""What each signature is called in messages."""
_VERL = {"data_source", "solution_str", "ground_truth", "extra_info"}
_RUBRIC = {"prompt", "completion", "answer", "state", "info", "task"}
_RUBRIC_ALONE = {"answer", "state", "info", "task"}
"""A function that takes a `completion` and one of these is one of verifiers. With a `prompt` alone it is Cooper's."""
_OF_TRL = ("prompts", "completions", "completion_ids", "trainer_state", "log_metric", "log_extra")
"""What a function of TRL is given beside the columns of its rows."""
_OF_LISTS = ("batched", "trl", "openrlhf")
_GIVEN = (
    *("completion", "response", "solution_str", "prediction", "pred", "output", "predict_str", "predict", "text"),
    *("candidate", "generated", "generation", "model_output", "model_answer", "model_response", "student_answer"),
    *("given_answer", "llm_answer", "answer_text", "response_str", "solution_text"),
)
_EXPECTED = (
    *("reference", "ground_truth", "gold", "target", "label", "expected", "expected_answer", "reference_answer"),
    *("correct_answer", "gold_answer", "gt", "truth", "solution", "answer"),
)
_ASKED = ("question", "prompt", "query", "problem_text", "extra_info", "data_source")
"""Names of the answer's text, of the reference and of what else a function of two texts may be given."""

ProblemAndAnswer = tuple[Problem, Answer]


@dataclass(frozen=True)
class TrainerState:
    """What a function of TRL is told of the run: of the trainer's state, what Cooper has. Outside a run both are 0."""

    global_step: int = 0
    """Steps before this one."""
    max_steps: int = 0
    """Steps of the whole run; 0 if that is unknown."""


def recognised(path: str) -> Signature:
    """The signature of the function at `package.module:function` or `file.py:function`, or of a class whose objects are
    called. Raises InputError if it cannot be found."""
    names = {parameter.name for parameter in parameters_of(load_function(path, None))}
    needed = {*_needed(path)}
    if names & {"completions", "completion_ids"} and not names & {"problem", "problems", "completion"}:
        return "trl"
    if {"solution_str", "ground_truth"} <= names and needed <= _VERL:
        return "verl"
    if {"queries", "labels"} <= names:
        return "openrlhf"
    if "completion" in names and names & _RUBRIC_ALONE and needed <= _RUBRIC:
        return "rubric"
    given, expected = _two_texts(names)
    if given and expected and needed <= {given, expected, *_ASKED}:
        return "texts"
    return "batched" if {"problems", "completions"} <= names else "cooper"


def _two_texts(names: Collection[str]) -> tuple[str | None, str | None]:
    """The parameter for an answer's text, and that for the reference."""
    return next((name for name in _GIVEN if name in names), None), next((n for n in _EXPECTED if n in names), None)


def _needed(path: str) -> list[str]:
    return [parameter.name for parameter in parameters_of(load_function(path, None)) if _must_be_given(parameter)]


def _must_be_given(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_KEYWORD,
        parameter.VAR_POSITIONAL,
    )


class ScoringFunction:
    """The function at `package.module:function`, plain or `async def`, called as its signature says.

    Calls of an `async def` for one answer run concurrently. `chats` says whether a function of TRL or verifiers gets
    messages or texts; None gives TRL's messages where the problems have `messages`, and verifiers' always. Raises
    InputError if the function cannot be found or takes other arguments.
    """

    def __init__(self, path: str, signature: Signature, chats: bool | None = None) -> None:
        self.path = path
        self.signature: Signature = signature
        self._chats = chats
        parameters = {"cooper": ("problem", "completion"), "batched": ("problems", "completions")}.get(signature)
        self._function = UserFunction(path, parameters)
        self._names = _names_taken(path, takes_any=signature != "texts")
        self.logged: dict[str, list[float]] = {}
        """What a function in TRL's style gave to `log_metric` in the last call, by name."""
        self.extra: dict[str, Sequence[Any]] = {}
        """What it gave to `log_extra`: columns with a value for each answer."""

    def values(self, answers: Sequence[ProblemAndAnswer], state: TrainerState | None = None) -> list[float]:
        """What it returns for each answer, NaN where it has no opinion (None or NaN). TRL's gets the run's `state`.

        Raises InputError naming the function and the problem if a value is no number, or infinite. Exceptions of the
        function itself propagate. It has a copy of each problem, which it may change.
        """
        answers = [(deepcopy(problem), answer) for problem, answer in answers]
        if self.signature in _OF_LISTS:
            call = tuple(map(list, zip(*answers, strict=True)))
            if self.signature != "batched":
                call = self._lists(answers, state or TrainerState())
            returned = self._one_for_each(self._function.results([call])[0], len(answers)) if answers else []
        else:
            by_name = {"verl": self._of_verl, "rubric": self._of_rubric, "texts": self._of_texts}
            arguments = by_name.get(self.signature, tuple)
            returned = self._function.results([arguments(answer) for answer in answers])
        if self.signature in ("verl", "texts"):
            returned = [_score_of(value) for value in returned]
        return [self._number(value, problem) for value, (problem, _) in zip(returned, answers, strict=True)]

    def _lists(self, answers: Sequence[ProblemAndAnswer], state: TrainerState) -> dict[str, Any]:
        """The arguments of a function in TRL's style: those it names, or all if it takes any."""
        chats = [problem.messages is not None if self._chats is None else self._chats for problem, _ in answers]
        rows = [_columns_of(problem) for problem, _ in answers]
        names = dict.fromkeys(name for row in rows for name in row)
        lists: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names}
        lists["prompts"] = [_prompt(problem, chat) for (problem, _), chat in zip(answers, chats, strict=True)]
        lists["completions"] = [_completion(answer, chat) for (_, answer), chat in zip(answers, chats, strict=True)]
        if self._names is None or "completion_ids" in self._names:
            known = [answer.token_ids for _, answer in answers if answer.token_ids is not None]
            if len(known) == len(answers):
                lists["completion_ids"] = [[*map(int, ids)] for ids in known]
            elif "completion_ids" in _needed(self.path):
                raise InputError(f"{self.path}: takes 'completion_ids', which only the loop that samples them has")
        if self.signature == "openrlhf":
            queries = [problem.question + answer.transcript for problem, answer in answers]
            lists |= {"queries": queries, "labels": [problem.answer for problem, _ in answers]}
        if self.signature == "trl":
            self.logged, self.extra = {}, {}
            of_run = {"trainer_state": state, "log_metric": self._log_metric, "log_extra": self.extra.__setitem__}
            return self._taken(lists | of_run)
        return self._taken(lists)

    def _log_metric(self, name: str, value: float) -> None:
        self.logged.setdefault(name, []).append(float(value))

    def _of_texts(self, asked: ProblemAndAnswer) -> dict[str, Any]:
        problem, answer = asked
        assert self._names is not None
        given, expected = _two_texts(self._names)
        texts = dict.fromkeys(_ASKED, problem.question) | {"extra_info": problem.metadata, "data_source": ""}
        return self._taken({**texts, str(given): answer.transcript, str(expected): problem.answer})

    def _of_verl(self, asked: ProblemAndAnswer) -> dict[str, Any]:
        problem, answer = asked
        info = problem.metadata.get("extra_info", problem.metadata)
        source = problem.metadata.get("data_source", "")
        solution = {"solution_str": answer.transcript, "ground_truth": problem.answer}
        return self._taken({"data_source": source, "extra_info": info, **solution})

    def _of_rubric(self, asked: ProblemAndAnswer) -> dict[str, Any]:
        problem, answer = asked
        chat = self._chats is not False
        state = rubric_state(problem, _completion(answer, chat), _prompt(problem, chat))
        return self._taken({**{name: state[name] for name in _RUBRIC - {"state"}}, "state": state})

    def _taken(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Those that the function names, or all if it takes any."""
        if self._names is None:
            return arguments
        return {name: value for name, value in arguments.items() if name in self._names}

    def _one_for_each(self, returned: Any, count: int) -> list[Any]:
        wanted = f"a batched function must return a list with one number for each of the {count} completions, in order"
        if self.signature == "openrlhf" and isinstance(returned, Mapping):
            returned = returned.get("rewards", returned)  # beside `scores` and `extra_logs`, as OpenRLHF reads it
        try:
            values = None if isinstance(returned, Mapping | str) else list(returned)
        except TypeError:
            values = None
        if values is None:
            raise InputError(f"{self.path}: returned {reprlib.repr(returned)}; {wanted}")
        if len(values) != count:
            raise InputError(f"{self.path}: returned {len(values)} values for {count} completions; {wanted}")
        return values

    def _number(self, value: Any, problem: Problem) -> float:
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):  # the last: a tensor with several elements
            number = math.inf
        if math.isinf(number):
            of_lists = isinstance(value, list | tuple) and self.signature == "cooper"
            remedy = "; a function that takes lists calls its parameters problems and completions" if of_lists else ""
            raise InputError(
                f"{self.path}: returned {_shown(value)} for problem {problem.id}; return a finite number, or "
                f"None for no opinion{remedy}"
            )
        return number


def check_columns(path: str, signature: Signature, problems: Sequence[Problem]) -> None:
    """Raises InputError if a function in TRL's style asks for a column that a problem does not have."""
    if signature != "trl":
        return
    needed = _needed(path)
    for problem in problems:
        fields = _columns_of(problem)
        if missing := [name for name in needed if name not in _OF_TRL and name not in fields]:
            raise InputError(
                f"{path}: takes {missing[0]!r}, but problem {problem.id} has no such field; it has "
                f"{', '.join(fields)}, and the fields that `problems` reads go by question, answer and solution"
            )


def rubric_state(problem: Problem, completion: Any, prompt: Any) -> dict[str, Any]:
    """The state of a rollout as verifiers (0.1.9 to 0.3) has it."""
    return {
        "prompt": prompt,
        "completion": completion,
        "answer": problem.answer,
        "info": problem.metadata,
        "task": problem.metadata.get("task", "default"),
        "trajectory": [],
    }


class FunctionGrader(Grader):
    """A function as a grader. Nobody knows the scale of its numbers, so its verdict is always `silent`."""

    reads_reference = False
    gives_verdicts = False

    def __init__(self, path: str, chats: bool | None = None) -> None:
        """Raises InputError if the function cannot be found or takes other arguments."""
        self.name = self._path = path
        self._chats = chats
        self._function = ScoringFunction(path, recognised(path), chats)
        self.compares_answers = self._function.signature in _OF_LISTS

    @property
    def signature(self) -> str:
        """Whose signature the function has, in words."""
        return SIGNATURES[self._function.signature]

    @property
    def takes_chats(self) -> bool | None:
        """Whether it is given messages and not texts; None for a signature that knows no messages."""
        usual = {"trl": False, "rubric": True}.get(self._function.signature)
        return None if usual is None else usual if self._chats is None else self._chats

    def settings(self) -> dict[str, Any]:
        """The function, with the contents of its file."""
        file = source_file(self._path)
        called = {"function": self._path, "signature": self._function.signature, "chats": self._chats}
        return {"kind": "function", **called, "files": hashes_of([] if file is None else [file])}

    def check(self, problems: Sequence[Problem]) -> None:
        check_columns(self._path, self._function.signature, problems)

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """Its numbers in single precision, as a run pays them. Raises InputError for values that are no numbers."""
        values = array("f", self._function.values([(problem, Answer(text)) for problem, text in answers]))
        return [Opinion("silent", None if math.isnan(value) else value) for value in values]


def _shown(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no integer of over 4,300 digits
        return f"an integer of about {value.bit_length() * 0.30103:.0f} digits"


def _score_of(returned: Any) -> Any:
    """The score in what verl's functions return: a number, a mapping with `score`, or a list that begins with it."""
    if isinstance(returned, dict):
        return returned.get("score")
    return returned[0] if isinstance(returned, list | tuple) and returned else returned


def _names_taken(path: str, takes_any: bool) -> set[str] | None:
    """The parameters of a function; None if it takes any by name, and gets all."""
    parameters = parameters_of(load_function(path, None))
    if takes_any and any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return {parameter.name for parameter in parameters}


def _columns_of(problem: Problem) -> dict[str, Any]:
    """The fields of a problem's row, as a function in TRL's style names them."""
    fields = {"id": problem.id, "question": problem.question, "answer": problem.answer, "solution": problem.solution}
    return {**problem.metadata, **{name: value for name, value in fields.items() if value is not None}}


def _prompt(problem: Problem, chat: bool) -> Any:
    if chat:
        return problem.messages or [{"role": "user", "content": problem.question}]
    return problem.question


def _completion(answer: Answer, chat: bool) -> Any:
    if chat:
        return answer.messages or [{"role": "assistant", "content": answer.text}]
    return answer.transcript
