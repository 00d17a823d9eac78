"""A run is what one writer wrote, with steps that it says. Evaluations are no run."""

import pytest
from courses import steps_of, write
from dumps import verifiers, verl_v1, write_lines

from cooper_audit.rollouts import Options, audit
from cooper_audit.rollouts.formats import chosen_format
from cooper_audit.rollouts.reading import Source, read_steps
from cooper_base.errors import InputError
from cooper_verify.rules.kinds.exact import ExactRule

EXACT = Options(ExactRule())


def read(*paths, given=()):
    source = Source()
    return source, [(step, len(rows)) for step, rows in read_steps(paths, source, chosen_format(None, given))]


def evaluations(folder, count):
    """What verifiers writes of evaluations: a folder for each, with results and metadata."""
    for number, rows in enumerate(steps_of("hacked", steps=count), start=1):
        inner = folder / "evals" / "sums--model" / f"{number:x}c{number:x}"
        verifiers(inner, 1, rows)
        (inner / "step_1" / "results.jsonl").rename(inner / "results.jsonl")
        (inner / "step_1").rmdir()
        write_lines(inner / "metadata.json", [{"env_id": "sums", "model": "model"}])
    return folder


def test_evaluations_are_rows_without_steps_and_no_verdict_is_given_on_them(tmp_path):
    folder = evaluations(tmp_path / "evaluations", 12)
    result = audit([folder], tmp_path / "audit", EXACT)
    assert (result.finding.state, result.finding.onset, result.source.has_steps) == ("unknown", None, False)
    assert "Name the place of the step with --map step=…" in result.finding.sentence
    assert result.checked > 0, "what the rule says of them is still counted"


def test_each_file_is_a_step_if_the_user_says_so(tmp_path):
    folder = evaluations(tmp_path / "evaluations", 3)
    source, steps = read(folder, given=["step=$file"])
    assert (steps, source.has_steps) == ([(1, 48), (2, 48), (3, 48)], True)


def test_files_without_steps_are_left_out_beside_files_with_them(tmp_path):
    for step, rows in enumerate(steps_of("healthy", steps=2), start=1):
        verifiers(tmp_path, step, rows)
    (tmp_path / "final").mkdir()
    (tmp_path / "step_2" / "results.jsonl").rename(tmp_path / "final" / "results.jsonl")
    source, steps = read(tmp_path)
    assert (steps, source.left_out) == ([(1, 48)], {"a file whose rows say no step": 1})


@pytest.mark.parametrize("names", [("rollout", "validation"), ("exp_1", "exp_2"), ("1", "2"), ("a/dump", "b/dump")])
def test_what_two_writers_wrote_is_refused_and_each_is_read(tmp_path, names):
    for name in names:
        write(tmp_path / "run" / name, "healthy", seed=names.index(name), steps=2)
    with pytest.raises(InputError, match=r"run: holds what several writers wrote, in .* name one of these folders"):
        read(tmp_path / "run")
    with pytest.raises(InputError, match="both begin with step 1, so they are two runs"):
        read(*(tmp_path / "run" / name for name in names))
    assert all(read(tmp_path / "run" / name)[1] == [(1, 48), (2, 48)] for name in names)


@pytest.mark.parametrize("form", ["verl-v1", "ms-swift", "prime-rl", "nemo-rl"])
def test_folders_of_a_resumed_run_are_one_run_in_any_order(tmp_path, form):
    from dumps import WRITERS

    first, second = steps_of("healthy", steps=3), steps_of("hacked", steps=3)
    for step in (1, 2, 3):
        WRITERS[form](tmp_path / "before", step, first[step - 1])
    for step in (3, 4, 5):
        WRITERS[form](tmp_path / "after", step, second[step - 3])
    source, steps = read(tmp_path / "after", tmp_path / "before")
    assert steps == [(step, 48) for step in range(1, 6)]
    assert source.left_out == {"a row of a step that a resumed run repeated": 48}
    paths = [tmp_path / "after", tmp_path / "before"]
    third = dict(read_steps(paths, Source()))[3]
    assert sorted(row.answer.text for row in third) == sorted(row["text"] for row in second[0])


def test_numbered_folders_of_a_resumed_run_are_one_run_where_no_step_repeats(tmp_path):
    for step, rows in enumerate(steps_of("healthy", steps=4), start=1):
        verl_v1(tmp_path / f"exp_{1 + step // 3}", step, rows)
    assert read(tmp_path)[1] == [(step, 48) for step in range(1, 5)]
