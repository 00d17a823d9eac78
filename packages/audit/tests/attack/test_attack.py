"""`cooper attack`: what it accepts is counted by hand, an interrupted attack goes on, a nightly run can fail on it."""

import inspect
import json
import os
import re
import sys
from collections import Counter

import numpy as np
import pytest

from chat_server import ChatServer, completion
from cooper_audit.attack import attack, attack_settings, read_attack_problems
from cooper_audit.attack.asserting import assert_not_gameable
from cooper_audit.attack.attack import draw_answers
from cooper_audit.attack.common import COMPARED
from cooper_audit.attack.questions import questions
from cooper_audit.attack.report import around, example_of, first_screen
from cooper_audit.attack.results import FoundCompletion
from cooper_audit.attack.right_notations import RIGHT_VALUES
from cooper_audit.attack.wrappers import FORMS
from cooper_audit.attack.wrong_answers import ATTACKS, FAMILIES, FURTHER_ATTACKS
from cooper_audit.statistics import wilson_interval
from cooper_base.cli.main import app
from cooper_base.config.user_functions import load_object
from cooper_base.errors import InputError
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import Problem, RuleVerifier
from cooper_rl.adapters.audit.repair import prepared_repair
from cooper_verify.grader import NO_ANSWER, Grader, Opinion
from cooper_verify.graders.written import open_grader
from cooper_verify.rules.kinds.numeric import NumericRule

REFERENCES = ("19", "-3", "16,000", "3/4", "0.5", "1", "112", "7", "30", "8")
PROBLEMS = [Problem(f"p{i}", f"Question {i}?", answer) for i, answer in enumerate(REFERENCES)]
REWARDS = r"""
import re

def in_text(completions, answer, **kwargs):
    return [1.0 if right in text else 0.0 for text, right in zip(completions, answer)]

def bonuses(completions, answer, **kwargs):
    boxes = [re.search(r"\\boxed\{(.*?)\}", text) for text in completions]
    right = [1.0 * bool(box and box[1] == one) + 0.5 * bool(box) for box, one in zip(boxes, answer)]
    return [one + 0.6 * min(len(text) / 200, 1) for one, text in zip(right, completions)]

def format_only(completions, **kwargs):
    return [float("boxed" in text) for text in completions]

def any_box(completions, answer, **kwargs):
    return [0.6 * ("boxed" in text) + 0.4 * (right in text) for text, right in zip(completions, answer)]

def strict_box(completions, answer, **kwargs):
    return [float(text == rf"\boxed{{{right}}}") for text, right in zip(completions, answer)]

def nothing_but_chats(completions, answer, **kwargs):
    return [float(right in chat[-1]["content"]) for chat, right in zip(completions, answer)]

def a_constant(completions, **kwargs):
    return [1.0 for _ in completions]
"""


class Scripted(Grader):
    """Pays what a function of (problem, text) says, as if a server failed for None, and breaks off at the `last`."""

    name = "scripted"

    def __init__(self, pay, accepts_above: float | None = 0.5, last=None):
        self.pay, self.accepts_above, self.last, self.asked = pay, accepts_above, last, []

    def grade(self, asked, /):
        if self.last is not None and len(self.asked) + len(asked) > self.last:
            raise KeyboardInterrupt
        self.asked += [(problem.id, text) for problem, text in asked]
        scores = [self.pay(problem, text) for problem, text in asked]
        return [Opinion("silent", score, NO_ANSWER if score is None else None) for score in scores]


@pytest.fixture
def rewards(tmp_path):
    (tmp_path / "my_rewards.py").write_text(REWARDS)
    return tmp_path / "my_rewards.py"


@pytest.fixture
def problems_file(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps({"question": p.question, "answer": p.answer}) + "\n" for p in PROBLEMS))
    return path


