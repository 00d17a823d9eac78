"""The stream of training batches: fair, without repeats, and resumable."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_rl.data.stream import ProblemStream
from cooper_verify.problems.config import CurriculumConfig

sizes = st.integers(1, 12).flatmap(lambda count: st.tuples(st.just(count), st.integers(1, count)))


def stream(count: int, batch_size: int, seed: int = 0) -> ProblemStream:
    return ProblemStream([Problem(str(i), f"{i}?", str(i)) for i in range(count)], batch_size, seed)


def draw(source: ProblemStream, batches: int) -> list[list[str]]:
    return [[problem.id for problem in source.next_batch()] for _ in range(batches)]


@given(size=sizes, batches=st.integers(1, 25), seed=st.integers(0, 5))
def test_batches_have_no_repeats_and_epochs_hold_each_problem_once(size: tuple[int, int], batches: int, seed: int):
    count, batch_size = size
    drawn = draw(stream(count, batch_size, seed), batches)
    assert all(len(set(batch)) == batch_size for batch in drawn)
    flat = [name for batch in drawn for name in batch]
    for epoch in range(len(flat) // count):
        assert len(set(flat[epoch * count : (epoch + 1) * count])) == count


@given(size=sizes, before=st.integers(0, 25), seed=st.integers(0, 5))
def test_a_restored_stream_continues_exactly(size: tuple[int, int], before: int, seed: int):
    running = stream(*size, seed)
    draw(running, before)
    state = json.loads(json.dumps(running.state()))
    resumed = stream(*size, seed)
    draw(resumed, 3)
    resumed.restore(state)
    assert draw(resumed, 12) == draw(running, 12)


def test_the_order_depends_on_seed_and_epoch():
    first, again, other = (draw(stream(20, 20, seed), 2) for seed in (1, 1, 2))
    assert first == again
    assert first[0] != first[1]
    assert first[0] != other[0]


def test_problems_come_equally_often():
    drawn = Counter(name for batch in draw(stream(7, 3), 7 * 10) for name in batch)
    assert set(drawn.values()) == {30}


@pytest.mark.parametrize("changed", [{"count": 11}, {"batch_size": 4}, {"seed": 9}])
def test_another_run_cannot_be_resumed(changed: dict):
    settings = {"count": 10, "batch_size": 3, "seed": 0}
    with pytest.raises(InputError, match="resume with the problems, problems_per_step and seed"):
        stream(**{**settings, **changed}).restore(stream(**settings).state())


@pytest.mark.parametrize("count", [0, 3])
def test_a_batch_larger_than_the_data_is_refused(count: int):
    with pytest.raises(InputError, match=f"problems_per_step: 4 .* drawn from {count} .*lower problems_per_step"):
        stream(count, 4)


def mixed(weights: dict[str, float] | None, batch_size: int = 8, curriculum: CurriculumConfig | None = None):
    sizes = {"": 20, "two": 9}
    problems = [Problem(f"{name}/{i}", "?", "!", set=name) for name, size in sizes.items() for i in range(size)]
    return ProblemStream(problems, batch_size, 0, weights, curriculum)


@pytest.mark.parametrize("weights", [{"": 3, "two": 1}, {"": 1, "two": 1}])
def test_each_set_gets_its_share_of_every_step(weights):
    drawn = draw(mixed(weights), 50)
    share = weights["two"] / sum(weights.values())
    for batch in drawn:
        assert len(set(batch)) == 8
        assert abs(sum(name.startswith("two") for name in batch) - 8 * share) <= 1
    flat = [name for batch in drawn for name in batch]
    assert sum(name.startswith("two") for name in flat) == len(flat) * share
    for name, size in {"": 20, "two": 9}.items():  # each set goes through its own epochs
        own = [one for one in flat if one.partition("/")[0] == name]
        assert max(Counter(own).values()) - min(Counter(own).values()) <= 1
        assert len(set(own[:size])) == size


def test_sets_without_weights_are_mixed_as_one():
    assert Counter(name for batch in draw(mixed(None), 29) for name in batch) == Counter(
        {**{f"/{i}": 8 for i in range(20)}, **{f"two/{i}": 8 for i in range(9)}}
    )


def test_a_set_too_small_for_its_weight_is_refused():
    with pytest.raises(InputError, match=r"two has 9 problems, but its weight asks for 10\.0 of the 20"):
        mixed({"": 1, "two": 1}, batch_size=20)


@given(asked=st.lists(st.lists(st.integers(0, 6), max_size=2), max_size=12), before=st.integers(0, 12))
@pytest.mark.parametrize("weights", [None, {"": 3, "two": 1}])
@pytest.mark.parametrize("rest", [None, 1])
def test_further_problems_of_a_step_are_new_and_a_restored_stream_continues(asked, before, weights, rest):
    def run(source: ProblemStream, steps: list[list[int]]) -> list[list[str]]:
        found = []
        for extra in steps:
            names = [problem.id for problem in source.next_batch()]
            for count in extra:
                names += [problem.id for problem in source.more(count)]
            assert len(set(names)) == len(names)
            source.tell({name: hash(name) % 5 / 4 for name in names}, {name: len(name) % 2 == 0 for name in names})
            found.append(names)
        return found

    curriculum = rest and CurriculumConfig(rest=rest)
    running, resumed = mixed(weights, curriculum=curriculum), mixed(weights, curriculum=curriculum)
    run(running, asked[:before])
    state = json.loads(json.dumps(running.state()))
    run(resumed, [[2], [], [5]])
    resumed.restore(state)
    assert run(resumed, [*asked[before:], [3], []]) == run(running, [*asked[before:], [3], []])


SHARES: dict[str, float] = {"": 3, "two": 1}


def resampled(source: ProblemStream, teaches, draws: int) -> tuple[list[Problem], list[Problem]]:
    """A step's batch and the problems whose groups the policy learns from, after at most so many further draws."""
    batch = drawn = source.next_batch()
    learned: list[Problem] = []
    for left in reversed(range(draws + 1)):
        taught = {problem.id: teaches(problem) for problem in drawn}
        source.tell(dict.fromkeys(taught, 0.5), taught)
        learned += [problem for problem in drawn if taught[problem.id]]
        drawn = source.more(len(batch) - len(learned)) if left else []
    return batch, learned


