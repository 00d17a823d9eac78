"""`cooper verify` on files: it keeps the order, adds seconds, compares with gold and continues after interruptions."""

import json
from contextlib import closing

import pytest
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_base.errors import InputError
from cooper_verify import Grader, Opinion, open_grader
from cooper_verify.grader import NO_ANSWER
from cooper_verify.rules.rule import FunctionRule
from cooper_verify.verdict_file import grade_file, verify_file

ROWS = [
    {"answer": "12", "completion": "The answer is 12.", "gold_correct": True, "id": "a"},
    {"answer": "x+1", "completion": r"\boxed{1+x}", "gold_correct": True},
    {"reference_answer": "12", "completion": "The answer is 13.", "gold_correct": False},
    {"answer": "12", "completion": "The answer is unclear.", "gold_correct": True},
    {"answer": "12", "completion": "12", "question": "6 + 6?", "gold_correct": False},
]


class Half(Grader):
    """Accepts what ends in the reference, and reads the completion alone. Its server fails on what `fails`."""

    reads_reference = False

    def __init__(self, fails: str = "") -> None:
        self.fails, self.asked = fails, []

    def settings(self):
        return {"kind": "half"}

    def grade(self, answers, /):
        self.asked += [text for _, text in answers]
        return [self._opinion(problem, text) for problem, text in answers]

    def _opinion(self, problem, text):
        if text == self.fails:
            return Opinion("unparsed", None, NO_ANSWER)
        right = text.endswith("right")
        return Opinion("correct" if right else "wrong", 0.75 if right else 0.25)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_come_back_in_order_with_verdict_and_seconds(data, tmp_path, workers):
    out = tmp_path / "out.jsonl"
    counts = verify_file(data, out, workers)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["verdict"] for row in rows] == ["correct", "correct", "wrong", "unparsed", "correct"]
    assert all(0 <= row["seconds"] < 60 for row in rows)
    kept = [{key: value for key, value in row.items() if key not in ("verdict", "seconds")} for row in rows]
    assert kept == ROWS
    assert counts.verdicts == {"correct": 3, "wrong": 1, "unparsed": 1}
    assert (counts.precision, counts.recall, counts.with_gold) == (pytest.approx(2 / 3), pytest.approx(2 / 3), 5)


def test_an_interrupted_file_is_continued(data, tmp_path):
    out = tmp_path / "out.jsonl"
    whole = verify_file(data, out)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:2]) + lines[2][:9])
    seen = []
    assert verify_file(data, out, progress=lambda done, total: seen.append((done, total))) == whole
    assert [json.loads(line)["verdict"] for line in out.read_text().splitlines()] == [
        json.loads(line)["verdict"] for line in lines
    ]
    assert seen == [(5, 5)]


def test_a_file_without_a_row_that_can_be_read_and_a_foreign_output_are_refused(data, tmp_path):
    out = tmp_path / "out.jsonl"
    data.write_text('{"answer": ["12"], "completion": "12"}\n')
    with pytest.raises(InputError, match="field 'answer': expected text"):
        verify_file(data, out)
    assert not out.exists()
    data.write_text('{"answer": "12", "completion": "12"}\n')
    out.write_text('{"something": "else"}\n')
    with pytest.raises(InputError, match=r"out.jsonl:1: is not a verdict on this row of the input"):
        verify_file(data, out)
    assert out.read_text() == '{"something": "else"}\n'
    for text in ("my notes", '{"answer": "12", "completion": "12"}', '{"answer": "12", "com'):
        out.write_text(text)  # no line is whole
        with pytest.raises(InputError, match=r"out.jsonl:1: is not a verdict on this row of the input"):
            verify_file(data, out)
        assert out.read_text() == text
    with pytest.raises(InputError, match="is read by this command"):
        verify_file(data, data)


def seven_only(problem, completion_text):
    """A rule that judges one kind of problem."""
    return "silent" if problem.answer != "7" else "correct" if completion_text == "7" else "wrong"


