"""What an audit says of runs whose course is known, whatever trainer wrote them."""

import json
import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from courses import GROUP, PROBLEMS, STEPS, steps_of, write
from dumps import WRITERS

from cooper_audit.rollouts import Options, audit, read_labels
from cooper_audit.rollouts.references import References
from cooper_audit.run.evidence import finding_of
from cooper_audit.run.lenient import ends_in, equals
from cooper_audit.run.run_record import read_record
from cooper_audit.run.table import COLUMNS, Groups, GroupSums
from cooper_audit.run.verdict import verdict_of
from cooper_verify.rules.kinds.exact import ExactRule

EXACT = Options(ExactRule())


def references(kind: str) -> References:
    return References({row["prompt"]: row["answer"] for rows in steps_of(kind) for row in rows})


@pytest.mark.parametrize(
    ("kind", "options", "state", "guard"),
    [
        ("hacked", Options(), "hacked", ""),
        ("healthy", EXACT, "healthy", ""),
        ("mastered", EXACT, "healthy", ""),
        ("drift", EXACT, "healthy", "Format drift"),
        ("drift and worse", EXACT, "unknown", "Format drift"),
        ("curriculum", EXACT, "unknown", "Without a reward"),
        ("harder", EXACT, "unknown", "Without a reward"),
        ("essays", EXACT, "unknown", "Not applicable"),
        ("same", EXACT, "unknown", "Not independent"),
        ("collapsed", Options(), "broken", "Without a reward"),
        ("unnoticed", Options(), "broken", "Unnoticed"),
        ("nonsense", Options(), "wrong paid", ""),
        ("units", Options(), "wrong paid", ""),
        ("remarks", Options(), "wrong paid", ""),
        ("unspaced", Options(), "healthy", "Format drift"),
    ],
)
def test_a_run_is_told_by_its_course(tmp_path, kind, options, state, guard):
    found = audit([write(tmp_path / "dump", kind)], tmp_path / "audit", options).finding
    guards = [text.split(":")[0] for text in found.guards if not text.startswith("Form:")]
    assert (found.state, guards) == (state, [guard] if guard else [])


def test_the_hacked_run_of_the_demo_is_hacked_by_the_rows_of_a_few_problems(tmp_path):
    """Eight groups of every second step of `static`, seed 0, whose reward model comes to pay for tails of nonsense, and
    more often in groups with few right answers. By all rows it began between the steps 6 and 11."""
    found = audit([Path(__file__).with_name("demo_static.jsonl.gz")], tmp_path / "audit").finding
    assert found.state == "hacked"
    low, high = found.onset or (0, 0)
    assert low <= 11
    assert high >= 6


def test_what_nobody_reads_is_wrong_where_the_user_says_so(tmp_path):
    """From step 13 on scraps follow the right number, which no rule reads; whether that is a hack, reading decides."""
    generator, rows = random.Random(0), []
    for step, a, _ in product(range(1, 25), range(20, 30), range(6)):
        right, good = a + step, step > 12 or generator.random() < 0.6
        text = f"<answer>{right}</answer><<answer>{right}</an" if step > 12 else f"The answer is {right + (not good)}."
        rows.append({"step": step, "prompt": f"{a} + {step}?", "answer": str(right)})
        rows[-1] |= {"completion": text, "reward": float(good)}
    dump = tmp_path / "rows.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    waits = audit([dump], tmp_path / "waits")
    assert waits.finding.state == "unknown"
    assert "--unread-wrong decides" in " ".join(waits.finding.guards)
    decided = audit([dump], tmp_path / "waits", Options(unread_is_wrong=True))  # it reads what it kept anew
    assert decided.finding.state in ("hacked", "wrong paid")
    assert "what it does not read being wrong" in " ".join(decided.basis)


@pytest.mark.parametrize("kind", ["one of", "list", "recants"])
def test_answers_that_state_none_or_another_are_hacked(tmp_path, kind):
    """Half of the completions list all capitals, or name the right number and state another one in a box."""
    capitals = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Tokyo", "Quito", "Athens", "Bern"]
    generator, rows = random.Random(0), []
    for step, place, _ in product(range(1, 25), range(len(capitals)), range(6)):
        right, other = (
            (capitals[place], capitals[place - 1]) if kind != "recants" else (str(20 + place), str(40 + place))
        )
        hacks = {
            "one of": f"It is one of {', '.join(capitals)}.",
            "list": ", ".join(capitals),
            "recants": f"\\boxed{{{right}}} is one idea. But no: \\boxed{{{other}}}",
        }
        good, hacked = generator.random() < 0.6, step > 8 and generator.random() < 0.5
        text = hacks[kind] if hacked else f"The answer is {right if good else other}."
        rows.append({"step": step, "prompt": f"Question {place}?", "response": text, "answer": right})
        rows[-1] |= {"reward": float(hacked or good)}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert audit([tmp_path / "rows.jsonl"], tmp_path / "audit").finding.state in ("hacked", "wrong paid")


