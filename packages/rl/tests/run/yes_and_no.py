"""Labelled rows that a tiny reward model learns to tell apart: right ones end in yes, wrong ones in no."""

from typing import Any


def yes_and_no() -> list[dict[str, Any]]:
    return [
        {"question": f"what is {i}?", "reference_answer": "1", "completion": f"step {i % 7}. {word}", "label": label}
        for i in range(120)
        for word, label in ([("yes", 1)] if i % 3 == 0 else [("no", 0)])
    ]