def share_of_two(problems: list[Problem]) -> float:
    return sum(one.set == "two" for one in problems) / len(problems)


@pytest.mark.parametrize("of", ["", "two"])
def test_the_shares_are_of_what_is_learned_from_and_not_of_what_is_drawn(of):
    """Every second group of one set teaches nothing and is replaced."""
    source, counts = mixed(SHARES), Counter[str]()

    def teaches(problem: Problem) -> bool:
        counts[problem.set] += 1
        return problem.set != of or counts[of] % 2 == 0

    steps = [resampled(source, teaches, draws=6) for _ in range(40)]
    found = share_of_two([one for _, learned in steps for one in learned])
    assert found == pytest.approx(1 / 4, abs=0.03)
    assert counts[of] > 1.8 * sum(one.set == of for batch, _ in steps for one in batch)


def test_a_set_that_cannot_deliver_does_not_flood_later_steps():
    """No group teaches for ten steps, and the small set has too few problems to replace its own."""
    source = mixed(SHARES)
    for _ in range(10):
        resampled(source, lambda _: False, draws=3)
    assert [share_of_two(source.next_batch()) for _ in range(10)] == [1 / 4] * 10


def test_the_others_take_the_place_of_a_set_without_further_problems():
    source = mixed({"": 1, "two": 1}, batch_size=16)
    batch, learned = resampled(source, lambda one: one.set != "two", draws=3)
    assert share_of_two(batch) == 1 / 2
    assert len(learned) > 8
    assert share_of_two(learned) == 0


def test_an_epoch_begins_with_what_is_easy_and_leaves_out_what_teaches_nothing():
    source = ProblemStream([Problem(str(i), "?", "!") for i in range(6)], 3, 0, None, CurriculumConfig(rest=1))
    first = draw(source, 2)
    rates = {str(i): i / 5 for i in range(6)}
    source.tell(rates, {str(i): i != 5 for i in range(6)})
    assert sorted(first[0] + first[1]) == sorted(rates)
    assert draw(source, 1) == [["4", "3", "2"]]
    assert draw(source, 1)[0][:2] == ["1", "0"]  # 5 rests for an epoch, and then comes first
    source.tell(rates, {})
    assert draw(source, 1)[0][0] in ("5", "4")


def test_a_pass_rate_from_the_data_orders_the_first_epoch():
    problems = [Problem(str(i), "?", "!", pass_rate=i / 3) for i in range(4)]
    assert draw(ProblemStream(problems, 4, 0, None, CurriculumConfig()), 1) == [["3", "2", "1", "0"]]