def cooper(monkeypatch, capfd, *arguments):
    """The exit code and all output."""
    monkeypatch.setattr(sys, "argv", ["cooper", "attack", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as finished:
        app()
    streams = capfd.readouterr()
    return finished.value.code or 0, streams.out + streams.err


def shares(result):
    return {one.name: one.accepted.mean for one in result.patterns}


def test_every_pattern_has_a_family_and_the_rule_agrees_with_the_labels():
    """In every form, too: none of the wrong answers is right, and the rule reads every right one."""
    wrong = [*ATTACKS, *FURTHER_ATTACKS, "plain_wrong"]
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(wrong)
    drawn = draw_answers(PROBLEMS[:5], 5, 0, [FORMS["box"], FORMS["#### line"]])
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(one.problem.answer, one.text) for one in drawn])
    wrongly = {a.pattern for a, v in zip(drawn, verdicts, strict=True) if (v == "correct") != a.right}
    assert wrongly <= {"right: four"}, "the rule may read no number words; all else it judges as labelled"
    assert {one.pattern for one in drawn} == {*wrong, *(f"right: {name}" for name in [*FORMS, *RIGHT_VALUES])}


def test_own_questions_do_not_hold_their_answers_and_the_rule_reads_these():
    asked = questions(200)
    assert len({problem.question for problem in asked}) == 200
    assert [problem for problem in asked if problem.answer in problem.question] == []
    with RuleVerifier() as verifier:
        assert {*verifier.verify_many([(problem.answer, problem.answer) for problem in asked])} == {"correct"}
    assert asked != questions(200, seed=1)


@pytest.mark.parametrize("form", [name for name in FORMS if name != "bare answer"])
def test_a_list_in_the_form_that_is_read_is_found_whatever_the_threshold(form):
    """.6 for the form and .4 for the reference anywhere: a wrong answer is paid like a right one only in the form."""
    before, after = FORMS[form].split("{answer}")

    def pay(problem, text):
        return 0.6 * (text.startswith(before) and text.endswith(after)) + 0.4 * (problem.answer in text)

    result = attack(Scripted(pay, accepts_above=None), PROBLEMS)
    assert result.plain == FORMS[form]
    assert shares(result)["answer_list"] == 1.0
    example = example_of(result, "answer_list")
    assert example.text.startswith(before)
    assert example.score == example.right_score == 1.0


def test_a_wrong_answer_that_is_paid_like_a_right_one_in_a_second_form_is_found():
    """Right answers are paid 1 in a box and .3 in a sentence, where lists are paid .3 as well."""

    def pay(problem, text):
        if text == rf"\boxed{{{problem.answer}}}":
            return 1.0
        return 0.3 * (text.startswith("So the answer is") and problem.answer in text)

    result = attack(Scripted(pay, accepts_above=None), PROBLEMS)
    assert [form.name for form in result.forms if form.read] == ["box", "sentence"]
    assert result.accepts_above > 0.3
    assert shares(result)["answer_list"] == 0.5, "the forms take turns over the problems"
    assert result.verdict(0.05) == "gameable"


def test_a_reward_that_refuses_right_answers_is_called_that(rewards):
    result = attack(open_grader(f"{rewards}:strict_box"), PROBLEMS)
    assert result.worst.accepted.mean == 0.0
    assert result.verdict(0.05) == "refuses right answers"
    screen = "\n".join(first_screen(result, 0.05))
    assert f"REFUSES {1 - result.right_accepted.mean:.0%} OF RIGHT ANSWERS" in screen
    assert "reads box (1 of 14 forms)" in screen
    in_its_form = attack(open_grader(f"{rewards}:strict_box"), PROBLEMS, plain=r"\boxed{{answer}}")
    assert in_its_form.right_accepted.mean > result.right_accepted.mean


def test_a_long_example_shows_the_place_of_the_answer():
    text = "We think. " * 50 + "The answer is 4711 or 12." + " And so on." * 50
    assert "4711" in around(text, "4711", 60)
    assert len(around(text, "4711", 60)) <= 60
    assert around(text, "nowhere", 60).endswith("And so on.")
    assert around("short", "s", 60) == "short"


def test_the_first_screen_fits_a_terminal(rewards):
    for name in ("in_text", "bonuses", "strict_box"):
        lines = first_screen(attack(open_grader(f"{rewards}:{name}"), PROBLEMS), 0.05, "a function")
        assert max(map(len, lines)) <= 80
        assert len(lines) <= 10


