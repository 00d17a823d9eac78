"""`cooper attack` scores through the service what the same reward model scores in this process, and teaches nothing."""

import pytest

from cooper_audit.attack import attack_settings, read_attack_problems
from cooper_audit.attack.attack import draw_answers
from cooper_verify.grader import Asked
from cooper_verify.graders.written import open_grader


def test_the_service_is_attacked_and_learns_nothing(service, tiny_models):
    model = str(tiny_models / "reward_model")
    settings = "problems.limit=6", "reward_model.max_input_tokens=160"
    served, here = open_grader(service.url), open_grader(model, settings)
    answers = draw_answers(read_attack_problems(attack_settings(model, settings=settings), here), 3)
    asked = [Asked(one.problem, one.text) for one in answers]
    try:
        scores = [one.score for one in served.grade(asked)]
        assert scores == pytest.approx([one.score for one in here.grade(asked)], abs=1e-4)
        assert [one.score for one in served.grade(asked[:7])] == pytest.approx(scores[:7], abs=1e-4)
    finally:
        served.close()
        here.close()
    assert service.info()["version"] == 0
    assert service.info()["open"] is None
