"""Engines of several processes or devices: FSDP2, Ray, vLLM."""
