"""Columns hold ragged rows. Rollouts reach another process unchanged. Ragged groups stay ragged."""

import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
import torch

from cooper_base.data.problem import Problem
from cooper_rl.policy.rollout_bytes import from_bytes, to_bytes
from cooper_rl.records import Column, Ragged, Rollouts, offsets_of

ROWS = [[3, 1, 4], [], [1, 5], [9]]


def rollouts(sizes=(2, 0, 1)) -> Rollouts:
    completions = sum(sizes)
    tokens = Column.of([list(range(i, 2 * i + 3)) for i in range(completions)])
    return Rollouts(
        problems=[Problem(f"p{p}", f"Wie viel ist {p} + ½?", str(p), metadata={"level": p}) for p in range(len(sizes))],
        prompts=Column.of([[7] * (p + 1) for p in range(len(sizes))]),
        group_sizes=np.array(sizes),
        token_ids=tokens,
        logprobs=-np.arange(len(tokens.values), dtype=np.float32) / 7,
        stopped=np.array([i % 2 == 0 for i in range(completions)]),
        texts=[f"Antwort {i}: ½\n" for i in range(completions)],
        versions=np.full(completions, 3),
    )


def test_a_column_returns_its_rows():
    column = Column.of(ROWS)
    assert [row.tolist() for row in column] == ROWS
    assert column.lengths.tolist() == [3, 0, 2, 1]
    assert column[-1].tolist() == [9]
    assert Column.of([np.array(row) for row in ROWS], np.int64).values.tolist() == column.values.tolist()
    with pytest.raises(IndexError):
        column[4]


def test_taken_rows_are_a_column_in_the_given_order():
    taken = Column.of(ROWS).take([3, 0, 1, 3])
    assert [row.tolist() for row in taken] == [[9], [3, 1, 4], [], [9]]
    assert len(Column.of([]).take([])) == 0


def test_groups_are_ragged_and_keep_their_texts():
    found = rollouts().groups()
    assert [len(group.answers) for group in found] == [2, 0, 1]
    assert [answer.stopped for group in found for answer in group.answers] == [True, False, True]
    assert found[2].answers[0].text == "Antwort 2: ½\n"
    assert [group.id for group in found] == ["p0", "p1", "p2"]


def test_a_sequence_is_the_prompt_and_then_the_completion():
    assert [row.tolist() for row in rollouts().sequences([2, 0])] == [[7, 7, 7, 2, 3, 4, 5, 6], [7, 0, 1, 2]]


def test_columns_that_do_not_fit_together_are_refused():
    fields = dict(vars(rollouts()))
    for name, value in {"texts": ["a"], "logprobs": np.zeros(2), "group_sizes": np.array([1, 1, 2])}.items():
        with pytest.raises(ValueError, match="rollouts have"):
            Rollouts(**(fields | {name: value}))


def _answer(connection) -> None:
    received = from_bytes(connection.recv_bytes())
    connection.send_bytes(to_bytes(received))


def test_rollouts_reach_another_process_and_come_back_unchanged():
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_answer, args=(theirs,))
    process.start()
    sent = rollouts()
    ours.send_bytes(to_bytes(sent))
    back = from_bytes(ours.recv_bytes())
    process.join()
    assert back.groups() == sent.groups()
    for name in ("logprobs", "stopped", "versions", "group_sizes"):
        np.testing.assert_array_equal(getattr(back, name), getattr(sent, name))
    for name in ("prompts", "token_ids"):
        assert [row.tolist() for row in getattr(back, name)] == [row.tolist() for row in getattr(sent, name)]


def test_ragged_numbers_are_never_reshaped_into_other_groups():
    numbers = Ragged.of([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0], [7.0, 8.0, 9.0]])
    assert numbers.rows() == [[1, 2, 3, 4], [5, 6], [7, 8, 9]]
    with pytest.raises(ValueError, match="9,"):
        Ragged(torch.zeros(9), (3, 3))


def test_offsets_start_at_zero_and_end_with_the_total():
    assert offsets_of([2, 0, 3]).tolist() == [0, 2, 2, 5]


def test_the_rewards_client_and_the_checks_of_an_input_start_without_torch():
    program = (
        "import sys, cooper_rl.records, cooper_rl.service.client, cooper_rl.run.inputs; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
