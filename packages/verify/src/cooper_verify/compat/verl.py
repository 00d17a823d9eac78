"""In place of verl's `compute_score`.

As a custom reward function:

    custom_reward_function:
      path: pkg://cooper_verify.compat.verl
      name: compute_score

What differs from verl 0.9: every data source is verified by the same rule, so an unknown one raises nothing, and none
scores -1 for a wrong answer (as `math_dapo` does). The score is 1.0 for `correct`, `timeout_score` for `timeout`, and
0.0 for `wrong` and `unparsed`. It works in the threads of a reward loop, where Math-Verify's alarms do not.
"""

from typing import Any

from cooper_verify.compat.process_rule import asked, verdicts, written


def compute_score(
    model_output: Any = None,
    ground_truth: Any = None,
    timeout_score: float = 0.0,
    *,
    solution_str: Any = None,
    data_source: Any = None,
    extra_info: Any = None,
    **kwargs: Any,
) -> float:
    """The score of a completion against its reference.

    Called as `verl.utils.reward_score.math_verify.compute_score(model_output, ground_truth, timeout_score)` or, by the
    reward managers, with the keywords `data_source`, `solution_str`, `ground_truth` and `extra_info`, of which the
    first is not read. `extra_info["question"]` is the question, where there is one.
    """
    completion = model_output if solution_str is None else solution_str
    question = extra_info.get("question") if isinstance(extra_info, dict) else None
    (verdict,) = verdicts([(written(ground_truth), written(completion))], [asked(question)])
    return float(timeout_score) if verdict == "timeout" else float(verdict == "correct")


def default_compute_score(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **kwargs: Any
) -> float:
    """`compute_score` in the order of `verl.utils.reward_score.default_compute_score`."""
    return compute_score(solution_str, ground_truth, extra_info=extra_info)
