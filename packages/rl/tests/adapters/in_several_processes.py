"""One process of a run that `torchrun` starts: python in_several_processes.py MODELS OUTPUT [fail]."""

import json
import sys
from pathlib import Path

import torch
from trl_runs import reward_config, trainer_of

from cooper_rl import InputError
from cooper_rl.adapters.trl import GRPOReward

MODELS, OUTPUT, FAILS = Path(sys.argv[1]), Path(sys.argv[2]), len(sys.argv) > 3


def run() -> None:
    """Three completions a process and batch, in groups of four: the second group of three lies in both processes."""
    torch.set_num_threads(1)
    reward = GRPOReward.from_config(reward_config(MODELS))
    trainer = trainer_of(MODELS, OUTPUT, reward, max_steps=2, per_device_train_batch_size=3, save_strategy="steps")
    rank, calls = trainer.args.process_index, []

    def watched(**given):
        if FAILS and rank == 0 and trainer.state.global_step == 1:
            reward.scorer = None
        rewards = reward(**given)
        calls.append({"ids": given["id"], "completions": given["completions"], "rewards": rewards})
        return rewards

    trainer.reward_funcs[0] = watched
    try:
        trainer.train()
    except InputError as error:
        (OUTPUT / f"error-{rank}.txt").write_text(str(error))
        sys.exit(1)
    has_model = reward.scorer is not None
    (OUTPUT / f"rank-{rank}.json").write_text(json.dumps({"calls": calls, "has_model": has_model}))


if __name__ == "__main__":
    run()
