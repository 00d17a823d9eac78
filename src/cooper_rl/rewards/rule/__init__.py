"""The rule verifier: verdicts on final answers."""
