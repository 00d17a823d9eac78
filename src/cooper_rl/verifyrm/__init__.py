"""VerifyRM: building the reward model before reinforcement learning."""
