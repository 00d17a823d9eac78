"""Scores answers with one public reward, in the environment of its package and without Cooper.

`python rewards.py NAME [COUNT]` reads answers as JSON lines from standard input and writes a score for each;
`python rewards.py --gym-problems COUNT` writes the questions of reasoning-gym's tasks.
"""

import json
import os
import sys

import of_evaluations  # noqa: F401 - registers its rewards
import of_metrics  # noqa: F401 - registers its rewards
import of_trainers  # noqa: F401 - registers its rewards
from of_reasoning_gym import gym_problems, gym_reward
from registry import REWARDS


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the reward prints is no score
    if sys.argv[1] == "--gym-problems":
        replies.write(gym_problems(int(sys.argv[2])))
        return
    if sys.argv[1] == "--names":
        of_package = {name: what for name, (what, _) in REWARDS.items() if name.startswith(f"{sys.argv[2]}:")}
        replies.write(json.dumps(of_package))
        return
    name = sys.argv[1]
    if name.startswith("reasoning-gym:"):
        score = gym_reward(name.partition(":")[2], int(sys.argv[2]))
    else:
        score = REWARDS[name][1]()
    replies.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            value = score(asked["question"], asked["answer"], asked["completion"])
            value = value.get("score") if isinstance(value, dict) else value
            reply = {"score": None if value is None else float(value)}
        except Exception as error:  # noqa: BLE001 - of any library: it is reported
            reply = {"score": None, "raised": f"{type(error).__name__}: {error}"[:200]}
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
