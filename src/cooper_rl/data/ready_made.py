"""Ready-made mappings for widely used data sets."""

import re
from typing import Any

from cooper_rl.data.mappings import BadValue, Mapping, text_of


def last_boxed(value: Any) -> str:
    r"""The content of the last `\boxed{}` (or `\fbox{}`, or `\boxed 3`) of a solution, with balanced braces.

    Raises BadValue if there is none, or if its brace is never closed.
    """
    text = text_of(value)
    found = list(re.finditer(r"\\(?:boxed|fbox)(?![A-Za-z])", text))
    if not found:
        raise BadValue("has no \\boxed{} answer")
    rest = text[found[-1].end() :].lstrip()
    if not rest.startswith("{"):
        return re.split(r"[\s$]", rest, maxsplit=1)[0]
    depth = 0
    for index, character in enumerate(rest):
        escaped = index > 0 and rest[index - 1] == "\\"
        depth += 0 if escaped else (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:index]
    raise BadValue("has a \\boxed{ that is never closed")


def _gsm8k_answer(value: Any) -> str:
    _, mark, answer = text_of(value).rpartition("####")
    if not mark:
        raise BadValue("has no '#### answer' line")
    return answer.replace(",", "")


def _gsm8k_solution(value: Any) -> str:
    return re.sub(r"<<[^<>]*>>", "", text_of(value).rpartition("####")[0])


def _without_unit(value: Any) -> str:
    """`9 (apples)` becomes `9`. An answer that is entirely in parentheses stays as it is."""
    text = text_of(value)
    return re.sub(r"\s*\([^()]*\)$", "", text) or text


def _without_dollars(value: Any) -> str:
    answers = value if isinstance(value, list) else [value]
    return ", ".join(text_of(answer).replace("$", "") for answer in answers)


def _first(value: Any) -> str:
    if isinstance(value, list):
        return text_of(value[0]) if value else ""
    return text_of(value)


_LATEX_DEBRIS = r"(?:\s|\\\\|\\noindent|\\end\{problem\})+$"


def _odyssey_question(value: Any) -> str:
    return re.sub(_LATEX_DEBRIS, "", text_of(value))


def _odyssey_answer(value: Any) -> str:
    bare = re.sub(_LATEX_DEBRIS, "", text_of(value)).replace("\\$", "").replace("$", "")
    return bare.strip().removesuffix(".")


READY_MADE: dict[str, Mapping] = {
    # openai/gsm8k
    "gsm8k": Mapping(
        ("question",), "answer", "answer", read_answer=_gsm8k_answer, read_solution=_gsm8k_solution, box_solution=True
    ),
    # arkilpatel/SVAMP
    "svamp": Mapping(("Body", "Question"), "Answer", id="ID"),
    # Fields as in the evaluation harness of Qwen2.5-Math
    "asdiv": Mapping(("body", "question"), "answer", read_answer=_without_unit),
    "mawps": Mapping(("input",), "target"),
    # Hendrycks et al. 2021
    "math": Mapping(("problem",), "solution", "solution", read_answer=last_boxed),
    # HuggingFaceH4/MATH-500
    "math500": Mapping(("problem",), "answer", "solution", id="unique_id", box_solution=True),
    # OpenBMB/OlympiadBench, English and text only
    "olympiadbench": Mapping(
        ("context", "question"),
        "final_answer",
        "solution",
        id="id",
        read_answer=_without_dollars,
        read_solution=_first,
        box_solution=True,
    ),
    # protagolabs/odyssey-math; a row's id is its key
    "math_odyssey": Mapping(
        ("question",),
        "answer",
        "reasoning",
        read_question=_odyssey_question,
        read_answer=_odyssey_answer,
        read_solution=_odyssey_question,
        box_solution=True,
    ),
    # zwhe99/DeepMath-103K; each row has three solutions of about 16 KB
    "deepmath": Mapping(
        ("question",),
        "final_answer",
        "r1_solution_1",
        read_answer=_without_dollars,
        box_solution=True,
        omit=("r1_solution_2", "r1_solution_3"),
    ),
}
