"""One model that solves and judges: the policy's own yes or no as a second task, and as a reward."""
