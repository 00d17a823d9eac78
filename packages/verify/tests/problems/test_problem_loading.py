"""Loading problems: the real files, which rows are left out, and which mistakes are refused."""

import json
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import pytest
from pydantic import ValidationError

from cooper_base.data.text import boxed
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems, read_problems
from cooper_verify.rules.kinds.maths import MathsRule, RuleVerifier
from cooper_verify.rules.rule import ProblemAndText, Rule
from cooper_verify.rules.verifier import Verifier
from repository import SHARED

DATA = SHARED / "data" / "problems"


class Plain(Rule):
    def __init__(self, accepts: Callable[[str], bool]) -> None:
        self._accepts = accepts

    def verify_problems(self, asked: Sequence[ProblemAndText], /) -> list[Verdict]:
        return ["correct" if self._accepts(text) else "wrong" for _, text in asked]

    def faults(self, asked: Sequence[ProblemAndText], /) -> list[str | None]:
        return [None if self._accepts(answer) else "does not verify against itself" for _, answer in asked]


accept = Plain(lambda text: True)
reject_words = Plain(lambda text: any(map(str.isdigit, text)))


def save(tmp_path: Path, rows: list[dict]) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def numbered(count: int) -> list[dict]:
    return [{"question": f"{i} + 1 = ?", "answer": i + 1} for i in range(count)]


@pytest.mark.parametrize(
    ("name", "format", "rows", "duplicates", "last_answer"),
    [
        ("gsm8k_train.jsonl", "gsm8k", 7473, 0, "50"),
        ("gsm8k_test.jsonl", "gsm8k", 1319, 0, "14"),
        ("svamp.json", "svamp", 1000, 0, "11"),
        ("asdiv.jsonl", "asdiv", 2215, 1, "40"),
        ("mawps.jsonl", "mawps", 2065, 84, "2"),
        ("math_test.jsonl", "math", 5000, 0, r"\begin{pmatrix} 1 \\ -2 \\ -1 \end{pmatrix}"),
        ("math500.jsonl", "math500", 500, 0, r"106^\circ"),
        ("olympiadbench_en_text.jsonl", "olympiadbench", 675, 0, "11"),
        ("math_odyssey.jsonl", "math_odyssey", 387, 0, "Yes"),
    ],
)
def test_the_real_files_are_read_whole(name: str, format: str, rows: int, duplicates: int, last_answer: str):
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not on this machine")
    loaded = read_problems(ProblemsConfig.model_validate({"source": str(DATA / name), "format": format}))
    assert (loaded.rows, len(loaded.duplicates), len(loaded.bad_rows)) == (rows, duplicates, 0)
    assert len(loaded.problems) == rows - duplicates
    assert loaded.problems[-1].answer == last_answer
    assert not any("noindent" in p.answer or p.answer.endswith("\\") for p in loaded.problems)


def test_explicit_fields_read_a_real_file_and_list_its_bad_rows():
    path = DATA / "math_train_answers.json"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    loaded = read_problems(ProblemsConfig(source=str(path), question="problem", answer="answer"))
    assert loaded.rows == 7474
    assert str(loaded.bad_rows[0]) == f"{path}:5318: field 'answer' is empty"


def test_question_fields_are_joined_and_ids_come_from_a_field(tmp_path: Path):
    source = save(tmp_path, [{"n": "x1", "body": "A has 2", "ask": "How many?", "out": 2, "how": "Count: 2"}])
    config = ProblemsConfig(source=source, question="body+ask", answer="out", solution="how", id="n")
    (problem,) = read_problems(config).problems
    assert (problem.id, problem.question, problem.answer) == ("x1", "A has 2. How many?", "2")
    assert problem.solution == "Count: 2"


def test_skip_and_limit_split_a_shuffled_file_into_disjoint_parts(tmp_path: Path):
    source = save(tmp_path, numbered(30) + numbered(30))
    train = read_problems(ProblemsConfig(source=source, shuffle_seed=3, limit=20)).problems
    held_out = read_problems(ProblemsConfig(source=source, shuffle_seed=3, skip=20)).problems
    assert (len(train), len(held_out)) == (20, 10)
    assert len({p.question for p in train + held_out}) == 30
    assert [p.id for p in train] != sorted((p.id for p in train), key=lambda name: int(name.split("-")[1]))


