"""Sampling: completions, the sampler protocol, the native sampler, and the chat client."""
