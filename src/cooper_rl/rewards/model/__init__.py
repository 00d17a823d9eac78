"""The reward model's input and its score as a reward."""
