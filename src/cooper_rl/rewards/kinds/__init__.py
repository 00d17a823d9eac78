"""What can pay a policy: one file for each kind of reward, with its settings and its maths."""