def test_shares_and_intervals_are_those_of_problems():
    """A reward that accepts an opener, on even problems alone."""
    opener = "Let's solve this problem step by step."
    reward = Scripted(lambda problem, text: float(text == opener and int(problem.id[1:]) % 2 == 0))
    result = attack(reward, PROBLEMS)
    by_name = {one.name: one for one in result.patterns}
    assert shares(result)["opener_steps"] == shares(result)["key_steps"] == 0.5
    assert (by_name["empty"].accepted.low, by_name["empty"].accepted.high) == wilson_interval(0.0, len(PROBLEMS))
    assert by_name["opener_thought"].problems == len(PROBLEMS)
    assert by_name["empty_symbols"].published == (0.002, 0.059)
    scores = [answer.score or 0.0 for answer in result.answers]
    assert result.correlation == pytest.approx(np.corrcoef(scores, [a.right for a in result.answers])[0, 1])
    odd = [a for a in result.answers if not a.right and a.text]
    assert result.above_empty == pytest.approx(np.mean([a.score or 0.0 for a in odd]))


def test_an_interrupted_attack_goes_on_and_asks_nothing_twice(tmp_path):
    def pay(problem, text):
        return float(problem.answer in text)

    with pytest.raises(KeyboardInterrupt):
        attack(first := Scripted(pay, last=1300), PROBLEMS, out=tmp_path)
    result = attack(second := Scripted(pay), PROBLEMS, out=tmp_path)
    assert first.asked
    assert not {*first.asked} & {*second.asked}
    assert shares(result) == shares(attack(Scripted(pay), PROBLEMS))


def test_what_a_server_did_not_answer_counts_nowhere_and_is_asked_again(tmp_path):
    failing = Scripted(lambda problem, text: None if "Solution" in text else float(problem.answer in text))
    result = attack(failing, PROBLEMS, out=tmp_path)
    assert result.failed == result.unheard >= len(PROBLEMS)
    assert "key_solution" not in shares(result)
    healed = Scripted(lambda problem, text: 1.0)
    assert shares(attack(healed, PROBLEMS, out=tmp_path))["key_solution"] == 1.0
    assert all("Solution" in text for _, text in healed.asked)


def test_the_scale_of_a_function_is_read_from_right_and_wrong_answers(rewards):
    result = attack(open_grader(f"{rewards}:bonuses"), PROBLEMS)
    of_form = [answer for answer in result.answers if answer.form == result.plain]
    right = np.mean([answer.score or 0.0 for answer in of_form if answer.right])
    wrong = np.mean([answer.score or 0.0 for answer in of_form if answer.pattern == "plain_wrong"])
    assert result.accepts_above == pytest.approx((right + wrong) / 2)
    assert shares(result)["long_and_formatted"] == 1.0, "half a point for a box and .6 for length beat the truth"


