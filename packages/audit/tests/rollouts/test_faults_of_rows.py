"""A row on which the check raises is unparsed, and the audit of all other rows stands."""

import json

from courses import steps_of, write

from cooper_audit.rollouts import audit
from cooper_verify.faults import FAULTS_FILE
from planted import RAISES, reading_raises


def test_one_bad_row_costs_an_audit_that_row(tmp_path, monkeypatch):
    dump, bad = write(tmp_path / "dump", "healthy"), steps_of("healthy")[0][0]["text"]
    first = dump / "1.jsonl"
    lines = first.read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if json.loads(line)["output"] == bad)
    lines[place] = json.dumps(json.loads(lines[place]) | {"output": RAISES})
    first.write_text("".join(f"{line}\n" for line in lines))
    with reading_raises(tmp_path, monkeypatch):
        found = audit([dump], tmp_path / "audit")
    assert (found.finding.state, len(found.steps)) == ("healthy", 15) or found.finding.state == "unknown"
    written = (tmp_path / "audit" / "rollouts" / "000001.jsonl").read_text().splitlines()
    said = [one["verdict"] for line in written for one in json.loads(line)["completions"]]
    assert said.count("unparsed") == 1
    assert {*said} == {"correct", "wrong", "unparsed"}
    [fault] = (tmp_path / "audit" / FAULTS_FILE).read_text().splitlines()
    assert RAISES in json.loads(fault)["texts"]
