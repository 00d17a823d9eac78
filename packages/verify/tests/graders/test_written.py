"""The one way to write a grader: each form becomes a grader, and what is no grader says what to write or install."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from chat_server import ChatServer, HttpAnswer, completion
from cooper_base.config import user_functions
from cooper_base.config.user_functions import added
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError, MissingExtraError
from cooper_lab.arithmetic.world import ASSETS
from cooper_verify.grader import NO_ANSWER, UNREADABLE, Asked, Grader, Opinion, in_chunks, opinions_of
from cooper_verify.graders.written import form_of, open_grader

PROBLEM = Problem("p", "What is 3 + 4?", "7", metadata={"data_source": "sums", "level": "easy"})
RIGHT, WRONG = Asked(PROBLEM, "The answer is 7."), Asked(PROBLEM, "The answer is 8.")
FUNCTIONS = """
from cooper_verify.grader import Grader, Opinion

def of_cooper(problem, completion):
    return 2.0 if problem.answer in completion.text else None

def of_all(problems, completions):
    return [float(problem.answer in one.text) for problem, one in zip(problems, completions, strict=True)]

def of_trl(completions, answer, level, **kwargs):
    return [float(right in text) for text, right in zip(completions, answer, strict=True)]

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert data_source == "sums" and extra_info["level"] == "easy"
    return {"score": float(ground_truth in solution_str), "acc": 1}

async def of_verifiers(completion, answer, state):
    assert state["prompt"][0]["role"] == "user"
    return float(answer in completion[-1]["content"])

class Counts:
    def __init__(self):
        self.calls = 0

    def __call__(self, problem, completion):
        self.calls += 1
        return self.calls

class Own(Grader):
    def grade(self, answers, /):
        return [Opinion("correct", 1.0) for _ in answers]

class Rubric:
    funcs = [of_cooper]

    async def score_group(self, states):
        for state in states:
            state["reward"] = float(state["answer"] in state["completion"][0]["content"])

rubric = Rubric()
own = Own()

def one_word(completions, answer, difficulty):
    return [1.0] * len(completions)

def text(problem, completion):
    return "good"
