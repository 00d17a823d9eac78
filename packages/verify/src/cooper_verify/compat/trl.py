"""In place of TRL's `accuracy_reward`, for `GRPOTrainer(reward_funcs=accuracy_reward)` and trainers that call alike.

What differs from TRL 1.16: the reference may be in the column `solution` or `answer`; completions may be plain texts or
messages; all of them are verified together; and the answer need not be in LaTeX (`cooper_verify.compat.math_verify`).
An answer that cannot be read (`unparsed`) or takes too long is paid 0.0, like a wrong one, as TRL does. None, which
leaves the row out, is for a reference that is not correct against itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cooper_verify.compat.process_rule import asked, reply, verdicts, written


def accuracy_reward(
    completions: Sequence[Any],
    solution: Sequence[Any] | None = None,
    answer: Sequence[Any] | None = None,
    log_extra: Callable[[str, list[Any]], None] | None = None,
    **kwargs: Any,
) -> list[float | None]:
    """1.0 for each completion whose verdict is `correct`, else 0.0; None where the reference cannot be used.

    Args:
        completions: texts or lists of messages.
        solution: a reference for each completion, an answer or a whole solution.
        answer: the same under another name, read if there is no `solution`.
        log_extra: given by the trainer; gets the columns `solution` and `verdict`.
        kwargs: the trainer's other columns, of which `prompts` has the questions.
    """
    given = [written(value) for value in (answer if solution is None else solution) or ()]
    references = [*given, *[""] * (len(completions) - len(given))]
    pairs = [(reference, reply(completion)) for reference, completion in zip(references, completions, strict=False)]
    questions = [asked(prompt) for prompt in kwargs.get("prompts") or ()][: len(pairs)]
    questions += [""] * (len(pairs) - len(questions))
    # References are read alone: a question that is its own answer is none.
    of_completions = verdicts(pairs, questions)
    of_references = verdicts([(reference, reference) for reference, _ in pairs])
    if log_extra is not None:
        log_extra("solution", references[: len(pairs)])
        log_extra("verdict", list(of_completions))
    return [
        float(verdict == "correct") if against_itself == "correct" else None
        for verdict, against_itself in zip(of_completions, of_references, strict=True)
    ]
