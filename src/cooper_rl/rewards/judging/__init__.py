"""Judges as rewards: language models behind a chat server that write verdicts, preferences and rubrics."""
