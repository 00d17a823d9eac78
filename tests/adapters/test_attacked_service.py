"""`cooper attack` scores through the service what the same reward model scores in this process, and teaches nothing."""

import pytest

from cooper_rl.attack import attack_settings, open_reward, read_attack_problems
from cooper_rl.attack.attack import draw_answers


def test_the_service_is_attacked_and_learns_nothing(service, tiny_models):
    model = str(tiny_models / "reward_model")
    settings = "problems.limit=6", "reward_model.max_input_tokens=160"
    config = attack_settings(model, settings=settings)
    answers = draw_answers(read_attack_problems(config), 3)
    asked = [(one.problem, one.text) for one in answers]
    served, here = open_reward(service.url, attack_settings(service.url)), open_reward(model, config)
    try:
        assert served.scores(asked) == pytest.approx(here.scores(asked), abs=1e-4)
        assert served.scores(asked[:7]) == pytest.approx(served.scores(asked)[:7], abs=1e-4)
    finally:
        served.close()
        here.close()
    assert service.info()["version"] == 0
    assert service.info()["open"] is None
