"""VerifyRM: builds the reward model before reinforcement learning."""
