"""Processes under Ray that all tests of this process share: starting them takes most of what such a test takes."""

import atexit
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cooper_rl.engines.scale.ray import ClusterEngine

together = pytest.mark.xdist_group("cluster")
"""Tests that need the processes run in one of pytest's own."""
_open: list[tuple[ClusterEngine, tempfile.TemporaryDirectory]] = []


@cache
def two_ranks() -> ClusterEngine:
    """An open engine; its processes end after the last test that is marked `together`, or with this one."""
    return _opened(ClusterEngine(policy_ranks=2, cpus_per_rank=0.5))


@cache
def two_ranks_and_vllm() -> ClusterEngine:
    """Two processes of a policy and two vLLM engines; skips the test where vLLM is absent."""
    pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")
    samplers = {"kind": "vllm", "engines": 2, "timeout_s": 30, **SMALL_VLLM}
    settings = {"policy_ranks": 2, "cpus_per_rank": 0.1, "samplers": samplers}
    return _opened(ClusterEngine.model_validate(settings))


def _opened(engine: ClusterEngine) -> ClusterEngine:
    folder = tempfile.TemporaryDirectory()
    engine.open(Path(folder.name))
    _open.append((engine, folder))
    return engine


@atexit.register
def end_all() -> None:
    """End the processes, the last first: the first engine has started Ray itself. The next test that needs one starts
    them anew."""
    two_ranks.cache_clear()
    two_ranks_and_vllm.cache_clear()
    while _open:
        engine, folder = _open.pop()
        engine.close()
        folder.cleanup()


SMALL_VLLM = {"kv_cache_gib": 0.1}


def on_ranks(function: Callable[..., Any], *arguments: Any, engine: ClusterEngine | None = None) -> list[Any]:
    """What a function returns that is called in both, with the `Rank` as its first argument."""
    actors = (engine or two_ranks()).policy_group.actors
    import ray  # beside a conformance suite that runs without it

    return ray.get([actor.__ray_call__.remote(function, *arguments) for actor in actors])