def test_what_the_rule_is_silent_on_is_no_miss(tmp_path):
    data = tmp_path / "in.jsonl"
    said = [("7", "7", 1), ("7", "seven", 1), ("8", "8", 1), ("8", "9", 0)]
    rows = [{"answer": answer, "completion": text, "gold_correct": gold} for answer, text, gold in said]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = verify_file(data, tmp_path / "out.jsonl", rule=FunctionRule(kind=f"{__name__}:seven_only"))
    assert (counts.precision, counts.recall, counts.with_gold) == (1.0, 0.5, 2)
    assert counts.verdicts["silent"] == 2


def test_without_gold_there_is_no_precision(tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_text('{"answer": "12", "completion": "12"}\n')
    counts = verify_file(data, tmp_path / "out.jsonl")
    assert (counts.with_gold, counts.precision, counts.recall) == (0, None, None)


def test_odd_line_ends_and_earlier_verdicts_in_the_data_do_not_prevent_continuing(tmp_path):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"answer": "2", "completion": "answer: 2\u2028\x85"}, {"answer": "2", "completion": "2", "verdict": "mine"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert verify_file(data, out) == verify_file(data, out)
    assert len(out.read_text(encoding="utf-8").split("\n")) == 3


@pytest.mark.parametrize(
    "line",
    [b"[1]", b"7", b"\xff", b"{", b"[" * 100_000, b'{"answer": "12", "completion": "12", "verdict": ["correct"]}'],
)
def test_an_output_that_holds_something_else_is_named_and_left_alone(tmp_path, line):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_text('{"answer": "12", "completion": "12"}\n')
    out.write_bytes(line + b"\n")
    with pytest.raises(InputError, match=r"out\.jsonl"):
        verify_file(data, out)
    assert out.read_bytes() == line + b"\n"


@pytest.mark.parametrize("grader", ["rule:maths", "rule:exact", Half])
@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{", "not valid JSON"),
        ("[1]", "expected an object with fields"),
        ('{"answer": "12"}', "field 'completion' is missing"),
        ('{"answer": ["12"], "completion": "12"}', "field 'answer'"),
        ('{"reference_answer": ["12"], "completion": "12"}', "field 'reference_answer'"),
        ('{"answer": "12", "completion": "12", "gold_correct": "perhaps"}', "field 'gold_correct' is 'perhaps'"),
        ('{"answer": "12", "completion": [{"role": "robot"}]}', "field 'completion'"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_others_are_judged(data, tmp_path, row, fault, grader):
    out = tmp_path / "out.jsonl"
    data.write_text(f"{data.read_text()}{row}\n")
    opened = grader() if isinstance(grader, type) else open_grader(grader)
    with closing(opened):
        counts = grade_file(data, out, opened)
    (unread,) = counts.unread
    assert unread.startswith(f"{data}:{len(ROWS) + 1}: ")
    assert fault in unread
    assert len(out.read_text().splitlines()) == len(ROWS) == sum(counts.verdicts.values())


def test_the_command_judges_the_rows_that_can_be_read_and_says_by_its_exit_code_that_some_cannot(data, tmp_path):
    out = tmp_path / "out.jsonl"
    assert CliRunner().invoke(commands, ["verify", str(data), "--out", str(out)]).exit_code == 0
    whole, broken = out.read_text().splitlines(), tmp_path / "broken.jsonl"
    broken.write_text(f"no row\n{data.read_text()}")
    ended = CliRunner().invoke(commands, ["verify", str(broken), "--out", str(tmp_path / "more.jsonl")])
    assert isinstance(ended.exception, InputError)  # which ends the process with 2
    assert f"1 rows have no verdict (the other {len(ROWS)} have one):\n{broken}:1: " in str(ended.exception)
    assert len((tmp_path / "more.jsonl").read_text().splitlines()) == len(whole)
    data.write_text("no row\n")
    with pytest.raises(InputError, match="not valid JSON"):
        verify_file(data, tmp_path / "none.jsonl")


def test_a_row_that_json_cannot_hold_is_reported_before_any_verdict(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    data, out = tmp_path / "in.parquet", tmp_path / "out.jsonl"
    parquet.write_table(pyarrow.Table.from_pylist([{"answer": "1", "completion": "1", "raw": b"\x00"}]), data)
    with pytest.raises(InputError, match=r"in\.parquet:row 1: cannot be written as JSON"):
        verify_file(data, out)
    assert not out.exists()


def test_a_grader_writes_verdict_score_and_reason_and_needs_the_reference_only_if_it_reads_it(tmp_path):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"completion": "right", "label": 1}, {"completion": "right", "label": 0}, {"completion": "x", "score": 3}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = grade_file(data, out, Half())
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"completion": "right", "label": 1, "verdict": "correct", "score": 0.75, "why": None},
        {"completion": "right", "label": 0, "verdict": "correct", "score": 0.75, "why": None},
        {"completion": "x", "input/score": 3, "verdict": "wrong", "score": 0.25, "why": None},
    ]
    assert (counts.precision, counts.recall, counts.with_gold) == (0.5, 1.0, 2)
    with pytest.raises(InputError, match="field 'answer' is missing"):
        grade_file(data, tmp_path / "other.jsonl", open_grader("rule:exact"))


def test_the_same_call_asks_again_where_a_server_failed_and_another_grader_is_refused(data, tmp_path):
    out = tmp_path / "out.jsonl"
    failed = grade_file(data, out, Half(fails="The answer is 13."))
    assert failed.why == {NO_ANSWER: 1}
    assert json.loads(out.read_text().splitlines()[2])["score"] is None
    healed = Half()
    assert grade_file(data, out, healed).why == {}
    assert healed.asked == ["The answer is 13."]
    with pytest.raises(InputError, match="made with other settings"):
        grade_file(data, out, Unlike())
    (tmp_path / "other.jsonl").write_text("mine\n")
    with pytest.raises(InputError, match=r"other\.jsonl: holds what `cooper verify` did not write"):
        grade_file(data, tmp_path / "other.jsonl", Half())
    assert (tmp_path / "other.jsonl").read_text() == "mine\n"


class Unlike(Half):
    def settings(self):
        return {"kind": "unlike"}


class Careless(Grader):
    """Returns what no grader returns."""

    def __init__(self, returned) -> None:
        self.name, self._returned = "careless", returned

    def grade(self, answers, /):
        return self._returned


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ([Opinion("correct", 1.0)], "careless: grade returned 1 opinions on 5 answers; return one for each, in order"),
        ([1.0] * 5, "careless: grade returned .*; return a list of Opinion"),
        (None, "careless: grade returned None; return a list of Opinion"),
    ],
)
def test_a_class_that_returns_no_opinions_is_told_what_to_return(data, tmp_path, returned, words):
    with pytest.raises(InputError, match=words):
        grade_file(data, tmp_path / "out.jsonl", Careless(returned))