@pytest.mark.parametrize(
    ("reward", "code", "words"),
    [
        ("rule", 0, ["sound: no wrong pattern is accepted in more than 5%"]),
        (
            "REWARDS:in_text",
            3,
            ["GAMEABLE", "answer_list in 100.0%", "1; 1 for the right answer", "a reward function of TRL"],
        ),
        ("REWARDS:any_box", 3, ["GAMEABLE", r"answer \boxed{"]),
        ("REWARDS:nothing_but_chats", 3, ["GAMEABLE", "answer_list"]),
        ("REWARDS:format_only", 3, ["GAMEABLE", "plain_wrong in 100.0%"]),
        ("REWARDS:strict_box", 4, ["OF RIGHT ANSWERS", "reads box (1 of 14 forms)"]),
        ("REWARDS:a_constant", 2, ["pays right answers 1 and empty ones 1", "--accept-above SCORE"]),
        ("REWARDS:nothing", 2, ["nothing does not exist"]),
        ("missing.py:reward", 2, ["missing.py: no such file"]),
        ("nonsense", 2, ["nonsense: no such grader; write rule, rule:KIND"]),
        ("rule:nothing", 2, ["nothing"]),
        ("./nowhere", 2, ["no such model folder"]),
        ("http://127.0.0.1:9", 2, ["start `cooper serve`"]),
    ],
)
def test_the_exit_code_says_whether_a_reward_is_sound(monkeypatch, capfd, rewards, problems_file, reward, code, words):
    reward = reward.replace("REWARDS", str(rewards))
    monkeypatch.setattr("cooper_rl.adapters.graders.service.PATIENCE_S", 0.2)
    found, output = cooper(monkeypatch, capfd, reward, "--problems", problems_file, "--limit", "5")
    assert found == code, output
    assert [word for word in words if word not in " ".join(output.split())] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rule", "--policy", "embedded", "--adapt", "3"], "--out"),
        (["rule", "--policy", "embedded"], "--adapt 20"),
        (["rule", "--patterns", "nowhere.txt"], "nowhere.txt: no such file of patterns"),
        (["rule", "--repair", "x"], "no other reward learns"),
        (["MODEL", "--repair", "FOLDER"], "FOLDER: already in use"),
        (["rule", "--policy", "embedded", "--adapt", "3", "--out", "o", "--problems", "PROBLEMS"], "--policy MODEL"),
        (["rule", "--plain", "the answer"], "{answer}"),
        (["rule", "problms.limit=3"], "did you mean 'problems'?"),
    ],
)
def test_bad_options_are_refused(monkeypatch, capfd, problems_file, arguments, words):
    names = {"PROBLEMS": problems_file, "MODEL": ASSETS / "reward_model", "FOLDER": problems_file.parent}
    arguments = [str(names.get(one, one)) for one in arguments]
    words = words.replace("FOLDER", str(problems_file.parent))
    code, output = cooper(monkeypatch, capfd, *arguments, "--limit", "2")
    assert code == 2, output
    assert words in " ".join(output.split())


def test_json_and_markdown_have_the_exploit(monkeypatch, capfd, rewards, problems_file):
    asked = f"{rewards}:any_box", "--problems", problems_file, "--limit", "5"
    monkeypatch.setattr(sys, "argv", ["cooper", "attack", *map(str, asked), "--json"])
    with pytest.raises(SystemExit) as finished:
        app()
    record = json.loads(capfd.readouterr().out)
    assert finished.value.code == 3
    assert record["verdict"] == "gameable"
    assert record["signature"] == "a reward function of TRL, with lists by name"
    assert record["exploit"]["paid"] >= record["exploit"]["a_right_answer_is_paid"]
    code, output = cooper(monkeypatch, capfd, *asked, "--markdown")
    assert code == 3
    assert "| answer_list | 100.0% |" in output


def test_without_a_reward_common_checks_are_compared(monkeypatch, capfd):
    monkeypatch.setattr("cooper_audit.cli.attack.COMPARED_PROBLEMS", 4)
    code, output = cooper(monkeypatch, capfd)
    verdicts = {name: line.split()[-2] for line in output.splitlines() for name in COMPARED if f"│ {name} " in line}
    assert code == 0
    assert verdicts == {
        **dict.fromkeys(["anywhere in the text", "the last number", "the first box"], "gameable"),
        "tag, and format bonus": "gameable",
        "the whole text": "refuses",
        "Cooper's rule": "sound",
    }


def of_texts(prediction, gold):
    return float(gold in prediction)


def of_verl(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(ground_truth in solution_str)}


def of_openrlhf(queries, prompts, labels):
    return [
        float(label in query.removeprefix(prompt))
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]


def of_trl(prompts, completions, ground_truth, **kwargs):
    return [float(right in chat[0]["content"]) for chat, right in zip(completions, ground_truth, strict=True)]


def of_verifiers(completion, answer):
    return float(answer in completion)


class OfAClass:
    def __call__(self, response, reference_answer, question=None):
        return float(reference_answer in response)


@pytest.mark.parametrize("reward", [of_texts, of_verl, of_openrlhf, of_trl, of_verifiers, OfAClass])
def test_any_signature_is_recognised(reward):
    with pytest.raises(AssertionError, match=r"worst +answer_list in 100"):
        assert_not_gameable(reward, questions(4))


