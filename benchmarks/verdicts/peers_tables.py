"""Runs the rule over the tables of cases in the tests of other graders: reference, completion, expected verdict.

    python benchmarks/verdicts/peers_tables.py CHECKOUT

Reads the parametrised cases of every test file of a checkout (of Math-Verify, lighteval or the like) without importing
it, and prints how many cases have the same verdict here, and each that has another one.
"""

import argparse
import ast
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cooper_verify.rules.kinds.maths import RuleVerifier

_GOLD, _PREDICTION, _EXPECTED = {"gold"}, {"pred", "prediction"}, {"expected", "result"}


class Case(NamedTuple):
    test: str
    """The function that has the case."""
    reference: str
    completion: str
    is_right: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    cases = [case for path in sorted(options.checkout.rglob("test*.py")) for case in cases_in(path)]
    if not cases:
        parser.error(f"{options.checkout} has no tests with a reference, a prediction and an expected verdict")
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(case.reference, case.completion) for case in cases])
    counts = Counter((case.is_right, verdict) for case, verdict in zip(cases, verdicts, strict=True))
    print("| expected | `correct` | `unparsed` | `wrong` | `timeout` |\n|---|---|---|---|---|")
    for is_right, name in ((True, "right"), (False, "wrong")):
        found = [counts[is_right, verdict] for verdict in ("correct", "unparsed", "wrong", "timeout")]
        print(f"| {name} | " + " | ".join(map(str, found)) + " |")
    for case, verdict in zip(cases, verdicts, strict=True):
        if (verdict == "correct") != case.is_right:
            print(f"{case.test}: {'right' if case.is_right else 'wrong'}, here {verdict}: {case[1:3]}")


def cases_in(path: Path) -> Iterator[Case]:
    """The cases of a test file whose values are written out."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
                yield from _cases_of(function.name, decorator)


def _cases_of(test: str, decorator: ast.Call) -> Iterator[Case]:
    written = _literal(decorator.args[0])
    names = [name.strip() for name in written.split(",")] if isinstance(written, str) else []
    places = [next((i for i, name in enumerate(names) if name in kind), None) for kind in _KINDS]
    rows = decorator.args[1]
    if None in places or not isinstance(rows, ast.List):
        return
    for row in rows.elts:
        values = row.args if isinstance(row, ast.Call) else row.elts if isinstance(row, ast.Tuple) else []
        found = [_literal(values[place]) for place in places if place is not None and place < len(values)]
        if len(found) == len(_KINDS) and isinstance(found[0], str) and isinstance(found[1], str):
            yield Case(test, found[0], found[1], bool(found[2]))


_KINDS = (_GOLD, _PREDICTION, _EXPECTED)


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
