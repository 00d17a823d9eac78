"""What a block of the docs needs that the tests do not have. There is no other reason not to run or check one."""

NOT_RUN = {
    ".venv-vllm/": "downloads a second environment",
    "RewardClient(": "needs a server",
    "async_grpo": "needs vLLM",
    "curl": "needs a server",
    "docker": "needs a Docker daemon",
    "kubectl": "needs Kubernetes",
    "nemo_rl": "needs NeMo-RL and GPUs",
    "openrlhf": "needs OpenRLHF and GPUs",
    "sbatch": "needs Slurm",
    "skyrl_gym": "needs SkyRL and GPUs",
    "slime": "needs slime and GPUs",
    "swift rlhf": "needs ms-swift and a GPU",
    "trackio show": "opens a server",
    "uv build": "needs the built wheels",
    "verifiers.v1": "needs verifiers",
    "verl.trainer": "needs verl and GPUs",
    "vllm": "needs vLLM",
    "wandb sync": "needs an account of Weights & Biases",
}
"""A text that only such blocks contain, and the reason."""


def reason_not_to_run(text: str) -> str | None:
    """The reason why a block cannot run here; None if it can."""
    return next((reason for part, reason in NOT_RUN.items() if part in text), None)