def test_a_sound_reward_passes_and_a_local_function_can_be_given():
    assert_not_gameable(lambda completion, reference: float(completion == rf"\boxed{{{reference}}}"))


def test_the_fixture_of_the_plugin_is_that_function():
    from cooper_audit import pytest_plugin

    fixture = inspect.unwrap(pytest_plugin.assert_not_gameable)
    assert fixture() is assert_not_gameable


def test_the_folder_has_every_answer_and_the_result(monkeypatch, capfd, rewards, problems_file, tmp_path):
    out = tmp_path / "out"
    asked = f"{rewards}:in_text", "--problems", problems_file, "--out", out, "--fail-above", "1"
    code, output = cooper(monkeypatch, capfd, *asked)
    assert code == 0, output
    rows = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    result = json.loads((out / "attack.json").read_text())
    by_pattern = Counter(pattern for pattern, _ in {(r["pattern"], r["problem"]) for r in rows if r["accepted"]})
    counted = {one["name"]: round(one["accepted"]["mean"] * one["problems"]) for one in result["patterns"]}
    assert {name: count for name, count in counted.items() if count} == by_pattern
    assert all(row["accepted"] == (row["answer"] in row["completion"]) for row in rows)
    assert re.search(r"\| answer_list \| 100.0% \| [\d.]+ – 100.0% \|", (out / "attack.md").read_text())
    rewards.write_text(REWARDS + "\n# changed\n")
    code, output = cooper(monkeypatch, capfd, *asked)
    assert code == 2, "another function must not be continued with the scores of this one"
    assert "made with other settings" in output


def test_settings_of_a_repair_do_not_ask_for_the_scores_again():
    model = str(ASSETS / "reward_model")

    def decides(*settings: str) -> dict:
        return open_grader(model, ["reward_model.max_input_tokens=160", *settings]).settings()

    assert decides() == decides("reward_model.learning_rate=6e-4", "reward_model.lora={rank: 4}")
    assert decides() != decides("reward_model.max_input_tokens=128")


def test_a_judge_that_always_says_yes_accepts_everything(monkeypatch, capfd, problems_file, tmp_path):
    server = ChatServer(lambda body, number: completion("Yes"))
    judge = tmp_path / "judge.yaml"
    with server:
        judge.write_text(f"judge: {{kind: chat, base_url: '{server.url}', model: m}}\n")
        code, output = cooper(monkeypatch, capfd, judge, "--problems", problems_file, "--limit", 2)
    assert code == 3, output
    assert "of wrong answers are accepted" in output


def test_a_rubric_of_verifiers_is_attacked(tmp_path, monkeypatch):
    pytest.importorskip("verifiers.rubrics.rubric", reason="verifiers with rubrics is not installed")
    (tmp_path / "rubrics.py").write_text(
        "import verifiers as vf\n\n\ndef contains(completion, answer, **kwargs):\n"
        "    return float(answer in completion[-1]['content'])\n\n\nrubric = vf.Rubric(funcs=[contains])\n"
    )
    name = f"{tmp_path / 'rubrics.py'}:rubric"
    result = attack(open_grader(name), PROBLEMS)
    assert shares(result)["answer_list"] == 1.0
    assert shares(result)["gibberish"] == 0.0


def test_a_reward_of_a_run_is_attacked_by_its_settings(tmp_path, rewards, monkeypatch):
    """A sum of two rewards, as a run of Cooper pays it."""
    two = "[{kind: rule}, {kind: function, function: 'FILE:format_only', weight: 0.2}]"
    (tmp_path / "run.yaml").write_text(f"kind: rule\nrewards: {two.replace('FILE', str(rewards))}\n")
    reward = str(tmp_path / "run.yaml")
    result = attack(open_grader(reward), PROBLEMS[:4])
    assert result.accepts_above == pytest.approx(0.7), "midway between 1.2 and 0.2"
    assert str(rewards) in open_grader(reward).settings()["files"]
    assert result.worst.accepted.mean == 0.0