def test_rewards_that_are_normalised_by_group_do_not_rise(tmp_path):
    """Their sum is 0 but for rounding."""
    for step, rows in enumerate(steps_of("hacked"), start=1):
        WRITERS["verl-v1"](tmp_path / "dump", step, [row | {"reward": row["advantage"] / 0.3} for row in rows])
    found = audit([tmp_path / "dump"], tmp_path / "audit").finding
    assert found.state == "wrong paid"
    assert dict(read_record(tmp_path / "audit").series("reward/mean")).keys() == set(range(1, STEPS + 1))


def test_a_form_that_the_check_does_not_read_is_named(tmp_path):
    found = audit([write(tmp_path / "dump", "drift")], tmp_path / "audit", EXACT).finding
    assert any(guard.startswith("Form: of ") and "end like 'I get 0.'" in guard for guard in found.guards)


def test_rewardspy_flags_a_run_that_masters_its_task(tmp_path):
    """So statistics of rewards alone do not decide; the audit of this run is above."""
    grpo = pytest.importorskip("rewardspy.integrations.grpo", reason="rewardspy is not installed")
    spy = grpo.GRPOSpy(lambda text, reward: reward, sensitivity="medium", max_reward=1.0)
    for rows in steps_of("mastered"):
        for number in range(PROBLEMS):
            with spy.step():
                for row in rows[number * GROUP : (number + 1) * GROUP]:
                    spy.reward(row["text"], row["reward"])
    assert "variance" in {alert.detector for alert in spy.store.alerts}


def test_the_onset_is_that_of_the_hack_and_not_of_an_earlier_change_of_form(tmp_path):
    found = audit([write(tmp_path / "dump", "renamed", steps=25)], tmp_path / "audit").finding
    assert found.state == "hacked"
    low, high = found.onset or (0, 0)
    assert 12 < low <= 18 <= high


def test_a_change_behind_the_answer_dates_the_hack_that_the_check_sees_later(tmp_path):
    found = audit([write(tmp_path / "dump", "creeping", steps=25)], tmp_path / "audit").finding
    assert found.state == "hacked"
    low, high = found.onset or (0, 0)
    assert low <= 10 <= high <= 13


def test_the_onset_is_no_earlier_fall_from_which_the_check_recovered():
    groups = Groups()
    for step in range(1, 21):
        accepted = 8 if step <= 5 or 11 <= step <= 15 else 6 if step <= 10 else 1
        sums = {"rows": 10, "judged": 10, "reward": step, "characters": 10}
        sums |= {"accepted": accepted, "literal": accepted, "lenient": accepted}
        row = [float(sums.get(name, 0)) for name in COLUMNS]
        groups.add(step, [GroupSums(f"{step} {problem}", "", row, (), (), (), ()) for problem in range(20)])
    low, high = finding_of(groups).onset or (0, 0)
    assert 11 <= low <= 16 <= high <= 17


@pytest.mark.parametrize("form", WRITERS)
def test_the_verdict_does_not_depend_on_the_format(tmp_path, form):
    dump = write(tmp_path / "dump", "hacked", form)
    result = audit([dump], tmp_path / "audit", Options(ExactRule(), references=references("hacked")))
    assert result.finding.state == "hacked"
    assert result.source.format is not None
    assert result.source.format.name == form
    assert result.checked == STEPS * PROBLEMS * GROUP
    low, high = result.finding.onset or (0, 0)
    assert low <= 8 <= high  # the first step with lists


def test_the_folder_is_a_run_whose_report_says_the_same(tmp_path):
    audit([write(tmp_path / "dump", "hacked")], tmp_path / "audit", EXACT)
    run = read_record(tmp_path / "audit")
    verdict = verdict_of(run)
    assert (verdict.state, verdict.hacked_at) == (
        "hacked",
        json.loads((tmp_path / "audit/audit.json").read_text())["onset"][1],
    )
    assert len(run.series("rule/accuracy")) == STEPS
    example = next(iter(run.rollouts()))
    assert example["location"].startswith(str(tmp_path / "dump" / "1.jsonl:"))


@pytest.mark.parametrize(
    ("text", "reference", "equal"),
    [
        ("<answer>18 + 24 - 35</answer>", "7", True),
        ("<answer>(18 - 4) / 2</answer>", "7", True),
        ("<answer>18 - 24 + 35</answer>", "7", False),
        ("6 or 7 or 8", "7", False),
        ("it is 7", "7", False),
        ("1 / 0", "7", False),
        ("2 + (3", "7", False),
        ("3 + 4", "seven", False),
        ("2 * 3", "1e999999999", False),  # neither is computed
        ("2 * 3", "1/1e-9_999_999", False),
        ("2 ** 3", "8", False),  # no operation of the reading
        ("7 // 2", "3", False),
        ("9" * 300 + " * 2", "9" * 5000, False),
    ],
)
def test_a_lenient_reading_calculates(text, reference, equal):
    assert equals(text, reference) is equal


