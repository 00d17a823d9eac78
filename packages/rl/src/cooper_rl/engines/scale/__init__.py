"""Experimental: engines of several processes or devices (FSDP2, Ray, vLLM). They are tested on CPUs; on a GPU, vLLM's
transfers and sharded learners have never run (docs/gpu.md). Nothing outside this folder imports it but
`engines/kinds.py`, which lists the engines."""
