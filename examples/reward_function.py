"""A reward of your own, as a function: it pays for short answers.

In YAML: rewards: [{kind: rule}, {kind: function, function: "reward_function:brevity", weight: 0.5}]
"""

from cooper_rl import Answer, Problem


def brevity(problem: Problem, completion: Answer) -> float:
    """1 for an empty completion, falling to 0 at 40 characters and more."""
    return max(0.0, 1 - len(completion.text) / 40)


if __name__ == "__main__":
    from tiny_run import train

    brief = {"kind": "function", "function": "reward_function:brevity", "weight": 0.5}
    run = train(rewards=[{"kind": "rule"}, brief])
    completion = run.rollouts[0]["completions"][0]
    print("own reward function:", {name: completion[name] for name in completion if name not in ("text", "gold")})