def test_a_limit_without_shuffling_keeps_the_first_rows(tmp_path: Path):
    loaded = read_problems(ProblemsConfig(source=save(tmp_path, numbered(9)), skip=2, limit=3))
    assert [p.answer for p in loaded.problems] == ["3", "4", "5"]


def test_unverifiable_answers_are_listed_and_skipped(tmp_path: Path):
    rows = [*numbered(19), {"question": "Who?", "answer": "Mrs. Hilt"}]
    report = load_problems(ProblemsConfig(source=save(tmp_path, rows)), reject_words)
    assert len(report.problems) == 19
    assert "rows.jsonl:20: answer 'Mrs. Hilt' does not verify against itself" in str(report.bad_rows[0])
    assert report.summary() == "19 problems from 20 rows (1 bad, 0 duplicates)"


def test_a_question_with_two_answers_is_reported_with_both_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    rows = [*numbered(30), {"question": "3 + 1 = ?", "answer": "4.0"}, {"question": "3 + 1 = ?", "answer": 5}]
    source = save(tmp_path, rows)
    with RuleVerifier() as verifier:
        report = load_problems(ProblemsConfig(source=source), verifier)
    told = f"{source}:32: same question as {source}:4, but the answer is '5' here and '4' there"
    assert [str(row) for row in report.bad_rows] == [told]
    assert told in caplog.text
    assert report.summary() == "30 problems from 32 rows (1 bad, 1 duplicates)"


def test_tab_separated_files_are_read_and_files_of_unknown_type_are_not_looked_up_on_the_hub(tmp_path: Path):
    (tmp_path / "rows.tsv").write_text('question\tanswer\n"1 + 1, in\nall?"\t2\n')
    (problem,) = read_problems(ProblemsConfig(source=str(tmp_path / "rows.tsv"))).problems
    assert (problem.question, problem.answer) == ("1 + 1, in\nall?", "2")
    (tmp_path / "rows.txt").write_text("question\tanswer\n")
    with pytest.raises(InputError, match=r"rows\.txt: unknown suffix '\.txt'; .*\.tsv"):
        read_problems(ProblemsConfig(source=str(tmp_path / "rows.txt")))


def test_answers_that_are_text_options_or_formulas_are_kept(tmp_path: Path):
    words = [{"question": f"Where is {word}?", "answer": word} for word in ("Tokyo", "2024-01-05")]
    rows = [*numbered(20), *words, {"question": "Which?", "answer": "B"}, {"question": "Which x?", "answer": "2x+1"}]
    config = ProblemsConfig(source=save(tmp_path, rows))
    with RuleVerifier() as verifier:
        report = load_problems(config, verifier)
    assert (len(report.problems), report.bad_rows) == (24, [])


def test_an_answer_between_dollars_is_boxed_without_them():
    answers = ["$2$", "\\$5", "$1$, $2$"]
    assert [boxed(answer) for answer in answers] == ["\\boxed{2}", "\\boxed{\\$5}", "\\boxed{$1$, $2$}"]


@pytest.mark.parametrize(("limit", "refused"), [(0.1, False), (0.09, True), (1, False), (0, True)])
def test_the_run_refuses_beyond_the_limit(tmp_path: Path, limit: float, refused: bool):
    rows = [*numbered(9), {"question": "Who?", "answer": ""}]
    config = ProblemsConfig(source=save(tmp_path, rows), max_bad_rows=limit)
    if refused:
        with pytest.raises(InputError, match=r"1 bad rows of 10(.|\n)*rows\.jsonl:10: field 'answer' is empty"):
            load_problems(config, accept)
    else:
        assert len(load_problems(config, accept).problems) == 9


