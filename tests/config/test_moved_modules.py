"""A configuration that names a module of an earlier version is told the new name."""

import pytest

from cooper_rl import InputError
from cooper_rl.config.user_functions import MOVED, load_function


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gold", ("problem", "text")), ("corrupt", ("problem", "completion_text", "attempt", "seed"))],
)
def test_a_module_that_has_moved_is_named_with_its_new_place(name: str, parameters: tuple[str, ...]):
    old = "cooper_rl.problems.arithmetic" + ("_corruption" if name == "corrupt" else "")
    with pytest.raises(InputError, match=f"{MOVED[old]}:{name}"):
        load_function(f"{old}:{name}", parameters)
    assert callable(load_function(f"{MOVED[old]}:{name}", parameters))
