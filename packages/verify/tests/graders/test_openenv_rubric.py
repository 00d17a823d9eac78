"""Rubrics of OpenEnv, by what their environments read of an action and an observation."""

import pytest

from cooper_base.data.problem import Problem
from cooper_verify.grader import Asked
from cooper_verify.graders.openenv_rubric import OpenEnvRubricGrader, is_openenv_rubric
from cooper_verify.graders.written import form_of, open_grader

PROBLEM = Problem("p", "1 + 1?", "2", metadata={"level": "easy", "answer": "another"})
RUBRICS = '''
class Rubric:
    """The methods of OpenEnv's Rubric that are called."""

    def __call__(self, action, observation):
        return self.forward(action, observation)

    def named_rubrics(self):
        return iter(())


class OfMessages(Rubric):
    def forward(self, action, observation):
        return float(action.message == observation.ground_truth)


class KeepsExpected(Rubric):
    expected = None

    def reset(self):
        self.expected = None

    def set_expected(self, expected):
        self.expected = expected

    def forward(self, action, observation):
        final = getattr(observation, "metadata", {}).get("final_answer")
        return float(observation.done and self.expected is not None and final == self.expected)


class Judged(Rubric):
    async def forward(self, action, observation):
        return float(f"{action}|{observation}" == "2|1 + 1?")


class OfOtherFields(Rubric):
    def forward(self, action, observation):
        return float(observation.tests_passed)


class OfAColumn(Rubric):
    def forward(self, action, observation):
        return None if observation.level == "easy" else 1.0


made = OfMessages()
'''


@pytest.fixture
def rubrics(tmp_path):
    (tmp_path / "rubrics.py").write_text(RUBRICS)
    return tmp_path / "rubrics.py"


def scores(written, *texts):
    return [opinion.score for opinion in open_grader(written).grade([Asked(PROBLEM, text) for text in texts])]


@pytest.mark.parametrize("name", ["OfMessages", "KeepsExpected", "Judged", "made"])
def test_it_reads_the_completion_and_the_reference_by_their_usual_names(rubrics, name):
    assert form_of(f"{rubrics}:{name}") == "rubric"
    assert scores(f"{rubrics}:{name}", "2", "3", "") == [1.0, 0.0, 0.0]


def test_columns_of_the_problem_are_fields_and_none_is_no_opinion(rubrics):
    assert scores(f"{rubrics}:OfAColumn", "2") == [None]


def test_what_a_rubric_reads_besides_raises_with_its_name(rubrics):
    with pytest.raises(AttributeError, match="tests_passed"):
        scores(f"{rubrics}:OfOtherFields", "2")


def test_its_settings_change_with_its_file(rubrics):
    before = open_grader(f"{rubrics}:made").settings()
    assert (before["kind"], before["rubric"]) == ("openenv_rubric", "OfMessages")
    rubrics.write_text(RUBRICS + "\n# changed\n")
    assert open_grader(f"{rubrics}:made").settings() != before


def test_a_rubric_of_openenv_itself(tmp_path):
    core = pytest.importorskip("openenv.core.rubrics", reason="needs openenv")

    class Exact(core.Rubric):
        def forward(self, action, observation):
            return float(action.content == observation.answer)

    whole = core.WeightedSum([Exact(), Exact()], weights=[0.5, 0.5])
    assert is_openenv_rubric(whole)
    grader = OpenEnvRubricGrader("whole", whole)
    assert [opinion.score for opinion in grader.grade([Asked(PROBLEM, "2"), Asked(PROBLEM, "3")])] == [1.0, 0.0]
