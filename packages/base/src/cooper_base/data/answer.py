"""An answer as text with what it brings along, and the answers to one problem."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from cooper_base.data.problem import Problem
from cooper_base.data.text import whole_characters
from cooper_base.data.transcript import ChatTurn, as_text, final_reply, rendered, turns_of
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError


@dataclass(frozen=True)
class Answer:
    """One completion as text. `stopped` is False if it was cut at the length limit."""

    text: str
    """What a rule reads: the completion or, of a run of several turns, the final reply."""
    stopped: bool = True
    id: str | None = None
    """An optional name chosen by the caller, unique in its group."""
    tokens: int | None = None
    """Its length in tokens of the model that wrote it, if known."""
    messages: list[ChatTurn] | None = None
    """The turns of the run after the prompt, as `of` makes them; None if the text is everything."""
    verdict: UserVerdict | None = None
    """A verdict from outside (unit tests, a game's end, a grader). It takes the place of the rule's."""
    reward: float | None = None
    """What the environment's `get_reward()` returned, if anything; the reward `environment` pays it."""
    token_ids: Iterable[int] | None = field(default=None, repr=False, compare=False)
    """Its tokens where they are known: in the loop that sampled it. They are not written down."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", whole_characters(self.text))

    @classmethod
    def of(cls, completion: str | Iterable[Any] | None, stopped: bool = True, **fields: Any) -> Self:
        """From a text or from messages after the prompt, in the form of OpenAI's chats or of any trainer we know.

        A reply without tool calls is a text, and None, as servers give it for an empty reply, is an empty one. Raises
        InputError for messages that cannot be read.
        """
        if completion is None or isinstance(completion, str):
            return cls(completion or "", stopped, **fields)
        if not isinstance(completion, Iterable):
            found = type(completion).__name__
            raise InputError(f"completion: expected a text or a list of messages, found {found}")
        turns = turns_of(completion)
        text = final_reply(turns)
        return cls(text, stopped, messages=None if rendered(turns) == text else turns, **fields)

    @cached_property
    def transcript(self) -> str:
        """What a reward model reads: the text or, if there are messages, the whole run."""
        return as_text(self.text) if self.messages is None else rendered(self.messages)

    def record(self) -> dict[str, Any]:
        """As JSON values, without what is None."""
        written = asdict(replace(self, token_ids=None))
        return {name: value for name, value in written.items() if value is not None}


@dataclass(frozen=True)
class AnswerGroup:
    """The answers to one problem in one step. Groups may differ in size. `id` is unique in the step."""

    id: str
    problem: Problem
    answers: Sequence[Answer]
