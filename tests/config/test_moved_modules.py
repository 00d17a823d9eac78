"""If a configuration names a module of an earlier version, the error gives the new name."""

import pytest

from cooper_rl import InputError
from cooper_rl.config.user_functions import MOVED, load_function, load_object


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gold", ("problem", "text")), ("corrupt", ("problem", "completion_text", "attempt", "seed"))],
)
def test_an_error_about_a_moved_module_gives_its_new_name(name: str, parameters: tuple[str, ...]):
    old = "cooper_rl.problems.arithmetic" + ("_corruption" if name == "corrupt" else "")
    with pytest.raises(InputError, match=f"{MOVED[old]}:{name}"):
        load_function(f"{old}:{name}", parameters)
    assert callable(load_function(f"{MOVED[old]}:{name}", parameters))


def test_an_error_about_a_part_that_imports_a_moved_module_gives_its_new_name(tmp_path, monkeypatch):
    (tmp_path / "my_old_loss.py").write_text("from cooper_rl.policy.losses import PolicyLoss\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"my_old_loss:Own: .*policy\.losses fails; write cooper_rl\.losses\.policy"):
        load_object("my_old_loss:Own")