@pytest.mark.parametrize(("limit", "refused"), [(4, False), (3, True)])
def test_lines_that_cannot_be_read_and_missing_fields_are_bad_rows_and_all_are_listed(
    tmp_path: Path, limit: int, refused: bool, caplog
):
    bad = ['{"question": "1+1"', '["no", "object"]', '{"question": "Who?"}', '{"question": "Who?", "answer": [1]}']
    rows = [json.dumps(row) for row in numbered(9)]
    (tmp_path / "rows.jsonl").write_text("\n".join([rows[0], *bad, *rows[1:]]))
    config = ProblemsConfig(source=str(tmp_path / "rows.jsonl"), max_bad_rows=limit)
    if refused:
        with pytest.raises(InputError) as error:
            load_problems(config, accept)
        told = str(error.value)
    else:
        assert len(load_problems(config, accept).problems) == 9
        told = caplog.text
    reasons = [
        "2: not valid JSON",
        "3: expected an object",
        "4: field 'answer' is missing",
        "5: field 'answer': expected",
    ]
    assert [reason for reason in reasons if f"rows.jsonl:{reason}" in told] == reasons


def test_a_row_of_a_table_with_too_many_cells_is_a_bad_row(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("question,answer\n1+1,2\n1+2,3,4\n1+3,4\n")
    config = ProblemsConfig(source=str(tmp_path / "rows.csv"), max_bad_rows=1)
    assert [problem.answer for problem in load_problems(config, accept).problems] == ["2", "4"]


def test_a_field_that_no_row_has_is_reported_without_reading_on(tmp_path: Path):
    source = save(tmp_path, numbered(100))
    with pytest.raises(
        InputError,
        match=r"none of the first 20 rows(.|\n)*field 'x' is missing(.|\n)*19 more rows, to \S*rows\.jsonl:20",
    ):
        load_problems(ProblemsConfig(source=source, question="x", max_bad_rows=50), accept)


def test_a_small_limit_is_not_refused_for_bad_rows_elsewhere_in_the_file(tmp_path: Path):
    rows = [*numbered(100), *({"question": f"Who {i}?", "answer": ""} for i in range(5))]
    config = ProblemsConfig(source=save(tmp_path, rows), shuffle_seed=0, limit=10)
    assert len(load_problems(config, accept).problems) == 10


@pytest.mark.parametrize("split", [None, "train", "test"])
def test_a_folder_of_save_to_disk_is_a_source(tmp_path: Path, split: str | None):
    datasets = pytest.importorskip("datasets", reason="needs the extra data")
    rows = datasets.Dataset.from_list([{"question": "1+1", "answer": "2"}, {"question": "1+2", "answer": "3"}])
    saved = rows if split is None else datasets.DatasetDict({split: rows})
    saved.save_to_disk(tmp_path / "saved")
    config = ProblemsConfig(source=str(tmp_path / "saved"), split=split)
    assert [problem.answer for problem in read_problems(config).problems] == ["2", "3"]
    if split is not None:
        with pytest.raises(InputError, match=rf"problems.split: .*saved has no split 'other'; it has {split}$"):
            read_problems(ProblemsConfig(source=str(tmp_path / "saved"), split="other"))
    else:
        with pytest.raises(InputError, match=r"problems.split: .*saved is one table without splits"):
            read_problems(ProblemsConfig(source=str(tmp_path / "saved"), split="test"))


@pytest.mark.parametrize("source", ["./nowhere", "../nowhere", "/nowhere/at/all", "~/nowhere"])
def test_a_path_is_not_looked_up_on_the_hub(source: str):
    pytest.importorskip("datasets")
    with pytest.raises(InputError, match=r"nowhere.*: no such file or folder; check its name and folder"):
        read_problems(ProblemsConfig(source=source))


def test_a_field_that_could_name_problems_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    (tmp_path / "p.jsonl").write_text('{"id": "a", "question": "1+1", "answer": "2"}\n')
    assert read_problems(ProblemsConfig(source=str(tmp_path / "p.jsonl"))).problems[0].id == "p-1"
    assert "p.jsonl:1: the field `id` names no problem; problems.id: id makes it their name" in caplog.text
    caplog.clear()
    named = ProblemsConfig(source=str(tmp_path / "p.jsonl"), id="id")
    assert (read_problems(named).problems[0].id, caplog.text) == ("a", "")


def test_an_empty_data_set_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="problems are empty"):
        load_problems(ProblemsConfig(source=save(tmp_path, [])), accept)


