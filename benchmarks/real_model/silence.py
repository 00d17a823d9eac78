r"""Runs the experiment of silence.md: a language model, a rule that is silent on most tasks, arms with other rewards.

python -m benchmarks.real_model.silence OUT --model models/smollm2-135m-instruct --arms rule cooper --seeds 0 1 2
python -m benchmarks.real_model.silence OUT          # only the tables of the runs in OUT, finished or not
python -m benchmarks.real_model.silence OUT --picture docs/silence.png
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.real_model.experiment import Experiment, command, first_and_last_steps

from cooper_audit.run.run_record import RunRecord
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import UserVerdict
from cooper_rl.policy.reasoning_gym import gold as scored

PANELS = {
    "test/gold_avg_heard": "Gold on tasks that the rule judges",
    "test/gold_avg_silent": "Gold on tasks on which it is silent",
    "reward/mean": "Training reward",
}


def gold(problem: Problem, completion_text: str) -> bool:
    """The task's scorer, of a completion that ends with its answer. What follows the box cannot be right here."""
    return completion_text.strip(" .\n").endswith("}") and scored(problem, completion_text)


def judge(problem: Problem, completion_text: str) -> UserVerdict:
    """Gold as a rule that is silent on nothing: what a reward can teach at most."""
    return "correct" if gold(problem, completion_text) else "wrong"


EXPERIMENT = Experiment(
    config=Path(__file__).with_name("silence.yaml"),
    arms={
        "rule": ["kind=rule"],
        "gold": ["kind=rule", 'rule={kind: "benchmarks.real_model.silence:judge"}'],
        "static": ["kind=static"],
        "cooper": ["kind=cooper"],
        "cooper_model": ["kind=cooper_model"],
    },
    gold=gold,
    part=lambda problem_id: problem_id.split("-")[0],
    warm_up=1600,
    labelled=400,
    unlabelled=("family_relationships", "syllogism"),
)


def by_task(runs: Sequence[RunRecord]) -> None:
    """Gold over the completions of the first and the last steps, by task."""
    found = {one.directory.name: tasks_at_the_ends(one) for one in runs}
    names = sorted({task for one in found.values() for task in one})
    print(f"\n| run | {' | '.join(names)} |")
    print("|---" * (1 + len(names)) + "|")
    for name, tasks in found.items():
        print(f"| {name} | {' | '.join(tasks.get(task, '–') for task in names)} |")


def tasks_at_the_ends(one: RunRecord) -> dict[str, str]:
    right: dict[str, tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))
    for place, steps in enumerate(first_and_last_steps(one)):
        for row in one.rollouts(steps):
            right[EXPERIMENT.part(row["problem"])][place].append(row["gold"])
    return {task: " → ".join(f"{mean(part):.2f}" if part else "–" for part in both) for task, both in right.items()}


if __name__ == "__main__":
    by_task(command(EXPERIMENT, __doc__, PANELS))