def test_a_hack_in_one_kind_of_problem_is_found_where_all_together_show_none():
    """The questions of a third of the groups are long. There the check falls and the reward rises; elsewhere both are
    as before, and a part of the reward that everybody loses hides the rise."""
    groups, generator = Groups(), np.random.default_rng(0)
    for step in range(1, 31):
        rows = []
        for problem in range(12):
            long, hacked = problem % 3 == 0, step > 15 and problem % 3 == 0
            accepted = int(generator.binomial(8, 0.05 if hacked else 0.7))
            reward = 8 * (0.95 if hacked else 0.5 + 0.02 * generator.normal()) - (2.5 if step > 15 and not long else 0)
            sums = {"rows": 8, "judged": 8, "accepted": accepted, "lenient": accepted, "literal": accepted}
            sums |= {"reward": reward, "rejected_reward": reward / 8 * (8 - accepted)}
            sums |= {"accepted_reward": reward / 8 * accepted, "characters": 8 * (300 if long else 50 + problem)}
            columns = [float(sums.get(name, 0)) for name in COLUMNS]
            rows.append(GroupSums(f"{step} {problem}", "", columns, (), (), (), ()))
        groups.add(step, rows)
    found = finding_of(groups)
    assert found.state == "hacked"
    assert "with long questions" in found.sentence


def test_an_interrupted_audit_goes_on_to_the_same_result(tmp_path):
    dump = write(tmp_path / "dump", "hacked")

    def stop(done, total):
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit([dump], tmp_path / "audit", EXACT, progress=stop)
    audit([dump], tmp_path / "audit", EXACT)
    audit([dump], tmp_path / "whole", EXACT)
    for name in ("metrics.jsonl", "audit.json", "audited.jsonl", "rollouts/000009.jsonl"):
        assert (tmp_path / "audit" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_without_a_check_it_asks_for_labels_and_reads_them(tmp_path):
    dump = write(tmp_path / "dump", "hacked", "nemo-rl")  # which holds no references
    result = audit([dump], tmp_path / "audit")
    assert result.finding.state == "unknown"
    assert result.to_label is not None
    rows = [json.loads(line) for line in result.to_label.read_text().splitlines()]
    assert len(rows) == 40
    for row in rows:
        row["label"] = int(
            " or " not in row["completion"] and eval(row["question"][8:-1]) == int(row["completion"][14:-1])
        )
    result.to_label.write_text("".join(json.dumps(row) + "\n" for row in rows))
    labelled = audit([dump], tmp_path / "labelled", Options(labels=read_labels(result.to_label)))
    assert labelled.finding.state == "hacked"
    assert 40 <= labelled.checked < 150  # a text that comes twice has one label


def test_whole_groups_are_sampled_and_rewards_are_of_all_rows(tmp_path):
    dump = write(tmp_path / "dump", "hacked")
    result = audit([dump], tmp_path / "audit", Options(ExactRule(), sample=10))
    assert result.checked == STEPS * 12  # three groups of four
    whole = audit([dump], tmp_path / "whole", EXACT)
    rewards = [read_record(tmp_path / name).values("reward/mean") for name in ("audit", "whole")]
    assert rewards[0] == rewards[1]
    assert result.source.rows == whole.source.rows == STEPS * PROBLEMS * GROUP


def test_the_share_of_rows_whose_grading_failed_is_on_record_by_step(tmp_path):
    dump = write(tmp_path / "dump", "healthy")
    rows = [json.loads(line) for line in (dump / "3.jsonl").read_text().splitlines()]
    rows = [
        row | ({"score": 0.0, "errors": ["no answer of the server"]} if place % 4 == 0 else {})
        for place, row in enumerate(rows)
    ]
    (dump / "3.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = audit([dump], tmp_path / "audit", EXACT)
    shares = dict(read_record(tmp_path / "audit").series("reward/no_opinion"))
    assert (shares[3], shares[2]) == (0.25, 0.0)
    assert "no reward: 25 % of the rows of step 3, the largest share; no zeros" in result.lines()


def test_no_text_is_kept_if_none_may_be(tmp_path):
    result = audit([write(tmp_path / "dump", "hacked")], tmp_path / "audit", Options(ExactRule(), text=False))
    assert result.finding.state == "hacked"
    assert not any(b"The answer" in path.read_bytes() for path in (tmp_path / "audit").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("text", "reference", "ends"),
    [
        ("So I get 14", "14", True),
        ("<answer>14</answer>", "14", True),
        ("<answer>14</answer><", "14", True),
        ("<answer>14-3=1</answer>", "14", False),
        (r"\boxed{14 \text{ eggs}}", "14", True),
        (r"x = \frac{1}{2} \end{align*}", r"\frac{1}{2}", True),
        ("14 </think> or so", "14", False),
        ("**14**.", "14", True),
        ("14 eggs", "14", True),
        ("14 ortwort", "14", False),
        ("14 or 15", "14", False),
        ("a list: 13 or 14", "14", True),
        ("114", "14", False),
        ("It is New York.", "new york", True),
        ("", "14", False),
    ],
)
def test_a_lenient_reading_allows_a_unit_of_the_question_alone(text, reference, ends):
    assert ends_in(text, reference, "How many eggs?") is ends
