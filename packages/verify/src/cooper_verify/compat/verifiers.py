"""A reward function for a rubric of `verifiers`: `vf.Rubric(funcs=[correct_answer])`.

What differs from `vf.MathRubric`: no parser is needed, as thoughts, boxes and statements are read here, and no process
pool. A long completion is read and not refused. The event loop goes on meanwhile.
"""

import asyncio
from typing import Any

from cooper_verify.compat.process_rule import asked, reply, verdicts, written


async def correct_answer(completion: Any, answer: Any, prompt: Any = None, **kwargs: Any) -> float:
    """1.0 if the completion, a text or messages, has the verdict `correct` against `answer`, else 0.0. The `prompt` has
    the question."""
    (verdict,) = await asyncio.to_thread(verdicts, [(written(answer), reply(completion))], [asked(prompt)])
    return float(verdict == "correct")
