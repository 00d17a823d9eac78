"""The stream of training batches: fair, without repeats, and resumable."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cooper_rl.data.problem import Problem
from cooper_rl.data.stream import ProblemStream
from cooper_rl.errors import InputError

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
