"""The servers and models of the service's tests, for attacks on them."""

from service.conftest import make_server, module_server, reward_settings

__all__ = ["make_server", "module_server", "reward_settings"]
