"""A rule of your own: the last line must end in the answer, letter by letter.

In YAML: rule: {kind: "rule:last_line"}
"""

from cooper_rl import Problem


def last_line(problem: Problem, completion_text: str) -> str:
    """The verdict: correct, wrong, or unparsed where there is no answer to look at."""
    lines = completion_text.strip().splitlines()
    if not lines:
        return "unparsed"
    return "correct" if lines[-1].endswith(f"answer: {problem.answer}") else "wrong"


if __name__ == "__main__":
    from tiny_run import train

    run = train(rule={"kind": "rule:last_line"})
    verdicts = sorted(one["verdict"] for problem in run.rollouts for one in problem["completions"])
    print("own rule:", {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)})
