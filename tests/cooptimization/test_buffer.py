import json

import pytest

from cooper_rl.errors import InputError
from cooper_rl.stage2.pairs import Pair
from cooper_rl.stage2.update import PairBuffer


def pair(number: int) -> Pair:
    return Pair(str(number), "q", "a", "right", "wrong", "rollout", "assistant", positive_logit_before=0.5)


def ids(pairs) -> list[int]:
    return [int(pair.problem_id) for pair in pairs]


def test_the_buffer_is_a_uniform_sample_of_the_whole_run():
    kept = [0] * 40
    for seed in range(500):
        buffer = PairBuffer(10, seed)
        buffer.add([pair(i) for i in range(40)])
        for i in ids(buffer.sample(99)):
            kept[i] += 1
    assert sum(kept) == 500 * 10
    assert all(90 < count < 160 for count in kept)  # binomial(500, 1/4): mean 125, standard deviation 9.7


def test_a_sample_has_no_duplicates_and_at_most_all_pairs():
    buffer = PairBuffer(5)
    assert buffer.sample(3) == []
    buffer.add([pair(i) for i in range(4)])
    assert sorted(ids(buffer.sample(9))) == [0, 1, 2, 3]


def test_a_restored_buffer_continues_as_if_never_interrupted():
    first, second = PairBuffer(8, seed=3), PairBuffer(8, seed=99)
    first.add([pair(i) for i in range(20)])
    second.restore(json.loads(json.dumps(first.state())))
    for buffer in (first, second):
        buffer.add([pair(i) for i in range(20, 40)])
    assert first.sample(5) == second.sample(5)


def test_a_checkpoint_larger_than_the_capacity_is_refused():
    buffer = PairBuffer(8)
    buffer.add([pair(i) for i in range(8)])
    with pytest.raises(InputError, match="capacity"):
        PairBuffer(4).restore(buffer.state())
