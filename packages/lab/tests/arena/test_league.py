"""The league: every design of the lab has a row, and a row counts as long as it is of today's version."""

import json
from importlib import import_module
from pkgutil import iter_modules

from benchmarks.arena import league
from shelf.ensemble import COMBINATIONS

from cooper_lab import designs as package
from cooper_lab.arena.designs import built_in_designs
from cooper_rl.engines import ENGINES
from cooper_rl.engines.losses.reward_model import PAIR_LOSSES
from cooper_rl.policy.advantages import ADVANTAGES
from cooper_rl.reward.base import REWARDS, SHAPINGS
from cooper_rl.reward.pairs.base import PAIRS
from repository import ROOT

NEED_A_SERVER = {"pairwise_judge", "pointwise_judge", "rubric_judge"}
"""Files of the shelf that the arena cannot run."""


def kinds_in(value) -> set[str]:
    """All values of `kind` in a design's settings."""
    if isinstance(value, dict):
        own = {value["kind"]} if isinstance(value.get("kind"), str) else set()
        return own.union(*map(kinds_in, value.values()))
    return set().union(*map(kinds_in, value)) if isinstance(value, list) else set()


def test_every_design_of_the_lab_is_in_the_league():
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    of_the_lab = {
        kind
        for kinds in (REWARDS, SHAPINGS, ADVANTAGES, PAIRS, PAIR_LOSSES, ENGINES)
        for kind, record in kinds.records.items()
        if record.__module__.startswith(package.__name__)
    }
    assert len(of_the_lab) > 15
    run = set().union(*(kinds_in(design.settings) for design in built_in_designs().values()))
    assert of_the_lab - run == set()


def test_the_examples_that_have_no_place_are_all_in_the_league_but_for_those_that_need_a_server():
    shelf = (ROOT / "examples/shelf").glob("*.py")
    kinds = set().union(*(kinds_in(design.settings) for design in league.designs().values()))
    run = {kind[6:].partition(":")[0] for kind in kinds if kind.startswith("shelf.")}
    assert {path.stem for path in shelf} - run == NEED_A_SERVER
    assert COMBINATIONS.records.keys() <= kinds


def row(design, planting, gold, fingerprint="now", hole="length@heard_35"):
    block = {"design": design, "hole": hole, "planting": planting, "seed": 0, "fingerprint": fingerprint}
    return block | {"gold_end": gold, "drawdown": 0.0, "cpu_s": 40.0}


def test_a_row_of_another_version_leaves_and_a_new_one_takes_the_place_of_a_saved_one():
    now = [cell for cell in league.cells() if cell.design in ("rule", "static") and cell.planting < 2]
    assert len(now) == 2 * 2 * len(league.HOLES)
    of = {(cell.design, cell.hole, cell.planting): cell.fingerprint for cell in now}
    new = row("rule", 0, 0.8, of["rule", "length@heard_35", 0])
    kept = row("static", 1, 0.1, of["static", "length@heard_35", 1])
    saved = [new | {"gold_end": 0.7}, kept, row("static", 0, 0.2, "of yesterday"), row("gone", 0, 0.5)]
    assert league.of_today([new, *saved], now) == [new, kept]


def test_what_has_no_row_is_in_a_table_of_its_own_and_the_others_are_ordered_by_how_far_they_end_above_the_rule():
    rows = [row(name, planting, gold) for name, gold in (("rule", 0.7), ("good", 0.8)) for planting in (0, 1)]
    older = [row("rule", 0, 0.9), row("late", 0, 0.85), row("never", 0, 0.3)]
    lines = league.table(rows, older, {name: f"about {name}" for name in ("rule", "unknown", "never", "late", "good")})
    ran, missing = lines[2:4], lines[9:]
    assert [line.split("|")[1].strip() for line in ran] == ["`good`", "`rule`"]
    assert ran[0].startswith("| `good` | about good | 2 | 0.80 | not on record | 0 of 2 | 0.100 (0.100 to 0.100)")
    assert lines[4:7] == ["", "Not run in these cells:", ""]
    assert missing == [
        "| `late` | about late | −0.050 | 0 of 1 runs |",
        "| `never` | about never | −0.600 | 0 of 1 runs |",
        "| `unknown` | about unknown | – | – |",
    ]


def test_what_has_run_in_some_of_the_holes_stands_apart_in_the_cells_that_all_of_it_has():
    everywhere = [row(name, 0, gold, hole=hole) for hole in ("a", "b") for name, gold in (("rule", 0.7), ("good", 0.8))]
    some = [row("late", 0, 0.9, hole="a"), row("late", 1, 0.1, hole="a"), row("low", 0, 0.3, hole="a")]
    about = {name: f"about {name}" for name in ("rule", "good", "late", "low")}
    lines = league.table([*everywhere, *some], [], about)
    ran, apart = lines[2:4], lines[9:]
    assert [line.split("|")[1].strip() for line in ran] == ["`good`", "`rule`"]
    assert lines[5] == "Run in `a` alone so far, beside `rule` there:"
    assert apart == [
        "| `late` | about late | 1 | 0.90 | not on record | 0 of 1 | 0.200 | – | 40 | – | – |",
        "| `rule` | about rule | 1 | 0.70 | not on record | 0 of 1 | – | – | 40 | – | – |",
        "| `low` | about low | 1 | 0.30 | not on record | 0 of 1 | −0.400 | – | 40 | – | – |",
    ]


def test_the_table_on_the_page_is_that_of_the_saved_results():
    page = (ROOT / "docs/what-stops-hacking.md").read_text(encoding="utf-8")
    saved, older = (json.loads(path.read_text(encoding="utf-8")) for path in (league.SAVED, league.OLDER))
    about = {name: design.about for name, design in league.designs().items()}
    assert page.split(league.BEGIN)[1].split(league.END)[0] == "\n".join(league.table(saved, older, about))