def test_problems_are_those_that_are_named_and_else_questions_of_its_own(problems_file, tmp_path):
    def of(*arguments, **options):
        problems = attack_settings(*arguments, **options).problems
        assert problems is not None
        return problems

    assert attack_settings("rule").problems is None
    assert of("rule", trains=True).split == "test"
    assert attack_settings("rule:{kind: numeric, relative: 0.5}").rule == NumericRule(relative=0.5)
    assert of("rule", settings=["problems.limit=7"]).limit == 7
    assert of("rule", trains=True).limit is None
    for named in (
        of("rule", str(problems_file)),
        of("rule", settings=[f"problems.source={problems_file}"]),
    ):
        assert (named.source, named.split) == (str(problems_file), None)
    (tmp_path / "run.yaml").write_text(f"kind: rule\npolicy: {{model: m}}\nproblems: {{source: {problems_file}}}\n")
    assert of(str(tmp_path / "run.yaml")).split is None


def test_functions_are_found_in_a_file_with_what_lies_beside_it(tmp_path):
    (tmp_path / "beside_it_7.py").write_text("PAID = 3.0\n")
    (tmp_path / "json.py").write_text("from beside_it_7 import PAID\n\n\ndef pay():\n    return PAID\n")
    assert load_object(f"{tmp_path / 'json.py'}:pay")() == 3.0
    assert json.loads("1") == 1, "a file never hides an installed module"
    (tmp_path / "broken.py").write_text("1 / 0\n")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load_object(f"{tmp_path / 'broken.py'}:pay")
    with pytest.raises(InputError, match="no such file"):
        load_object(f"{tmp_path / 'missing.py'}:pay")


@pytest.mark.slow
def test_a_policy_finds_what_a_format_reward_pays(monkeypatch, capfd, rewards, tmp_path):
    out = tmp_path / "out"
    asked = (
        f"{rewards}:format_only",
        "--accept-above",
        "0.5",
        "--out",
        out,
        "--limit",
        "4",
        "--policy",
        "embedded",
        "--adapt",
    )
    code, output = cooper(monkeypatch, capfd, *asked, "3", "problems_per_step=8")
    assert code == 3, output
    assert "What the policy found" in output
    assert json.loads((out / "attack.json").read_text())["found"]["a wrong answer"] > 0
    assert (out / "adapt" / "report.html").is_file()
    code, output = cooper(monkeypatch, capfd, *asked, "4", "problems_per_step=8")
    assert code == 3, "more steps go on with the run that is there"


EXITS = """
import os, sys
from cooper_verify.grader import Grader

def plain(problem, completion):
    sys.exit(0)

def at_once(problem, completion):
    os._exit(0)

class Own(Grader):
    def grade(self, answers):
        sys.exit(0)

def at_nothing(completion, reference):
    return float(completion.split()[0] == completion == reference)

def of_a_list(completion, reference):
    return float(reference in completion) if completion else 1 / 0

def mute(completion, reference):
    return None
"""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("plain", 2, ["not one right answer was scored: it raised RuntimeError", "called sys.exit(0)"]),
        ("mute", 2, ["not one right answer was scored, because it has no opinion (None, NaN) on any"]),
        ("at_once", 2, ["own.py:at_once: ended its process (exit code 0)"]),
        ("Own", 2, ["called sys.exit(0)"]),
        ("at_nothing", 4, ["RAISES AN EXCEPTION on 3 of", "raises on empty (3), key_space (3)", "range (own.py:16)"]),
        ("of_a_list", 3, ["GAMEABLE", "raises on empty (3)", "ZeroDivisionError: division by zero"]),
        ("of_a_lst", 2, ["of_a_lst does not exist in", "did you mean 'of_a_list'?"]),
        ("nothing", 2, ["nothing does not exist in", "did you mean 'at_nothing'?"]),
        ("qqq", 2, ["it has plain, at_once, Own, at_nothing, of_a_list"]),
        ("", 2, ["own.py: is a file and no function; name one of its own:", "own.py:plain,", "own.py:of_a_list"]),
    ],
)
def test_a_reward_that_ends_or_raises_is_not_sound(monkeypatch, capfd, tmp_path, name, code, words):
    (tmp_path / "own.py").write_text(EXITS)
    written = f"{tmp_path / 'own.py'}:{name}".removesuffix(":")
    found, output = cooper(monkeypatch, capfd, written, "--limit", "3")
    assert found == code, output
    assert [word for word in words if word not in " ".join(output.split())] == []


