"""The engine in this process: torch learners and the native sampler."""
