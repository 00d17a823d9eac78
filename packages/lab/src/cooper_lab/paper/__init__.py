"""The paper's table (arXiv 2508.05613): VerifyRM, reinforcement learning with each reward, avg@8 on five sets."""