"""


@pytest.fixture
def functions(tmp_path) -> Path:
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    return path


def scores(grader: Grader) -> list[float | None]:
    return [opinion.score for opinion in grader.grade([RIGHT, WRONG])]


@pytest.mark.parametrize(
    ("written", "completion", "opinion"),
    [
        ("rule", "The answer is 7.", Opinion("correct", 1.0)),
        ("rule", "The answer is 8.", Opinion("wrong", 0.0)),
        ("rule", "I do not know", Opinion("unparsed", 0.0)),
        ("rule:exact", "The answer is 7.0.", Opinion("unparsed", 0.0)),
        ("rule: {kind: numeric, relative: 0.1}", "The answer is 7.1.", Opinion("correct", 1.0)),
        ("rule:silent", "The answer is 7.", Opinion("silent", None)),
    ],
)
def test_a_rule_scores_its_verdict(written, completion, opinion):
    grader = open_grader(written)
    assert grader.grade([Asked(PROBLEM, completion)]) == [opinion]
    assert (grader.name, grader.accepts_above) == (written, 0.5)


def test_settings_are_laid_over_the_rule_and_problems_may_name_another():
    grader = open_grader(
        "rule", ["rule.kind=numeric", "rule.relative=0.2", "rules.words.kind=exact", "problems.limit=3"]
    )
    asked = [Asked(PROBLEM, "The answer is 8."), Asked(Problem("w", "?", "seven", rule="words"), "Answer: seven")]
    assert [opinion.verdict for opinion in grader.grade(asked)] == ["correct", "correct"]


@pytest.mark.parametrize(
    ("function", "signature", "found"),
    [
        ("of_cooper", "Cooper's function(problem, completion)", [2.0, None]),
        ("of_all", "Cooper's function(problems, completions)", [1.0, 0.0]),
        ("of_trl", "a reward function of TRL", [1.0, 0.0]),
        ("compute_score", "verl's compute_score", [1.0, 0.0]),
        ("of_verifiers", "a reward function of verifiers", [1.0, 0.0]),
        ("Counts", "Cooper's function(problem, completion)", [1.0, 2.0]),
    ],
)
def test_a_functions_signature_is_recognised_and_named(functions, caplog, function, signature, found):
    with caplog.at_level(logging.INFO, logger="cooper_verify"):
        grader = open_grader(f"{functions}:{function}")
    assert f"{functions}:{function}: called as {signature}" in caplog.text
    opinions = grader.grade([RIGHT, WRONG])
    assert [opinion.score for opinion in opinions] == found
    assert {opinion.verdict for opinion in opinions} == {"silent"}, "nobody knows the scale of its numbers"
    assert (grader.accepts_above, grader.reads_reference) == (None, False)


def test_a_function_of_a_module_in_the_working_folder(functions, monkeypatch):
    monkeypatch.chdir(functions.parent)
    functions.rename(functions.with_name("functions_here.py"))
    assert scores(open_grader("functions_here:of_all")) == [1.0, 0.0]


def test_messages_go_to_a_function_of_trl_only_if_somebody_says_so(functions):
    functions.write_text(
        "def said(completions, **kwargs):\n    return [float(isinstance(x, list)) for x in completions]\n"
    )
    assert scores(open_grader(f"{functions}:said")) == [0.0, 0.0]
    assert scores(open_grader(f"{functions}:said", chats=True)) == [1.0, 1.0]


def test_a_column_that_the_problems_lack_and_a_value_that_is_no_number_are_refused(functions):
    with pytest.raises(InputError, match="takes 'difficulty', but problem p has no such field"):
        open_grader(f"{functions}:one_word").check([PROBLEM])
    with pytest.raises(InputError, match="returned 'good' for problem p; return a finite number"):
        scores(open_grader(f"{functions}:text"))


@pytest.mark.parametrize("name", ["Own", "own"])
def test_a_grader_of_your_own_is_one_class(functions, name):
    grader = open_grader(f"{functions}:{name}")
    assert (grader.name, scores(grader)) == (f"{functions}:{name}", [1.0, 1.0])


def test_a_rubric_scores_the_answers_to_a_problem_together(functions):
    assert form_of(f"{functions}:rubric") == "rubric"
    assert scores(open_grader(f"{functions}:rubric")) == [1.0, 0.0]


def test_a_judge_says_yes_no_or_nothing_and_its_server_may_fail(tmp_path):
    replies = {"The answer is 7.": "yes", "The answer is 8.": "No.", "odd": "perhaps"}

    def reply(request, number):
        task = request["messages"][-1]["content"]
        if "Reply with the word ready" in task:
            return completion("ready")
        text = task.split("<<<\n")[1].split("\n>>>")[0]
        return completion(replies[text]) if text in replies else HttpAnswer("{}", status=400)

    path = tmp_path / "judge.yaml"
    with ChatServer(reply) as server:
        path.write_text(f"judge: {{kind: chat, base_url: '{server.url}', model: m, max_retries: 0}}\n")
        grader = open_grader(str(path), ["judge.max_tokens=32"])
        opinions = grader.grade([RIGHT, WRONG, Asked(PROBLEM, "odd"), Asked(PROBLEM, "fails")])
        assert server.requests[-1]["max_tokens"] == 32
        grader.close()
    assert opinions[:2] == [Opinion("correct", 1.0), Opinion("wrong", 0.0)]
    assert opinions[2:] == [Opinion("unparsed", 0.0, UNREADABLE), Opinion("unparsed", None, NO_ANSWER)]
    assert grader.settings()["max_tokens"] == 32
    assert "max_retries" not in grader.settings(), "how a server is asked decides no verdict"


def test_a_reward_models_folder_gives_probabilities_and_the_rewards_of_a_run_what_it_pays(tmp_path, functions):
    model = open_grader(str(ASSETS / "reward_model"), ["reward_model.max_input_tokens=160"])
    opinions = model.grade([RIGHT, WRONG])
    assert model.gives_probabilities
    assert [one.verdict for one in opinions] == ["correct" if (one.score or 0) > 0.5 else "wrong" for one in opinions]
    paid = f"kind: function\nrewards: [{{kind: function, function: '{functions}:of_all', weight: 3.0}}]\n"
    (tmp_path / "run.yaml").write_text(paid)
    run = open_grader(str(tmp_path / "run.yaml"))
    assert run.grade([RIGHT, WRONG]) == [Opinion("silent", 3.0), Opinion("silent", 0.0)]
    static = f"kind: static\nreward_model: {{model: '{ASSETS / 'reward_model'}', max_input_tokens: 160}}\n"
    (tmp_path / "run.yaml").write_text(static)
    assert open_grader(str(tmp_path / "run.yaml")).grade([RIGHT, WRONG]) == opinions


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("nonsense", "nonsense: no such grader; write rule, rule:KIND, the folder of a reward model"),
        ("rule:nothing", "no rule of kind 'nothing'"),
        ("rule: {kind: numeric, relatve: 1}", "did you mean 'relative'"),
        ("rule: {kind", "not valid YAML"),
        ("./nowhere", "no such model folder"),
        ("missing.py:reward", "missing.py: no such file"),
        ("FUNCTIONS:nothing", "nothing does not exist"),
        ("missing.yaml", "missing.yaml: no such configuration file"),
        ("JUDGE", "no judge of kind 'chatt'; kinds: chat, local"),
        ("RUN", "unknown key 'rewrds'"),
    ],
)
def test_what_is_no_grader_names_the_remedy(tmp_path, functions, written, words):
    (tmp_path / "judge.yaml").write_text("judge: {kind: chatt, base_url: x, model: m}\n")
    (tmp_path / "run.yaml").write_text("kind: rule\nrewrds: []\n")
    for name, path in {"FUNCTIONS": functions, "JUDGE": "judge.yaml", "RUN": "run.yaml"}.items():
        written = written.replace(name, str(tmp_path / path))
    with pytest.raises(InputError) as caught:
        open_grader(written)
    assert words in str(caught.value)


def test_an_environment_needs_verifiers():
    if "verifiers" not in sys.modules and not any(Path(p, "verifiers").is_dir() for p in sys.path):
        with pytest.raises(MissingExtraError, match="pip install 'verifiers"):
            open_grader("verifiers:gsm8k")


@pytest.mark.parametrize("written", ["./model", "run.yaml", "http://127.0.0.1:9", "judge.yaml"])
def test_what_needs_training_code_names_the_package_that_brings_it(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("kind: rule\n")
    Path("judge.yaml").write_text("judge: {kind: local, model: m}\n")
    added.cache_clear()
    monkeypatch.setattr(user_functions, "entry_points", lambda group: [])
    try:
        with pytest.raises(MissingExtraError, match="needs the package cooper-rl, which trains; install it"):
            open_grader(written)
    finally:
        added.cache_clear()


def test_opinions_are_kept_and_only_a_failed_server_is_asked_again(tmp_path):
    class Failing(Grader):
        def __init__(self, fails: bool) -> None:
            self.fails, self.asked = fails, []

        def grade(self, answers, /):
            self.asked += [text for _, text in answers]
            failed = Opinion("unparsed", None, NO_ANSWER)
            quiet = Opinion("silent", None)
            return [failed if text == "b" and self.fails else quiet if text == "c" else Opinion("correct", 1.0)
                    for _, text in answers]  # fmt: skip

    answers = [Asked(PROBLEM, text) for text in "abc"]
    path = tmp_path / "opinions.jsonl"
    [first, second] = opinions_of(Failing(True), in_chunks(answers, 2), path)
    assert [one.failed for one in [*first, *second]] == [False, True, False]
    healed = Failing(False)
    assert [one.score for chunk in opinions_of(healed, in_chunks(answers, 2), path) for one in chunk] == [1, 1, None]
    assert healed.asked == ["b"], "no opinion is one too, and stays"
    with pytest.raises(InputError, match="made with other settings"):
        list(opinions_of(open_grader("rule"), in_chunks(answers, 2), path))


def test_a_rule_and_a_function_are_opened_without_torch(functions):
    code = (
        "import sys\nfrom cooper_verify.graders.written import open_grader\n"
        f"open_grader('rule')\nopen_grader({str(functions) + ':of_trl'!r})\n"
        "print(sorted({'torch', 'transformers', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