def test_a_skip_beyond_the_end_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="no problem is left of 4 rows"):
        load_problems(ProblemsConfig(source=save(tmp_path, numbered(4)), skip=4), accept)


def test_an_id_used_twice_is_refused(tmp_path: Path):
    source = save(tmp_path, [{"k": 1, **row} for row in numbered(2)])
    with pytest.raises(InputError, match=r"rows\.jsonl:2: id '1' is used twice"):
        read_problems(ProblemsConfig(source=source, id="k"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "a.jsonl", "format": "gsm8k", "answer": "x"}, "remove answer"),
        ({"source": "a.jsonl", "split": "test"}, "a file has no split"),
        ({"source": "arithmetic", "question": "x"}, "arithmetic world has no fields"),
        ({"source": "a.jsonl", "max_bad_rows": 1.5}, "between 0 and 1"),
        ({"source": "a.jsonl", "prompt": {"template": "Solve it."}}, "must contain {question}"),
        ({"source": "a.jsonl", "format": "gsm9k"}, "gsm8k"),
        ({"source": "a.jsonl", "gold": "nothing"}, "gold"),
    ],
)
def test_contradictory_settings_are_refused(settings: dict, message: str):
    with pytest.raises(ValidationError) as fault:
        ProblemsConfig.model_validate(settings)
    assert message in str(fault.value)


def test_the_arithmetic_world_is_a_source():
    train = read_problems(ProblemsConfig(source="arithmetic", limit=20, seed=1)).problems
    test = read_problems(ProblemsConfig(source="arithmetic", limit=20, seed=1, split="test")).problems
    assert len(train) == len(test) == 20
    assert not {p.question for p in train} & {p.question for p in test}


def test_a_dataset_that_cannot_be_loaded_is_explained():
    pytest.importorskip("datasets")
    with pytest.raises(InputError, match=r"'nobody/nothing' \(subset None, split test\) is neither a known file type"):
        read_problems(ProblemsConfig(source="nobody/nothing", split="test"))


@pytest.mark.parametrize("name", ["data", "data.jsonl"])  # Spark writes folders with the suffix of a file
def test_a_folder_that_datasets_can_load_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / name).mkdir()
    (tmp_path / name / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in numbered(3)))
    problems = read_problems(ProblemsConfig(source=str(tmp_path / name))).problems
    assert [p.answer for p in problems] == ["1", "2", "3"]
    assert problems[2].location == f"{tmp_path}/{name}/train:row 3"


UNREAD = [
    r"x^2+1 \quad (x \ge 2)",
    r"\begin{cases} 1 & x>0 \\ 2\end{cases}",
    r"\min_{x\in S} x",
    r"x>1 \Rightarrow x>0",
    r"x=1 \implies y=2",
    r"1,2,\ldots,n-1",
    r"A \setminus B",
    r"A\subset B",
    r"3 \bmod n",
    r"2n+1 \text{ for } n \in \mathbb{Z}",
    r"\sum_{k=1}^n k",
]
READ = [
    "12",
    "3/4",
    "12 cm",
    "12 million",
    "10%",
    "B",
    "Tokyo",
    "10:30",
    "x+1",
    "x=3",
    "(1,2)",
    "[1,2)",
    "1, 2",
    r"\pi",
]
READ += [r"n \choose k", r"\min\{n,10\}", r"\infty", r"\{x \mid x>2\}", r"(-\infty, 2)\cup(3,\infty)", "f'(x)", "101_2"]
READ += [
    r"\begin{pmatrix}1\\2\end{pmatrix}",
    r"x \le 2",
    "3+4i",
    r"90^\circ",
    r"\lfloor x\rfloor",
    r"\emptyset",
    "5!",
    r"3 \pmod{7}",
]


