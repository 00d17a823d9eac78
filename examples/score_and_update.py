"""Score a list of (question, answer, completions), train the reward model on them, and look at the pairs.

The model is the embedded world's, on a CPU, in a few seconds; in a notebook the ten lines of `main` are all there is.
"""

from importlib.resources import files

from cooper_rl import Answer, AnswerGroup, CooperReward, CooperRewardConfig, Problem

ROWS = [
    ("12+7=?", "19", ["12+7=19 answer: 19", "12+7=18 answer: 18", "answer: 19 or 18"]),
    ("30/4=?", "15/2", ["30/4=7.5 answer: 7.5", "30/4=8 answer: 8"]),
]


def main() -> None:
    """Ten lines."""
    model = files("cooper_lab") / "arithmetic" / "assets" / "reward_model"
    reward_model = {"model": str(model), "learning_rate": 3e-4, "max_input_tokens": 160}
    cooptimization = {"pairs": [{"kind": "on_policy"}], "loss": {"anchor": 0.5}}
    config = CooperRewardConfig.model_validate(
        {"kind": "cooper_model", "reward_model": reward_model, "cooptimization": cooptimization}
    )
    groups = [AnswerGroup(q, Problem(q, q, a), [Answer(text) for text in texts]) for q, a, texts in ROWS]
    with CooperReward.from_config(config) as reward:
        for _ in range(8):
            scored = reward.score(groups)
            pairs = reward.update(scored).pairs
            print("score and update:", [[round(x, 2) for x in row] for row in scored.rewards])
    for pair in pairs:
        print(f"taught: {pair.positive!r} rather than {pair.negative!r}")


if __name__ == "__main__":
    main()
