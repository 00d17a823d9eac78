"""Prints a table of what each fault of the assistant's server does to a co-training run of the embedded world.

PYTHONPATH=tests python benchmarks/service/assistant_faults.py

Each fault gets a run: step 1 has a working server, steps 2 and 3 have the fault, and step 4 has a working server again.
"""

import tempfile
from pathlib import Path

from chat_server import ChatServer
from cooper_audit.run.run_record import read_metrics
from cooper_lab.arithmetic.arms import arm_settings
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.base import Metrics
from cooper_rl.reward.pairs import chat_assistant
from faulty_assistant import QUICK, SLOW, FaultyAssistant

GONE = "server gone"
CHAT = {"kind": "chat", "model": "assistant", "timeout_s": 2.0, "max_retries": 1, "tries": 2}


def run_with(fault: str) -> dict[int, Metrics]:
    """Train with one fault; returns the metrics of the run's steps."""
    chat_assistant.STEP_TIMEOUT_S = 5.0
    assistant = FaultyAssistant()
    servers = [ChatServer(assistant)]

    def begin_next(step: int, metrics: Metrics) -> None:
        assistant.fault = fault if step < 3 and fault != GONE else None
        if fault == GONE and step == 1:
            servers[0].stop()
        if fault == GONE and step == 3:
            servers.append(ChatServer(assistant, servers[0].port))

    with tempfile.TemporaryDirectory() as folder:
        chat = {**CHAT, "base_url": servers[0].url}
        changes = {
            "kind": "cooper_light",
            "steps": 4,
            "problems_per_step": 8,
            "evaluation": {"every": 0},
            "cooptimization": {"pairs": [{"kind": "assistant"}], "assistant": chat},
        }
        with CooperTrainer.from_config(build_config(arm_settings("cooper", Path(folder), 0, changes))) as trainer:
            trainer.fit(begin_next)
        rows = read_metrics(trainer.directory)
    servers[-1].stop()
    return {int(row["step"]): row for row in rows}


def counted(metrics: Metrics) -> str:
    """What became of a step's attempts, as the metrics count it."""
    names = ("assistant/accepted", "assistant/failures_", "assistant/rejected_")
    found = {name: int(value) for name, value in metrics.items() if name.startswith(names) and value}
    return ", ".join(f"`{name.removeprefix('assistant/')}` {value}" for name, value in found.items())


def main() -> None:
    """Run every fault and print the table."""
    print("| fault | step 2 | step 3 | waited, steps 2 and 3 | pairs, steps 1 to 4 |\n|---|---|---|---|---|")
    for fault in [GONE, *QUICK, *SLOW]:
        steps = run_with(fault)
        waits = ", ".join(f"{steps[step]['time/wait_for_assistant']:.2f} s" for step in (2, 3))
        pairs = ", ".join(f"{steps[step]['pairs/count']:.0f}" for step in range(1, 5))
        print(f"| {fault} | {counted(steps[2])} | {counted(steps[3])} | {waits} | {pairs} |", flush=True)


if __name__ == "__main__":
    main()
