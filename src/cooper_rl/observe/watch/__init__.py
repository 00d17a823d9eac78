"""Watch rules and the reward-hacking alarm."""