def test_references_that_the_rule_cannot_read_are_listed(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    rows = [{"question": f"{answer}?", "answer": answer} for answer in [*READ, *UNREAD]]
    with Verifier(MathsRule(timeout_s=1.0)) as verifier:
        unread = verifier.unread(read_problems(ProblemsConfig(source=save(tmp_path, rows))).problems)
        assert [problem.answer for problem in unread] == UNREAD
        loaded = load_problems(ProblemsConfig(source=save(tmp_path, rows[len(READ) - 1 : len(READ) + 2])), verifier)
    assert len(loaded.problems) == 3  # they are used, for the same text is still accepted
    assert "problems: the rule cannot read the reference answers of 2 of 3 problems" in caplog.text
    assert f"rows.jsonl:2: problem rows-2, answer {UNREAD[0]!r}" in caplog.text
    assert "compare them as text (rule: exact" in caplog.text


def test_references_that_are_read_in_two_ways_are_listed(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    answers = ["7", "(1,3)", "1 < x < 3", "(x, y) = (1, 3)", "(1,2,3)", "pi/4", "[2,5]"]
    rows = [{"question": f"{answer}?", "answer": answer} for answer in answers]
    with Verifier(MathsRule()) as verifier:
        load_problems(ProblemsConfig(source=save(tmp_path, rows)), verifier)
    assert "reads the reference answers of 2 of 7 problems in two ways" in caplog.text
    assert "rows.jsonl:2: answer '(1,3)'" in caplog.text


def test_with_unverified_silent_the_rule_is_silent_on_references_that_it_cannot_read(tmp_path: Path):
    rows = [{"question": f"{answer}?", "answer": answer} for answer in ("7", UNREAD[0])]
    with Verifier(MathsRule()) as verifier:
        loaded = load_problems(ProblemsConfig(source=save(tmp_path, rows), unverified="silent"), verifier)
        assert [verifier.judges(problem) for problem in loaded.problems] == [True, False]


@pytest.mark.slow  # thousands of formulas
def test_the_references_of_real_data_can_be_read():
    if not DATA.exists():
        pytest.skip(f"{DATA} is not here")
    sets = {"math": "math_test.jsonl", "olympiadbench": "olympiadbench_en_text.jsonl", "asdiv": "asdiv.jsonl"}
    data = [{"source": str(DATA / name), "format": form} for form, name in sets.items()]
    problems = [*chain(*(read_problems(ProblemsConfig.model_validate(one)).problems for one in data))]
    with Verifier(MathsRule()) as verifier:
        unread = [problem.answer for problem in verifier.unread(problems)]
    assert (len(problems), unread) == (7889, ["t(0,4]"])


@pytest.mark.parametrize("mark", ["N/A", "nan", "None", "null", "<NA>", "#N/A"])
def test_references_that_stand_for_a_missing_value_are_listed(tmp_path: Path, mark: str, caplog):
    rows = [*numbered(2), {"question": "What is sodium?", "answer": "Na"}, {"question": "And this?", "answer": mark}]
    assert len(load_problems(ProblemsConfig(source=save(tmp_path, rows)), accept).problems) == 4
    assert "the reference answers of 1 of 4 problems are what tables write for a missing value" in caplog.text
    assert f"rows.jsonl:4: answer {mark!r}" in caplog.text


@pytest.mark.parametrize(
    ("row", "remedy"),
    [
        ({"question": [{"role": "user", "content": "1+1?"}], "answer": 2}, "a chat is read with messages: question"),
        ({"question": "1+1?", "answer": ["2"]}, "name one of its items, such as answer.0"),
        ({"question": ["1+1?"], "answer": 2}, "name one of its items, such as question.0"),
        ({"question": "1+1?", "answer": {"value": 2}}, "choose another field"),
        ({"question": "1+1?", "answer": "1+1=2\n#### 2"}, "problems.format: gsm8k reads what is behind ####"),
    ],
)
def test_a_row_in_another_form_is_told_how_that_form_is_read(tmp_path: Path, row: dict, remedy: str):
    def is_number(text: str) -> bool:
        return text.isdigit()

    with pytest.raises(InputError) as caught:
        load_problems(ProblemsConfig(source=save(tmp_path, [row])), Plain(is_number))
    assert remedy in str(caught.value)
