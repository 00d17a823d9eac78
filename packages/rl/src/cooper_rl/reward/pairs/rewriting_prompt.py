"""The chat that asks a language model for a wrong version of a solution."""

from cooper_base.data.problem import Problem
from cooper_verify.clients.chat import Message

SYSTEM = (
    "You prepare test material for an answer checker. Given a problem and a correct solution, you produce a version "
    "of the solution that a careless reader would accept although its final answer is wrong."
)

TASK = """\
Problem:
{question}

Correct final answer: {answer}

Correct solution:
{text}

Rewrite the solution so that it ends in a different final answer.
- Bring in one believable slip, such as a misread number, a wrong operation, a lost sign or a forgotten case, and \
carry its consequences through to the end.
- The final answer must be of the same kind as the correct one, must not be equal to it in any form, and must be \
stated in the same place and in the same way as in the solution above.
- Keep everything else as it is: language, tone, length, layout, notation, line breaks. If the solution is just an \
answer, give just a wrong answer.
- Do not mention, mark or hint at the slip, and do not add remarks, headings, quotes or code fences.

Reply with the rewritten solution and nothing else."""


EXAMPLE_QUESTION = (
    "A shop sells pens in boxes of 8. Mia buys 6 boxes and gives away 5 pens. How many pens has she left?"
)
EXAMPLE_POSITIVE = "6 boxes hold 6 * 8 = 48 pens. After giving away 5 she has 48 - 5 = 43 pens. The answer is 43."
EXAMPLE_REPLY = "6 boxes hold 6 * 8 = 54 pens. After giving away 5 she has 54 - 5 = 49 pens. The answer is 49."
"""One worked example. Without it, a small assistant copies the solution it was given."""


def rewriting_chat(problem: Problem, positive: str) -> list[Message]:
    """The chat that asks for a wrong version of `positive`."""
    return chat_of(SYSTEM, TASK, problem, positive, EXAMPLE_POSITIVE, EXAMPLE_REPLY)


def chat_of(system: str, task: str, problem: Problem, text: str, example: str, reply: str) -> list[Message]:
    """The chat that asks for `task` on `text`, after one worked example."""
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": task.format(question=EXAMPLE_QUESTION, answer="43", text=example)},
        {"role": "assistant", "content": reply},
        {"role": "user", "content": task.format(question=problem.question, answer=problem.answer, text=text)},
    ]
