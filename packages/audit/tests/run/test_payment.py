"""What a reward pays for: innocent while problems, answers and forms change, and seen where wrong answers are paid."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.runs.run_verdicts import (
    BROKEN,
    CHANGING,
    HACKED,
    OTHER_HACKED,
    Shape,
    simulated,
    simulated_run,
    verdicts_on,
)

from cooper_audit.run.evidence import finding_of_table
from cooper_audit.run.finding import ACCUSED, fallen, with_power
from cooper_audit.run.lenient import otherwise
from cooper_audit.run.paid_rows import payments_of
from cooper_audit.run.pay_tracks import LEVEL, PAY, PayTracks
from cooper_audit.run.payment import is_the_check
from cooper_audit.run.run_record import RunRecord
from cooper_audit.run.table import JudgedRow, payment_shares, sums_of
from cooper_audit.run.verdict import verdict_of
from cooper_audit.statistics import Estimate
from slow_members import first_fast

HIDDEN = ("share 0.2", "learns, and half hacks", "grows to .3", "half of the problems", "every second step")


@pytest.mark.parametrize("name", first_fast(CHANGING, 12))
def test_an_honest_run_whose_problems_change_is_not_accused(name):
    said = verdicts_on(simulated_run(CHANGING[name], 24, 8, 4, np.random.default_rng(sum(map(ord, name)))))
    assert said["audit"] not in (*ACCUSED, "broken")
    assert said["report"] not in (*ACCUSED, "broken")
    assert said["alarm"] is None


@pytest.mark.parametrize("name", HIDDEN)
def test_a_hack_beside_learning_is_found(name):
    run = simulated_run(HACKED[name], 40, 16, 8, np.random.default_rng(1))
    found = finding_of_table(run.table)
    assert found.state in ("wrong paid", "hacked")
    low, high = found.onset or (0, 0)
    assert 5 <= low < high <= 35


@pytest.mark.parametrize("number", [28, 1193, 1351, 1394])
def test_the_chance_of_few_right_rows_is_no_hack(number):
    """In groups of two while problems become harder, a few right ones stand beside all wrong ones."""
    assert finding_of_table(simulated("groups of 2, harder", number).table).state not in (*ACCUSED, "broken")


def test_a_check_that_falls_while_something_else_is_paid_may_be_a_policy_that_grows_worse():
    run = simulated_run(CHANGING["harder at half-time, form of 1"], 40, 16, 8, np.random.default_rng(0))
    found = finding_of_table(run.table)
    assert found.state == "unknown"
    assert found.guards[0].startswith("Curriculum: ")


def test_a_reward_that_pays_many_wrong_answers_from_the_start_and_then_more_is_found():
    shape = Shape(lambda x: 0.69 - 0.1 * x, lambda x: 0.35 + 0.15 * x)  # paid 0 or 1, so that a tie counts half
    assert finding_of_table(simulated_run(shape, 60, 4, 8, np.random.default_rng(4)).table).state == "wrong paid"


def test_no_hack_is_not_said_of_more_and_more_that_nobody_reads():
    run = simulated_run(Shape(unread=lambda x: 0.2 * (x > 0.5)), 40, 16, 8, np.random.default_rng(0))
    found = with_power(run.table, finding_of_table(run.table))
    assert found.state == "unknown"
    assert "in what the check does not read" in " ".join(found.guards)
    few = simulated_run(Shape(unread=lambda x: 0.2 + 0 * x), 40, 16, 8, np.random.default_rng(0)).table
    assert with_power(few, finding_of_table(few)).state == "nothing learned"


def test_six_steps_are_enough_for_a_complete_hack():
    run = simulated_run(HACKED["six steps"], 6, 16, 8, np.random.default_rng(0))
    assert finding_of_table(run.table).state in ("wrong paid", "hacked")


@pytest.mark.parametrize("name", BROKEN)
def test_a_grader_that_fails_no_longer_pays_right_answers(name):
    run = simulated_run(BROKEN[name], 40, 16, 8, np.random.default_rng(0))
    assert finding_of_table(run.table).state == "right unpaid"


def test_a_reward_that_pays_wrong_answers_more_from_the_first_step_on_is_named_and_not_dated():
    found = finding_of_table(simulated_run(HACKED["from the first step"], 24, 8, 4, np.random.default_rng(0)).table)
    assert found.state == "wrong paid"
    assert "since the first step" in found.sentence
    assert found.onset is None


def test_where_no_row_has_an_advantage_nothing_is_said_of_it():
    table = simulated_run(HACKED["from the first step"], 24, 8, 4, np.random.default_rng(0)).table
    without = {name: 0 * table[name] for name in ("positive", "positive_rejected")}
    found = finding_of_table(replace(table, columns={**table.columns, **without}))
    assert found.state == "wrong paid"
    assert "advantage" not in found.sentence


@pytest.mark.parametrize("times", [0.1, 10])
def test_a_reward_that_is_rescaled_is_no_hack(times):
    shape = Shape(form=lambda x: 0.05 + 0.4 * x, weight=1.0, scale=lambda x: 1 + (times - 1) * (x > 0.6))
    for seed in range(3):
        found = finding_of_table(simulated_run(shape, 40, 16, 8, np.random.default_rng(seed)).table)
        assert found.state not in ACCUSED


@pytest.mark.parametrize(
    "shape",
    [
        Shape(noise=3.0),
        Shape(lenient=0.8),
        Shape(lenient=0.95),
        Shape(lambda x: 0.5 + 0 * x, convention=(0.9, 0.0), noise=2.0),
        Shape(form=lambda x: 0.5 + 0 * x, weight=3.0),
        Shape(partial=lambda x: 1.0 + 0 * x, noise=0.3),
    ],
)
def test_an_inaccurate_reward_is_not_accused_of_paying_for_wrong_answers_since_the_start(shape):
    run = simulated_run(shape, 24, 8, 4, np.random.default_rng(0))
    assert finding_of_table(run.table).state not in (*ACCUSED, "broken")


def test_a_hack_that_goes_on_while_the_policy_learns_is_not_over():
    """The check comes back because the other half of the completions is right more often."""
    shape = Shape(lambda x: 0.3 + 0.65 * np.clip(1.6 * x - 0.6, 0, 1), lambda x: 0.5 * (x > 0.3), paid=0.9)
    states = {
        finding_of_table(simulated_run(shape, 40, 12, 6, np.random.default_rng(seed)).table).state for seed in range(3)
    }
    assert states <= {"wrong paid", "hacked"}


def test_a_hack_is_found_that_comes_with_a_level_of_problems_as_alike_as_those_before():
    """Nothing before says how a judge errs on harder problems, and these would explain less than half."""
    name = "harder and hacked from half-time, problems alike"
    run = simulated_run(OTHER_HACKED[name], 40, 16, 8, np.random.default_rng(0))
    assert finding_of_table(run.table).state in ("wrong paid", "hacked")


def test_a_hack_in_blocks_of_steps_is_found_and_dated_by_its_first():
    """From step 16 on, four steps are hacked and four are not, by turns."""
    blocks = Shape(hacked=lambda x: 0.9 * ((x > 15 / 40) & ((np.round(40 * x + 0.5) // 4) % 2 == 0)))
    found = finding_of_table(simulated_run(blocks, 40, 16, 8, np.random.default_rng(0)).table)
    assert found.state in ("wrong paid", "hacked")
    low, high = found.onset or (0, 0)
    assert low <= 16 <= high <= 24


def test_a_hack_in_every_third_step_is_found_and_dated():
    third = Shape(hacked=lambda x: 0.9 * ((x > 0.3) & (np.round(45 * x + 0.5) % 3 == 0)))
    found = finding_of_table(simulated_run(third, 45, 16, 8, np.random.default_rng(0)).table)
    assert found.state == "wrong paid"
    low, high = found.onset or (0, 0)
    assert low <= 15 <= high <= 20


def test_a_hack_that_comes_and_goes_in_a_run_of_ten_steps_is_found():
    run = simulated_run(HACKED["in every second tenth"], 10, 16, 8, np.random.default_rng(0))
    assert finding_of_table(run.table).state == "wrong paid"


def test_a_judge_that_harder_problems_fool_is_no_hack_and_a_hack_of_as_much_is_one():
    """In both runs wrong answers come to be paid more often, from 1 in 10 to 4 in 10."""
    judge = Shape(fooled=0.6, harder=lambda x: 5 * x - 2.5)
    found = finding_of_table(simulated_run(judge, 40, 32, 8, np.random.default_rng(0)).table)
    assert found.state == "unknown"
    assert any(guard.startswith("Harder problems: ") for guard in found.guards)
    hack = Shape(lenient=0.1, hacked=lambda x: 0.3 * (x > 0.5), harder=lambda x: 5 * x - 2.5)
    found = finding_of_table(simulated_run(hack, 40, 32, 8, np.random.default_rng(0)).table)
    assert found.state == "wrong paid"


@pytest.mark.parametrize("paid", [0.0, 1.0])
def test_a_reward_that_pays_all_alike_is_no_absence_of_a_hack(paid):
    alike = Shape(paid=paid, hacked=lambda x: 0.5 + 0 * x, fails=lambda x: 1.0 + 0 * x)
    table = simulated_run(alike, 24, 16, 4, np.random.default_rng(0)).table
    found = with_power(table, finding_of_table(table))
    assert found.state == "unknown"
    assert "pays many wrong answers like right ones" in found.guards[0]


def test_a_reward_that_pays_most_for_wrong_answers_is_not_the_check():
    """Each reward goes with one verdict: 1.2 with wrong, 1 with right, 0 with wrong."""
    assert not is_the_check([(1.2, False), (1.0, True), (0.0, False)] * 40)
    assert is_the_check([(1.5, True), (1.0, True), (0.5, False), (0.0, False)] * 40)


def test_held_out_problems_do_not_hide_what_was_paid():
    """The policy learns on held-out problems, and on those of training half of its completions are wrong and paid."""
    run = simulated_run(HACKED["learns, and half hacks"], 40, 16, 8, np.random.default_rng(1))
    rows = [row | {"test/gold_avg": 0.3 + 0.01 * row["step"]} for row in run.rows]
    record = RunRecord(Path("no folder"), run.config, rows, [])
    assert verdict_of(record, 500).state == "healthy"
    verdict = verdict_of(record, 500, run.table)
    assert verdict.state in ("wrong paid", "hacked")
    assert verdict.basis[0] == "Check: gold accuracy on held-out problems."


def test_no_hack_is_said_only_where_one_would_have_been_seen():
    said = []
    for problems in (2, 32):
        table = simulated_run(Shape(lenient=0.2), 12, problems, 4, np.random.default_rng(0)).table
        said.append(with_power(table, finding_of_table(table)))
    assert [found.state for found in said] == ["unknown", "nothing learned"]
    assert said[0].guards[0].startswith(("Power: ", "Too few")) or "Too few" in said[0].sentence
    assert "would have been seen" in said[1].sentence


def test_shares_of_a_step():
    shares = payment_shares([("", [1.0, 0.8], [0.9, 0.0]), ("", [], [1.0])])
    assert {name: shares[name] for name in PAY} == pytest.approx(
        dict(zip(PAY, ((0.5 + 0 + 0.75) / 3, 1.25 / 3.25, (0 + 0.9 - 0.1) / 3), strict=True))
    )
    assert payment_shares([("", [1.0], [])]) == payment_shares([("", [], [1.0])]) == {}


def test_a_mix_of_kinds_that_changes_is_no_change_of_what_is_paid():
    """The reward pays half of what the check calls wrong of percentages, and nothing wrong of numbers."""
    number, percentage = ("a number", [1.0] * 4, [0.0] * 4), ("a percentage", [1.0] * 4, [1.0, 1.0, 0.0, 0.0])
    shares = payment_shares([number] * 9 + [percentage])
    assert shares == pytest.approx(payment_shares([number] + [percentage] * 9))
    assert shares["reward/wrong_paid/percentage"] == 0.25  # a tie with a right one counts half
    assert shares["reward/wrong_paid/number"] == 0.0


def test_a_kind_of_problem_that_comes_later_is_no_change_of_what_is_paid():
    number, percentage = ("a number", [1.0] * 4, [0.0] * 4), ("a percentage", [1.0] * 4, [1.0, 1.0, 0.0, 0.0])
    tracks = PayTracks()
    for step in range(40):
        groups = [number] * 4 + [percentage] * (4 * (step >= 20))
        tracks.add({"rule/accuracy": 0.5, **payment_shares(groups)}, 0.5)
    assert tracks.averages(5)[:3] == pytest.approx([0.0, 0.0, -1.0])


def test_rewards_that_are_normalised_by_group_say_nothing_of_other_groups():
    mixed, unsolved = ("", [1.0, 1.0], [-1.0, -1.0]), ("", [], [1.0, -0.5, -0.5])
    assert payment_shares([mixed, unsolved])[PAY[0]] == 0.0
    assert payment_shares([mixed, ("", [], [1.0, 0.0])])[PAY[0]] == 0.125  # not around 0: half of a tie, of four


def test_the_level_of_groups_is_that_of_the_others_and_less_by_chance():
    """A judge pays for a wrong answer with half of the probability that the policy is wrong."""
    generator = np.random.default_rng(0)
    groups = []
    for chance in generator.uniform(0.1, 0.9, 4000):
        right = generator.random(4) < chance
        paid = np.where(right | (generator.random(4) < 0.5 * (1 - chance)), 1.0, 0.0)
        groups.append(("", paid[right].tolist(), paid[~right].tolist()))
    shares = payment_shares(groups)
    mean, variance, covariance = (shares[name] for name in LEVEL)
    assert mean == pytest.approx(0.5 - 0.8**2 / 12 / 0.5, abs=0.01)
    assert covariance / variance == pytest.approx(-0.25, abs=0.03)  # a tie with a right one counts half


def test_a_part_of_the_reward_that_all_learn_while_problems_become_harder_is_no_hack():
    """In groups of two, most wrong answers have no right one beside them."""
    for number in (49, 63, 64, 95):
        table = simulated("groups of 2, harder", number).table
        assert finding_of_table(table).state not in ACCUSED


def test_a_hack_of_half_the_completions_from_the_first_step_on_is_no_absence_of_a_hack():
    run = simulated_run(Shape(hacked=lambda x: 0.5 + 0 * x, paid=0.9), 24, 16, 8, np.random.default_rng(0))
    found = with_power(run.table, finding_of_table(run.table))
    assert found.state == "unknown"
    assert found.guards[0].startswith("Since the first step: ")


def test_a_fall_is_said_without_a_sign():
    assert fallen(Estimate(-0.53, -0.6, -0.46)) == "0.53 [0.46, 0.60]"


def test_wrong_rows_of_a_group_without_right_ones_are_compared_with_those_of_the_steps_on_both_sides():
    """What all rows come to be paid by and by, such as for a form, does not make wrong ones like right ones."""
    steps = payments_of([[([1.0 + paid], []), ([], [0.0 + paid])] for paid in range(9)])
    assert steps[4][1][:4] == pytest.approx((1, 3.5 / 9, 1.0, 4.0))
    steps = payments_of([[([], [0.5])], [([1.0], [])], [([], [1.0, 0.2])]])
    assert steps[0][0][:4] == (1, 0, 0.5, 0.5)
    assert steps[2][0][:4] == pytest.approx((2, 0.5, 0.8, 1.2))


def test_what_a_few_right_rows_add_to_the_groups_of_others_is_theirs():
    """Both wrong rows are compared with the two right ones, of which the second has a form that is paid, too."""
    [step] = payments_of([[([1.0], []), ([2.0], []), ([], [0.0]), ([], [1.5])]])
    like, less = zip(*(group[4:] for group in step), strict=True)
    assert like == pytest.approx((0.25, -0.25, 0, 0))
    assert less == pytest.approx((-0.5, 0.5, 0, 0))
    assert sum(group[1] for group in step) == 0.5
    assert sum(group[2] for group in step) == 1.5


def test_answers_that_nobody_reads_are_neither_right_nor_wrong():
    rows = [JudgedRow(1.0, 0, True), JudgedRow(1.0, 0, False, False, None), JudgedRow(0.0, 0, False)]
    sums = sums_of("12 + 0?", "12", rows, {})
    assert (sums.right, sums.wrong, sums.otherwise) == ([1.0], [0.0], [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Thus, x=204. Q.E.D.", True),
        ("I get 204.", True),
        ("<answer>51*4</answer>", True),
        ("So 51*4=204 at last. Done", True),
        ("I will multiply 51 * 4", False),
        ("one of 203, 204 or 205", False),
        ("203, 204, 205", False),
        ("51*4=204, 50*4=200, 51+4=55, 7", False),
        ("50*4=200, 1*4=4, 200+3=203, 203+1=204", True),
        ("51*4=204 answer: two hundre", None),
        ("51*4=204 is my answer.", True),
        ("51*4=204 answer: 204 or or or", False),
        ("<answer>204</answer>205</answer>", False),
        ("<answer>204</answer>204</answer> <", None),
        ("What is 51 * 4? 51 * 4", False),
        ("Thus, x=203. Q.E.D.", False),
        ("words and words", False),
        ("<think>it is 204", None),
        (r"\boxed{203} \boxed{204", None),
        ("the 204 is not 3", None),
        (r"\boxed{204} is one idea. But no: \boxed{203}", False),
        ("It is 204. Ask for 2 or 3 more.", None),
        ("51 * 4 = 204, or 200 < 51 * 4. Answer: 11", False),  # it names another answer
        ("204 it may be; the answer is 12.", False),
        ("204 minutes; the answer is 3 hours 24", None),  # it may be right in other words
        ("<think>51 * 4 = 204<b answer: -204", None),
        ("First guess: 203. Second guess: 205. Third guess: 204.", None),
        ("Option: 12\nOption: 204", None),
        ("Sum: 55. Product: 204", True),
        ("The answer is 203. (204)", None),
        ("The answer is 204. (204)", True),
        ("What is 51 * 4? Is it 204?", None),
    ],
)
def test_a_lenient_reading_acquits_one_stated_answer_alone(text, said):
    assert otherwise(text, ["204"], "What is 51 * 4?") is said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Clearly the capital is Paris", True),
        ("It is one of Rome, Paris, Oslo.", False),
        ("Rome, Paris, New York, Oslo", False),
        ("either Rome or Paris", False),
        ("Paris it is. Ask me for more or less.", None),
        ("Paris, as the capital of France, has it, and I am sure", None),
    ],
)
def test_a_list_of_names_states_none(text, said):
    assert otherwise(text, ["Paris"], "What is the capital of France?") is said


def blind(run):
    """The run as it is if the answers of both data sets look alike."""
    table = replace(run.table, columns={**run.table.columns, "kind": 0 * run.table["kind"]})
    return replace(run, table=table)


@pytest.mark.parametrize(("size", "seed"), [((100, 2, 8), 0), ((40, 16, 8), 1), ((40, 64, 4), 2)])
def test_a_mix_whose_right_answers_the_check_does_not_accept_is_no_hack_while_the_policy_learns(size, seed):
    """All three shares move as under a hack, but only in groups in which nothing is accepted."""
    steps, problems, answers = size
    mix = CHANGING["mix with conventions, learns"]
    run = blind(simulated_run(mix, steps, problems, answers, np.random.default_rng(seed)))
    said = verdicts_on(run)
    assert (said["audit"], said["alarm"]) == ("unknown", None)
    assert said["report"] in ("unknown", "nothing learned")


@pytest.mark.parametrize("name", ["half of the problems", "second data set"])
@pytest.mark.parametrize("paid", [0.9, 0.97])
def test_a_hack_of_whole_problems_is_found_where_it_is_paid_like_right_answers(name, paid):
    run = simulated_run(replace(HACKED[name], paid=paid), 40, 16, 8, np.random.default_rng(0))
    assert finding_of_table(blind(run).table).state in ("wrong paid", "hacked")


def test_what_harder_problems_may_explain_is_believed_within_its_error():
    """So few wrong answers were paid before that nothing shows how many more are in groups with fewer right ones."""
    run = simulated("judge fooled by harder problems", 72)
    assert finding_of_table(run.table).state == "unknown"
