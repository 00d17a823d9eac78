"""Decides whether completions are right: rules by kind, killable worker processes, verdicts on files."""
