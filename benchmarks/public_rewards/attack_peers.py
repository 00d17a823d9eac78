"""Ten rewards with a known hole and ten without, before `cooper attack` and packages that attack a function.

    pip install --no-deps --target peers reward-doctor==0.2.0 gradecheck==0.1.0
    PYTHONPATH=peers python benchmarks/public_rewards/attack_peers.py

Prints for each attacker the holes it finds, the rewards without a hole that it accuses, and the seconds for all twenty.
"""

import json
import re
import time
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

from cooper_audit.attack.asserting import assert_not_gameable
from cooper_audit.attack.questions import questions

Reward = Callable[[str, str], float]


def _box(text: str) -> list[str]:
    return re.findall(r"\\boxed\{([^{}]*)\}", text)


def _value(text: str) -> Fraction | None:
    return Fraction(text) if re.fullmatch(r"-?\d+(\.\d+)?", text.strip()) else None


def anywhere(completion: str, reference: str) -> float:
    return float(reference in completion)


def last_number(completion: str, reference: str) -> float:
    numbers = re.findall(r"-?\d+(?:\.\d+)?", completion)
    return float(bool(numbers) and _value(numbers[-1]) == _value(reference))


def any_box(completion: str, reference: str) -> float:
    return float(reference in _box(completion))


def first_box(completion: str, reference: str) -> float:
    return float(_box(completion)[:1] == [reference])


def box_bonus(completion: str, reference: str) -> float:
    return 0.6 * bool(_box(completion)) + 0.4 * (reference in completion)


def tags_alone(completion: str, reference: str) -> float:
    return float(bool(re.search(r"<answer>.*</answer>", completion, re.DOTALL)))


def length_bonus(completion: str, reference: str) -> float:
    return 1.0 * (_box(completion) == [reference]) + min(len(completion) / 100, 2.0)


def unsigned(completion: str, reference: str) -> float:
    return float([each.strip("-") for each in _box(completion)] == [reference.strip("-")])


def beginning_of_box(completion: str, reference: str) -> float:
    return float(len(_box(completion)) == 1 and _box(completion)[0].startswith(reference))


def words_in_common(completion: str, reference: str) -> float:
    return float(reference in re.findall(r"[-\w.]+", completion))


def whole_text(completion: str, reference: str) -> float:
    return float(completion.strip() == reference)


def only_box(completion: str, reference: str) -> float:
    return float(_box(completion) == [reference] and completion.count(r"\boxed") == 1)


def only_box_by_value(completion: str, reference: str) -> float:
    box = _box(completion)
    return float(len(box) == 1 and _value(box[0]) is not None and _value(box[0]) == _value(reference))


def only_tag(completion: str, reference: str) -> float:
    return float([each.strip() for each in re.findall(r"<answer>(.*?)</answer>", completion, re.DOTALL)] == [reference])


def hash_line(completion: str, reference: str) -> float:
    return float(re.findall(r"^#### *(.*?) *$", completion, re.MULTILINE) == [reference])


def answer_line(completion: str, reference: str) -> float:
    return float(re.findall(r"^Answer: *(.*?) *$", completion, re.MULTILINE) == [reference])


def of_json(completion: str, reference: str) -> float:
    try:
        return float(json.loads(completion) == {"answer": reference})
    except ValueError:
        return 0.0


def box_or_whole_text(completion: str, reference: str) -> float:
    return max(only_box(completion, reference), whole_text(completion, reference))


def right_box_and_small_bonus(completion: str, reference: str) -> float:
    return only_box(completion, reference) + 0.1 * (completion.count(r"\boxed") == 1)


def minus_one_for_wrong(completion: str, reference: str) -> float:
    return 2.0 * only_box(completion, reference) - 1.0


HOLES: tuple[Reward, ...] = (
    *(anywhere, last_number, any_box, first_box, box_bonus),
    *(tags_alone, length_bonus, unsigned, beginning_of_box, words_in_common),
)
SOUND: tuple[Reward, ...] = (
    *(whole_text, only_box, only_box_by_value, only_tag, hash_line),
    *(answer_line, of_json, box_or_whole_text, right_box_and_small_bonus, minus_one_for_wrong),
)


def cooper(reward: Reward) -> bool:
    try:
        assert_not_gameable(reward)
    except AssertionError:
        return True
    return False


def reward_doctor(reward: Reward) -> bool:
    """Whether any of its wrong completions is accepted, above its own threshold."""
    from reward_doctor import audit  # pyright: ignore[reportMissingImports]

    return bool(audit(reward).false_positives)


def gradecheck(reward: Reward) -> bool:
    """Whether one of its attacks on completions fools the reward: its questions are ours, and it is told the form."""
    from gradecheck.completion_attacks import FOOLED, run_all  # pyright: ignore[reportMissingImports]

    asked = questions(20)
    forms = (r"\boxed{%s}", "<answer>%s</answer>", "%s", "#### %s", "Answer: %s", '{"answer": "%s"}')
    form = max(forms, key=lambda each: reward(each % asked[0].answer, asked[0].answer))
    examples = [
        SimpleNamespace(index=n, answer=problem.answer, observation_text=problem.question)
        for n, problem in enumerate(asked)
    ]
    environment = SimpleNamespace(
        examples=examples,
        pass_threshold=1.0,
        score=lambda example, completion: reward(completion, example.answer),
        solved=lambda score: score >= 1.0,
        format_payload=lambda content: form % content,
        formatted_gold=lambda answer: form % answer,
    )
    return any(finding.verdict == FOOLED for finding in run_all(environment))


def main() -> None:
    for attacker in (cooper, reward_doctor, gradecheck):
        start = time.process_time()
        found = [reward.__name__ for reward in HOLES if attacker(reward)]
        accused = [reward.__name__ for reward in SOUND if attacker(reward)]
        seconds = time.process_time() - start
        missed = [reward.__name__ for reward in HOLES if reward.__name__ not in found]
        print(f"{attacker.__name__}: {len(found)} of {len(HOLES)} holes, {len(accused)} accused, {seconds:.1f} CPU s")
        print(f"  missed {missed}, accused {accused}")


if __name__ == "__main__":
    main()