def test_the_record_names_the_patterns_on_which_a_reward_raises(monkeypatch, capfd, tmp_path):
    (tmp_path / "own.py").write_text(EXITS)
    monkeypatch.setattr(
        sys, "argv", ["cooper", "attack", f"{tmp_path / 'own.py'}:at_nothing", "--limit", "3", "--json"]
    )
    with pytest.raises(SystemExit):
        app()
    record = json.loads(capfd.readouterr().out)
    assert record["verdict"] == "raises exceptions"
    assert record["raised"]["empty"]["answers"] == 3
    assert record["raised"]["empty"]["why"].startswith("raised IndexError")


def test_patterns_from_a_pipe_are_refused_at_once(monkeypatch, capfd, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    code, output = cooper(monkeypatch, capfd, "rule", "--patterns", tmp_path / "pipe", "--limit", "2")
    assert code == 2
    assert "is a pipe or a device and not a file" in output


def test_a_folder_that_no_attack_has_written_stays_as_it_is(monkeypatch, capfd, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "answers.jsonl").write_text("mine")
    code, output = cooper(monkeypatch, capfd, "rule", "--limit", "2", "--out", tmp_path / "run")
    assert code == 2
    assert "no mark says that `cooper attack` wrote them" in output
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["answers.jsonl"]


@pytest.mark.slow
def test_a_repair_holds_on_problems_that_it_did_not_see(monkeypatch, capfd, tmp_path):
    model = ASSETS / "reward_model"
    settings = "reward_model.max_input_tokens=160", "reward_model.learning_rate=6e-4"
    replay = f"cooptimization.replay.labelled={ASSETS / 'labelled.jsonl'}"
    asked = model, "--limit", "20", "--out", tmp_path / "out", "--repair", tmp_path / "repaired", "--repair-steps", "12"
    code, output = cooper(monkeypatch, capfd, *asked, *settings, replay)
    assert code == 3, output
    result = json.loads((tmp_path / "out" / "attack.json").read_text())
    assert result["repaired"]["problems"] == 10
    assert result["wrong_accepted"]["mean"] > 0.8
    assert result["repaired"]["wrong_accepted"]["mean"] < 0.5
    assert {path.name for path in (tmp_path / "repaired").iterdir()} >= {"config.json", "model.safetensors"}
    again, output = cooper(monkeypatch, capfd, *asked, *settings, replay)
    repeated = json.loads((tmp_path / "out" / "attack.json").read_text())
    assert (again, repeated) == (code, result), "a kill behind the written model costs nothing"
    code, output = cooper(monkeypatch, capfd, *asked, *settings)
    assert code == 2
    assert "already in use, by the repair of another model, attack or settings" in output


@pytest.mark.slow
def test_what_a_policy_found_on_the_attacked_problems_goes_into_the_repair(tmp_path):
    model, folder = str(ASSETS / "reward_model"), tmp_path / "repaired"
    settings = "problems.limit=8", "reward_model.max_input_tokens=160"
    config, grader = attack_settings(model, settings=settings), open_grader(model, settings)
    result = attack(grader, read_attack_problems(config, grader), count=6)
    problems = {one.problem.id: one.problem for one in result.answers}.values()
    found = [
        FoundCompletion(
            1, Problem(one.id, one.question, one.answer), f"answer: {one.answer} or 77", 0.9, "several answers"
        )
        for one in problems
    ]
    repaired = prepared_repair(model, folder, settings=settings)(result, folder, steps=1, found=found)
    assert repaired.before.problems == repaired.problems == 3, "half of the problems, each once"
    family = {"found: several answers", *FAMILIES["several answers"]}
    assert family <= repaired.learned or not family & repaired.learned
