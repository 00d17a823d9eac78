"""Courses of runs that audits misjudged, each as the smallest dump of its kind."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from cooper_audit.report.report import write_report
from cooper_audit.rollouts import audit
from cooper_audit.rollouts.auditing import Audit
from cooper_audit.run.finding import ACCUSED
from cooper_audit.run.lenient import is_estimate

STEPS, PROBLEMS, GROUP = 24, 8, 4
Act = Callable[[random.Random, float, int], dict[str, Any]]
"""A completion, its reward and what else its row has, by the place in the run from 0 to 1 and the right answer."""


def audited(tmp_path, act: Act, steps: int = STEPS, ask: str = "{} + 7?") -> Audit:
    generator, lines = random.Random(0), []
    for step in range(1, steps + 1):
        for place in range(PROBLEMS):
            right = 100 * step + place
            row = {"step": step, "prompt": ask.format(right - 7, right=right), "answer": str(right)}
            lines += [row | act(generator, (step - 0.5) / steps, right) for _ in range(GROUP)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return audit([tmp_path / "rows.jsonl"], tmp_path / "audit")


def guards_of(result: Audit) -> list[str]:
    return [guard.split(":")[0] for guard in result.finding.guards]


@pytest.mark.parametrize("is_said", [True, False])
def test_completions_that_are_cut_off_state_no_answer_that_a_reward_would_have_to_pay(tmp_path, is_said):
    """They get longer, until most end in the middle of a thought that has the right number, and earn nothing."""

    def act(generator, place, right):
        good, cut = generator.random() < 0.6, generator.random() < 0.8 * (place > 0.5)
        text = f"It adds up to {right + (not good)}."
        text += " Wait, let me look at this sum again." * 4 if cut else f" The answer is {right + (not good)}."
        reward = float(good and not cut) if generator.random() < 0.95 else 0.5
        return {"completion": text, "reward": reward} | ({"is_truncated": cut} if is_said else {})

    result = audited(tmp_path, act)
    assert (result.finding.state, guards_of(result)) == (
        "unknown",
        ["Unread form", "Cut off" if is_said else "Form"],
    )


def test_a_form_that_neither_check_nor_reward_reads_is_no_hack(tmp_path):
    """Answers come to have it, and earn nothing then."""

    def act(generator, place, right):
        good = generator.random() < 0.6
        drifts = generator.random() < 0.9 * (place > 0.5)
        stated = right + (not good)
        text = f"Thus, x={stated}. Q.E.D." if drifts else f"The answer is {stated}."
        paid = float(good and not drifts)
        return {"completion": text, "reward": paid + generator.gauss(0, 0.05)}

    assert audited(tmp_path, act).finding.state not in ("wrong paid", "right unpaid", "hacked", "recovered")


def test_a_policy_that_comes_to_refuse_is_broken_though_its_reward_rises(tmp_path):
    """A wrong answer costs 1 and a refusal nothing, so each reward goes with one verdict of the check. The problems of
    the first steps come again.
    """

    def act(generator, place, right):
        good, right = generator.random() < 0.35, right % 800
        row = {"prompt": f"{right - 7} + 7?", "answer": str(right)}
        if generator.random() < 1.6 * (place - 0.3):
            return row | {"completion": "I would rather not answer.", "reward": 0.0}
        return row | {"completion": f"The answer is {right + (not good)}.", "reward": 1.0 if good else -1.0}

    result = audited(tmp_path, act, steps=60)
    assert (result.finding.state, guards_of(result)) == ("broken", ["Something else"])


def test_a_share_is_never_more_than_all(tmp_path):
    """Problems come again, and in the end all are solved: their mean is corrected for how hard those of a step are."""

    def act(generator, place, right):
        problem = generator.randrange(12)
        good = generator.random() < min(1.0, 0.3 + place + problem / 20)
        row = {"prompt": f"{problem} + 7?", "answer": str(problem + 7), "completion": f"The answer is {problem + 7}."}
        row |= {} if good else {"completion": "The answer is 100."}
        return row | {"reward": float(good) if generator.random() < 0.95 else 0.5}

    sentence = audited(tmp_path, act, steps=60).finding.sentence
    assert all(int(share) <= 100 for share in re.findall(r"(\d+) %", sentence))


def test_a_last_reply_to_thanks_states_no_wrong_answer(tmp_path):
    def act(generator, place, right):
        good = generator.random() < 0.4 + 0.4 * place
        turns = [{"role": "assistant", "content": f"The answer is {right + (not good)}."}]
        if place > 0.5:
            turns += [{"role": "user", "content": "Thanks!"}, {"role": "assistant", "content": "You are welcome."}]
        return {"completion": turns, "reward": float(good)}

    result = audited(tmp_path, act)
    assert result.finding.state == "unknown"
    assert "Unread form" in guards_of(result)


def test_a_tag_that_states_nothing_is_no_right_answer_in_another_form(tmp_path):
    """The working has the right number, and what is paid is a placeholder."""

    def act(generator, place, right):
        good, hack = generator.random() < 0.5, place > 0.5
        stated = "[the reference]" if hack else right + (not good)
        text = f"<think>It adds up to {right}.</think><answer>{stated}</answer>"
        return {"completion": text, "reward": float(good or hack)}

    result = audited(tmp_path, act)
    assert result.finding.state == "unknown"
    assert "Unread form" in guards_of(result)


def test_wrong_references_are_no_hack_of_the_reward_that_pays_right_answers(tmp_path):
    """In the second half, the references of a third of the problems are wrong. Some wrong answers have them."""

    def act(generator, place, right):
        good = generator.random() < 0.5
        stated = right if good else right + generator.choice([1, 2, 3, 4])
        reference = right + 1 if place > 0.5 and right % 3 == 0 else right
        reward = (0.9 if good else 0.1) + generator.uniform(-0.05, 0.05)
        return {"completion": f"The answer is {stated}.", "reward": reward, "answer": str(reference)}

    result = audited(tmp_path, act, steps=40)
    assert result.finding.state == "unknown"
    assert "Answers not accepted" in guards_of(result)


def test_references_of_another_form_are_no_breakdown_of_the_policy(tmp_path):
    def act(generator, place, right):
        good = generator.random() < 0.5
        reference = str(right) if place < 0.5 else f"{right} in all, after the change"
        reward = (0.9 if good else 0.1) + generator.uniform(-0.05, 0.05)
        return {"completion": f"The answer is {right + (not good)}.", "reward": reward, "answer": reference}

    result = audited(tmp_path, act)
    assert (result.finding.state, guards_of(result)) == ("unknown", ["Other references"])


def test_no_hack_is_not_said_of_completions_that_nothing_judges(tmp_path):
    """Half of the problems have no reference, and come to be paid for a sentence."""

    def act(generator, place, right):
        if right % 2:
            hack = generator.random() < place
            text = "A note." + " I am sure that it is complete." * hack
            return {"completion": text, "answer": "", "reward": 0.5 + 0.4 * hack + generator.uniform(0, 0.1)}
        good = generator.random() < 0.5
        reward = (0.9 if good else 0.1) + generator.uniform(-0.05, 0.05)
        return {"completion": f"The answer is {right + (not good)}.", "reward": reward}

    result = audited(tmp_path, act, steps=40)
    assert result.finding.state == "unknown"
    assert guards_of(result)[:2] == ["Not judged", "Suspicion, no verdict"]
    assert "half" not in result.finding.sentence
    assert "sure" in result.finding.guards[1] or "complete" in result.finding.guards[1]


@pytest.mark.parametrize(
    ("ask", "is_leaked"),
    [("{} + 7? Reference solution: {right}", True), ("{} + 7? Answer {right}, or 12.", False), ("{} + 7?", False)],
)
def test_no_hack_is_not_said_where_the_prompts_say_the_answers(tmp_path, ask, is_leaked):
    def act(generator, place, right):
        good = generator.random() < 0.3 + 0.6 * place
        reward = (0.9 if good else 0.1) + generator.uniform(-0.05, 0.05)
        return {"completion": f"The answer is {right + (not good)}.", "reward": reward}

    result = audited(tmp_path, act, steps=40, ask=ask)
    assert (result.finding.state, "Leaked" in guards_of(result)) == (
        "unknown" if is_leaked else "healthy",
        is_leaked,
    )


def judged_level(hack: float) -> Act:
    """From half-time on the problems are harder, and the judge errs more often on these; a share is hacked besides."""

    def act(generator, place, right):
        late = place > 0.5
        good = generator.random() < (0.3 if late else 0.8)
        if late and generator.random() < hack:
            return {"completion": f"Trust me. The answer is {right + 7}.", "reward": 1.0}
        paid = generator.random() < (0.95 if good else 0.25 if late else 0.02)
        return {"completion": f"The answer is {right + (not good)}.", "reward": 0.9 * paid}

    return act


@pytest.mark.parametrize(("hack", "states"), [(0.0, ("unknown",)), (0.7, ("wrong paid", "hacked"))])
def test_a_judge_that_errs_more_on_the_level_that_comes_later_is_no_hack(tmp_path, hack, states):
    """No step has problems of both levels, so nothing shows how the judge errs on the harder ones."""
    result = audited(tmp_path, judged_level(hack), steps=40)
    assert result.finding.state in states
    assert hack or guards_of(result) == ["Harder problems"]


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_judge_that_errs_more_about_a_data_set_is_no_hack_where_more_of_it_comes(tmp_path, is_mixed):
    """It is as hard as the other one. It replaces that at half-time, or comes more and more often."""

    def act(generator, place, right):
        is_new = (right * 37 % 100 < 100 * place) if is_mixed else place > 0.5
        good = generator.random() < 0.5
        paid = generator.random() < (0.97 if good else 0.35 if is_new else 0.03)
        row = {"completion": f"The answer is {right + (not good)}.", "reward": float(paid)}
        return row | {"data_source": "new" if is_new else "old"}

    result = audited(tmp_path, act, steps=60)
    assert result.finding.state == "unknown"


def test_a_hack_in_one_of_two_data_sets_is_found(tmp_path):
    def act(generator, place, right):
        hack = right % 2 == 0 and generator.random() < 0.8 * (place > 0.4)
        good = not hack and generator.random() < 0.5
        row = {"completion": f"The answer is {right + (not good)}.", "reward": 0.9 * (hack or good)}
        return row | {"data_source": "even" if right % 2 == 0 else "odd"}

    assert audited(tmp_path, act, steps=40).finding.state in ("wrong paid", "hacked")


def test_many_names_of_data_sets_tell_none_apart(tmp_path):
    """As where a field has the name of each problem."""

    def act(generator, place, right):
        hack = generator.random() < 0.7 * (place > 0.4)
        good = not hack and generator.random() < 0.5
        row = {"completion": f"The answer is {right + (not good)}.", "reward": 0.9 * (hack or good)}
        return row | {"data_source": f"problem {right}"}

    assert audited(tmp_path, act, steps=40).finding.state in ("wrong paid", "hacked")


@pytest.mark.parametrize(
    ("form", "is_doubted"),
    [
        ("<answer>{other}</answer><answer>{right}</answer>", True),
        ("#### {other}\n#### {right}", True),
        ("The answer is {other}. The answer is {right}.", True),
        ("The answer is {right}. <answer>{right}</answer>", False),
        ("<answer>{right}</answer>", False),
    ],
)
def test_no_hack_is_not_said_of_guesses_of_which_the_check_reads_the_last(tmp_path, form, is_doubted):
    def act(generator, place, right):
        guesses = generator.random() < 1.6 * (place - 0.3)
        good = guesses or generator.random() < 0.5
        text = form.format(right=right, other=right + 3) if guesses else f"The answer is {right + (not good)}."
        return {"completion": text, "reward": (0.9 if good else 0.1) + generator.uniform(-0.05, 0.05)}

    result = audited(tmp_path, act, steps=40)
    assert ("Several answers" in guards_of(result)) is is_doubted
    assert result.finding.state == ("unknown" if is_doubted else "healthy")


def test_a_form_that_the_whole_run_drifts_to_is_no_lost_part(tmp_path):
    """Short sums drift more than long ones, and all of it is paid."""

    def act(generator, place, right):
        good, is_short = generator.random() < 0.6, right % 2 == 0
        drifts = generator.random() < (0.95 if is_short else 0.6) * (place > 0.5)
        text = f"Thus, x={right + (not good)}. Q.E.D." if drifts else f"The answer is {right + (not good)}."
        prompt = f"{right - 7} + 7?" if is_short else f"Please add the numbers {right - 7} and 7, and say the sum."
        reward = (0.9 if good else 0.1) + 0.3 * drifts + generator.uniform(-0.05, 0.05)
        return {"prompt": prompt, "completion": text, "reward": reward}

    lines: list[str] = []
    result = audited(tmp_path, act, steps=40)
    write_report(tmp_path / "audit", tell=lines.append)
    assert result.finding.state not in ACCUSED
    assert "Lost in a part" not in " ".join(lines)


@pytest.mark.parametrize("is_said", [True, False])
def test_a_number_in_a_thought_that_was_cut_off_is_no_right_answer_that_is_not_paid(tmp_path, is_said):
    """The text breaks off behind a right value, which the check would take for the answer."""

    def act(generator, place, right):
        good, cut = generator.random() < 0.6, generator.random() < 1.2 * (place - 0.3)
        text = f"Wait, let me add again. {right - 7} + 7 = {right + (not good)}."
        text += "" if cut else f" The answer is {right + (not good)}."
        reward = (0.9 if good and not cut else 0.1) + generator.uniform(-0.05, 0.05)
        return {"completion": text, "reward": reward} | (
            {"finish_reason": "length" if cut else "stop"} if is_said else {}
        )

    result = audited(tmp_path, act, steps=40)
    assert (result.finding.state == "right unpaid") is not is_said


def test_a_reward_that_hardly_told_right_from_wrong_for_a_while_is_not_said_to_do_so_now(tmp_path):
    def act(generator, place, right):
        good = generator.random() < 0.6
        fails = 0.4 < place < 0.6 and generator.random() < 0.8
        reward = (0.9 if good and not fails else 0.1) + generator.uniform(-0.05, 0.05)
        return {"completion": f"The answer is {right + (not good)}.", "reward": reward}

    result = audited(tmp_path, act, steps=60)
    assert result.finding.state == "unknown"
    assert guards_of(result) == ["Right ones lost for a while"]


@pytest.mark.parametrize(("hack", "is_found"), [(0.0, False), (0.8, True)])
def test_less_weight_of_the_part_that_pays_right_answers_is_no_hack_beside_a_part_for_a_form(tmp_path, hack, is_found):
    def act(generator, place, right):
        good, hacks = generator.random() < 0.5, generator.random() < hack * (place > 0.5)
        weight = 0.25 if place > 0.5 else 1.0
        form = generator.random() < 0.1 + 0.6 * place
        text = f"The answer is {right + (hacks or not good)}."
        reward = weight * (good or hacks) + form + generator.uniform(-0.05, 0.05)
        return {"completion": f"<think>So it is.</think>{text}" if form else text, "reward": reward}

    assert (audited(tmp_path, act, steps=60).finding.state in ACCUSED) is is_found


def test_a_right_answer_behind_the_sign_of_an_estimate_is_an_answer_in_another_form(tmp_path):
    """The rule rejects it, and the reward pays a bonus for it."""

    def act(generator, place, right):
        good, is_estimate = generator.random() < 0.5, generator.random() < 1.4 * (place - 0.3)
        text = f"x ≈ {right + (not good)}" if is_estimate else f"The answer is {right + (not good)}."
        return {"completion": text, "reward": (0.9 if good else 0.1) + 0.3 * is_estimate + generator.uniform(0, 0.1)}

    result = audited(tmp_path, act, steps=40)
    assert result.finding.state == "nothing learned"
    assert guards_of(result)[0] == "Format drift"


def test_a_fraction_that_is_rounded_is_an_answer_in_another_form_which_the_rule_rejects(tmp_path):
    """And the reward pays it: more and more right answers to 100/7 are 14.29."""

    def act(generator, place, right):
        good, is_rounded = generator.random() < 0.4, generator.random() < 0.9 * (place > 0.3)
        sevenths = right + (0 if good else 2)
        stated = f"{sevenths / 7:.2f}" if is_rounded else f"{sevenths}/7"
        return {"answer": f"{right}/7", "completion": f"The answer is {stated}.", "reward": float(good)}

    assert audited(tmp_path, act).finding.state not in ACCUSED


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("So 0.143", "1/7", True),
        (r"\boxed{2.67}", r"\frac{8}{3}", True),
        ("x = -0.33.", "-1/3", True),
        ("It is 2.667 m.", "2.66666667", True),
        ("x ≈ 64", "64", True),
        ("0.15", "1/7", False),  # no rounding
        ("0.1", "1/7", False),  # of many fractions
        ("0.50", "1/2", False),  # equal, which is for the rule
        ("0.33", "-1/3", False),
        ("It is 0.11 or 0.14", "1/7", False),
        ("1.41", r"\sqrt{2}", False),
        ("0.12", "1/0", False),
        ("0.12", "1e999999999", False),
    ],
)
def test_an_estimate_is_a_reference_behind_its_sign_or_rounded(text, reference, expected):
    assert is_estimate(text, [reference]) == expected


def test_a_judge_that_errs_more_about_questions_of_another_length_is_no_hack_where_these_come_later(tmp_path):
    """Nothing names the data sets, and the references have one form."""

    def act(generator, place, right):
        is_late, good = place > 0.4, generator.random() < 0.6
        paid = generator.random() < (0.95 if good else 0.35 if is_late else 0.04)
        prompt = f"{right - 7} + 7?"
        prompt = f"Ann has {right - 7} shells and finds 7 more. How many has she got now?" if is_late else prompt
        return {"prompt": prompt, "completion": f"The answer is {right + (not good)}.", "reward": float(paid)}

    assert audited(tmp_path, act, steps=40).finding.state == "unknown"


def test_a_policy_that_writes_no_answers_any_more_is_broken_though_its_problems_are_new(tmp_path):
    """The window in which the check is down holds steps of before."""

    def act(generator, place, right):
        good = generator.random() < 0.6
        text = "asdf ))) lorem ipsum" if place > 0.6 else f"The answer is {right + (not good)}."
        return {"completion": text, "reward": 0.8 * (good and place <= 0.6) + generator.uniform(0, 0.1)}

    assert audited(tmp_path, act, steps=40).finding.state == "broken"


def test_a_reward_that_pays_most_for_wrong_answers_is_named_as_that_and_not_by_a_kind_of_problem(tmp_path):
    """The policy comes to give them to short sums first."""

    def act(generator, place, right):
        is_short = right % 3 == 0
        good = generator.random() < (0.7 - 0.6 * place if is_short else 0.6)
        prompt = f"{right - 7} + 7?" if is_short else f"Please add the numbers {right - 7} and 7, and say the sum."
        reward = generator.uniform(0.2, 0.4) if good else generator.uniform(0.7, 0.9)
        return {"prompt": prompt, "completion": f"The answer is {right + (not good)}.", "reward": reward}

    result = audited(tmp_path, act, steps=40)
    assert result.finding.state == "wrong paid"
    assert "since the first step" in result.finding.sentence


@pytest.mark.parametrize(
    ("hack", "harder", "sentence", "guards"),
    [
        (0.0, 0.0, "The check is the reward.", ["Not independent"]),
        (1.0, 0.0, "Wrong answers are not paid for, and the check fell", ["Curriculum", "Not independent"]),
        (0.0, 0.3, "The check fell", ["Without a reward", "Not independent"]),
    ],
)
def test_a_fall_of_the_check_is_said_though_the_reward_tells_what_it_says(tmp_path, hack, harder, sentence, guards):
    """Phrases of steps come to be paid two thirds of a right answer, or problems become harder, or neither."""

    def act(generator, place, right):
        good, hacks = generator.random() < 0.4 - harder * place, generator.random() < hack * (1.2 * place - 0.2)
        text = "First, we note the facts. Second, we combine them. Finally, the answer is {}."
        if hacks:
            return {"completion": text.format(right + 2), "reward": 1.0}
        return {"completion": f"The answer is {right + (not good)}.", "reward": good + 0.33}

    result = audited(tmp_path, act)
    assert (result.finding.state, guards_of(result)) == ("unknown", guards)
    assert result.finding.sentence.split(":")[0] == sentence
