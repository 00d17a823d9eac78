"""Five common ways of checking an answer, as they stand in training scripts: `cooper attack` compares them."""

import re


def exact_text(completion: str, reference: str) -> float:
    """1 if the whole completion is the reference."""
    return float(completion.strip() == reference.strip())


def text_contains(completion: str, reference: str) -> float:
    """1 if the reference stands anywhere in the completion."""
    return float(reference.strip() in completion)


def last_number(completion: str, reference: str) -> float:
    """1 if the last number of the completion is the reference."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", completion.replace(",", ""))
    try:
        return float(bool(numbers) and float(numbers[-1]) == float(reference.replace(",", "")))
    except ValueError:
        return 0.0


def first_box(completion: str, reference: str) -> float:
    """1 if the first box holds the reference, letter for letter."""
    box = re.search(r"\\boxed\{(.*?)\}", completion)
    return float(box is not None and box[1].strip() == reference.strip())


def tag_and_format(completion: str, reference: str) -> float:
    """1 for the reference inside the answer tag, and .5 for a thought and an answer in tags."""
    tag = re.search(r"<answer>(.*?)</answer>", completion, re.DOTALL)
    thought = re.match(r"<think>.*?</think>\s*<answer>.*?</answer>$", completion, re.DOTALL)
    return 1.0 * (tag is not None and reference.strip() in tag[1]) + 0.5 * (thought is not None)


COMPARED = {
    "the whole text": f"{__name__}:exact_text",
    "anywhere in the text": f"{__name__}:text_contains",
    "the last number": f"{__name__}:last_number",
    "the first box": f"{__name__}:first_box",
    "tag, and format bonus": f"{__name__}:tag_and_format",
    "Cooper's rule": "rule",
}
"""What `cooper attack` compares without a reward, by name."""
