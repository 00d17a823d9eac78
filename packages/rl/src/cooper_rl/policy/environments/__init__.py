"""Environments: tools that the policy may call between its turns, and how rollouts of several turns are sampled."""