MINE = """
import os
from cooper_verify import Grader, Opinion
class Quarter(Grader):
    def grade(self, answers, /):
        print("noise")
        return [Opinion("wrong", 0.25) for _ in answers]
def ends(completion, reference):
    os._exit(0)
def raises(completion, reference):
    if "13" in completion:
        raise ValueError("unlucky")
    return 1.0
"""


def run(*arguments):
    return CliRunner().invoke(commands, ["verify", *map(str, arguments)])


def test_the_command_takes_a_rule_in_its_short_form_or_any_grader(data, tmp_path):
    short, long, own = (tmp_path / f"{name}.jsonl" for name in ("short", "long", "own"))
    assert run(data, "--out", short, "--rule", "exact").exit_code == 0
    assert run(data, "--out", long, "--grader", "rule:exact").exit_code == 0
    verdicts = [[json.loads(line)["verdict"] for line in path.read_text().splitlines()] for path in (short, long)]
    assert verdicts[0] == verdicts[1]
    assert "score" not in json.loads(long.read_text().splitlines()[0]), "the verdict of a rule is its score"
    (tmp_path / "mine.py").write_text(MINE)
    result = run(data, "--out", own, "--grader", f"{tmp_path / 'mine.py'}:Quarter")
    assert result.exit_code == 0, result.output
    assert {json.loads(line)["score"] for line in own.read_text().splitlines()} == {0.25}


