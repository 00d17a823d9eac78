"""What is refused for want of devices, before any process is started."""

import pytest

from cooper_base.errors import InputError
from cooper_rl.engines.scale.ray.config import Resources
from cooper_rl.engines.scale.ray.session import Demand, check_room

NODE = {"CPU": 16.0, "GPU": 4.0}
SETTINGS = {"GPU": ("policy_ranks",), "CPU": ("policy_ranks", "cpus_per_rank")}
OF_ENGINES = {"GPU": ("samplers.engines", "samplers.tensor_parallel"), "CPU": ("cpus_per_rank",)}


def demands(ranks: int, engines: int, tensor_parallel: int) -> list[Demand]:
    return [
        Demand("processes", ranks, Resources(cpus=1, gpus=1), SETTINGS),
        Demand("vLLM engines", engines, Resources(cpus=1, gpus=tensor_parallel), OF_ENGINES),
    ]


def test_what_fits_exactly_is_taken():
    check_room(demands(4, 2, 2), [NODE, NODE])
    check_room(demands(4, 0, 8), [NODE])


def test_more_engines_than_devices_are_told_with_the_settings_to_lower():
    told = r"4 processes with 1 GPUs each and 3 vLLM engines with 2 GPUs each need 10, and the cluster has 8; lower "
    with pytest.raises(InputError, match=told + r"policy_ranks, samplers.engines or samplers.tensor_"):
        check_room(demands(4, 3, 2), [NODE, NODE])


def test_an_engine_is_not_divided_between_machines():
    with pytest.raises(InputError, match=r"one of the vLLM engines needs 8 GPUs of one machine, and the largest has 4"):
        check_room(demands(0, 1, 8), [NODE, NODE])
