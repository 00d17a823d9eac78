import json

from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.update import PairBuffer


def pair(number: int) -> Pair:
    return Pair(str(number), "q", "a", "right", "wrong", "rollout", "assistant", positive_logit_before=0.5)


def ids(pairs) -> list[int]:
    return [int(pair.problem_id) for pair in pairs]


def test_the_buffer_is_a_uniform_sample_of_the_whole_run():
    kept = [0] * 40
    for seed in range(500):
        buffer = PairBuffer(seed, 10)
        buffer.add([pair(i) for i in range(40)])
        for i in ids(buffer.sample(99)):
            kept[i] += 1
    assert sum(kept) == 500 * 10
    assert all(90 < count < 160 for count in kept)  # binomial(500, 1/4): mean 125, standard deviation 9.7


def test_a_sample_has_no_duplicates_and_at_most_all_pairs():
    buffer = PairBuffer(capacity=5)
    assert buffer.sample(3) == []
    buffer.add([pair(i) for i in range(4)])
    assert sorted(ids(buffer.sample(9))) == [0, 1, 2, 3]


def test_a_restored_buffer_continues_as_if_never_interrupted():
    first, second = PairBuffer(3, 8), PairBuffer(99, 8)
    first.add([pair(i) for i in range(20)])
    second.restore(json.loads(json.dumps(first.state())))
    for buffer in (first, second):
        buffer.add([pair(i) for i in range(20, 40)])
    assert first.sample(5) == second.sample(5)
