"""The alarm on what a trainer logs, by the signatures of the methods with which trainers log a step."""

import pytest

from cooper_audit import HackingAlarm, InputError
from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.log_alarm import watch_logs

STEPS = [(t, {"reward": 0.5 + 0.03 * t, "exact": 0.6 - 0.03 * t}) for t in range(1, 16)]


class Kept:
    """A logger that keeps its rows."""

    def __init__(self):
        self.rows = []


class OfVerl(Kept):
    def log(self, data, step, backend=None):
        self.rows.append((step, data))


class OfSkyRL(Kept):
    def log(self, data, step, commit=False):
        assert commit
        self.rows.append((step, data))


class OfNeMoRL(Kept):
    def log_metrics(self, metrics, step, prefix="", step_metric=None, step_finished=False):
        self.rows.append((step, metrics))


class OfOpenRLHF(Kept):
    def log_train(self, global_step, logs_dict):
        self.rows.append((global_step, logs_dict))


CALLS = {
    "verl": (OfVerl, "log", lambda logger, step, row: logger.log(data=row, step=step)),
    "skyrl": (OfSkyRL, "log", lambda logger, step, row: logger.log(row, step=step, commit=True)),
    "nemo-rl": (OfNeMoRL, "log_metrics", lambda logger, step, row: logger.log_metrics(row, step, prefix="train")),
    "openrlhf": (OfOpenRLHF, "log_train", lambda logger, step, row: logger.log_train(step, row)),
}


@pytest.mark.parametrize("trainer", CALLS)
def test_three_lines_watch_what_a_trainer_logs(trainer, monkeypatch, caplog):
    owner, method, call = CALLS[trainer]
    monkeypatch.setattr(owner, method, getattr(owner, method))  # the class is as before after the test
    watch_logs(owner, method, reward="reward", accuracy="exact")
    logger, plain = owner(), HackingAlarm()
    for step, row in STEPS:
        call(logger, step, row)
        call(logger, step, {"time/update": 1.0})  # a row of something else stays as it is
    wanted = [len(plain.observe(t, {"reward/mean": r["reward"], "rule/accuracy": r["exact"]})) for t, r in STEPS]
    assert [row.pop(HACKING) for step, row in logger.rows if "reward" in row] == wanted
    assert max(wanted) > 0
    assert [row for _, row in logger.rows] == [each for _, row in STEPS for each in (row, {"time/update": 1.0})]
    assert HACKING not in STEPS[0][1]
    (said,) = [record.message for record in caplog.records if "signs of reward hacking" in record.message]
    assert said.startswith(f"step {next(step for (step, _), signs in zip(STEPS, wanted, strict=True) if signs)}: ")


def test_a_row_without_the_accuracy_counts_for_nothing():
    alarm = watch_logs(Kept2 := type("Kept2", (OfVerl,), {}), "log", reward="reward", accuracy="exact")
    logger = Kept2()
    logger.log({"reward": 1.0, "exact": None}, 1)
    logger.log({"reward": 1.0, "exact": "many"}, 2)
    assert logger.rows == [(1, {"reward": 1.0, "exact": None}), (2, {"reward": 1.0, "exact": "many"})]
    assert alarm.signs == []


def test_a_method_that_logs_no_step_is_refused():
    with pytest.raises(
        InputError, match=r"log\(args, rows\): no metrics \(data, metrics, logs, logs_dict\) with a step"
    ):
        watch_logs(type("Odd", (), {"log": staticmethod(lambda args, rows: None)}), "log", "reward", "exact")