def test_code_of_the_users_can_neither_end_the_command_nor_write_into_its_output(data, tmp_path, monkeypatch):
    monkeypatch.delenv("COOPER_STRICT", raising=False)
    (tmp_path / "mine.py").write_text(MINE)
    own, out = tmp_path / "mine.py", tmp_path / "out.jsonl"
    ended = run(data, "--out", out, "--grader", f"{own}:ends")
    assert "ended its process (exit code 0)" in str(ended.exception) + ended.output
    assert ended.exit_code != 0
    assert "noise" not in run(data, "--out", out, "--grader", f"{own}:Quarter").stdout
    raised = run(data, "--out", tmp_path / "raised.jsonl", "--grader", f"{own}:raises")
    assert raised.exit_code == 0, raised.output
    rows = [json.loads(line) for line in (tmp_path / "raised.jsonl").read_text().splitlines()]
    assert [row["why"] for row in rows if "13" in row["completion"]] == ["fault"]
    assert {row["score"] for row in rows if "13" not in row["completion"]} == {1.0}
    assert "raised ValueError: unlucky (mine.py:12)" in (tmp_path / "raised.faults.jsonl").read_text()
    (tmp_path / "always.py").write_text("def raises(problem, completion): return 1 / 0\n")
    always = run(data, "--out", tmp_path / "always.jsonl", "--grader", f"{tmp_path}/always.py:raises")
    assert isinstance(always.exception, InputError)  # and no traceback, which would have no frame of the user's
    assert "raised ZeroDivisionError: division by zero (always.py:1). So it does on every" in str(always.exception)


def test_a_score_without_a_verdict_is_told_from_no_opinion(data, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def length(problem, completion): return 7.0 if 'is' in completion.text else None\n"
    )
    said = run(data, "--out", tmp_path / "out.jsonl", "--grader", f"{tmp_path / 'mine.py'}:length")
    assert said.exit_code == 0, said.output
    assert "silent, with a score that says neither right nor wrong: 3; with no opinion: 2" in said.output


def test_everyday_rows_end_no_file(tmp_path):
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    chat = '[{"role": "user", "content": "6 + 6?"}, {"role": "assistant", "content": "The answer is 12."}]'
    completions = ['"12 \\ud83d"', chat, "null", '"\\u0000 12"', f'"{"(" * 5000}"', "12"]
    lines = [f'{{"answer": "12", "reward": NaN, "completion": {completion}}}\n' for completion in completions]
    rows.write_text("".join(lines))
    counts = verify_file(rows, out)
    verdicts = [json.loads(line)["verdict"] for line in out.read_text().splitlines()]
    assert (verdicts[1], verdicts[5], counts.faults) == ("correct", "correct", 0)
    assert "wrong" not in verdicts
    assert verify_file(rows, out) == counts  # and what is there is known again
    rows.write_text('{"answer": "12", "completion": [{"role": "assistant", "tool_calls": [{}]}]}\n')
    with pytest.raises(InputError, match=r"rows.jsonl:1: field 'completion': .*the tool call"):
        verify_file(rows, tmp_path / "other.jsonl")


def test_rows_without_a_reference_are_told(tmp_path, caplog):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"answer": null, "completion": "5"}\n{"answer": "5", "completion": "5"}\n')
    assert run(rows, "--out", tmp_path / "out.jsonl").exit_code == 0
    assert "1 of 2 rows have an empty reference, which no answer equals; the first is " in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rule", "exact", "--grader", "rule"], "--rule exact is --grader rule:exact"),
        (["--grader", "nonsense"], "nonsense: no such grader; write rule, rule:KIND"),
        (["--grader", "HALF", "rule.relative=1"], "rule.relative=1: no setting of the grader"),
        (["--grader", "rule:exact", "judge.max_tokens=1"], "it has rule.… and rules.…"),
    ],
)
def test_options_that_do_not_fit_name_the_remedy(data, tmp_path, options, words):
    options = [f"{__name__}:Half" if word == "HALF" else word for word in options]
    result = run(data, "--out", tmp_path / "out.jsonl", *options)
    assert isinstance(result.exception, InputError) or result.exit_code == 2
    assert words in str(result.exception) + result.output


def test_without_a_name_the_verdicts_are_in_the_working_directory(data, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    said = run(data)
    assert said.exit_code == 0
    assert "verdicts: in.verdicts.jsonl" in said.output
    assert len((elsewhere / "in.verdicts.jsonl").read_text().splitlines()) == len(ROWS)
