"""Boolean combinations of methods: `rule or rm`."""

import ast
from collections.abc import Mapping, Sequence

from cooper_rl.errors import InputError
from cooper_rl.verifyrm.bench.methods import Opinion

VERDICTS = ("correct", "wrong", "unparsed", "timeout", "yes", "no", "unreadable")


class Combination:
    """A boolean expression over methods, such as `rule or rm`, `rule and not judge`, `(rule or rm) and judge`.

    The name of a method is true if the method accepts. `<method>_<verdict>`, such as `rule_wrong`, `rule_unparsed` or
    `rule_timeout`, is true if the method gives that verdict: `rule or (rule_unparsed and rm)`. Raises InputError for
    anything else.
    """

    def __init__(self, expression: str, methods: Sequence[str]) -> None:
        self.expression = expression
        self._methods = list(methods)
        try:
            self._tree = ast.parse(expression.strip(), mode="eval").body
        except SyntaxError as error:
            raise InputError(f"combination {expression!r}: not a boolean expression, such as 'rule or rm'") from error
        self._check(self._tree)

    def accepts(self, opinions: Mapping[str, Opinion]) -> bool:
        """The value of the expression, given the opinion of every method on one completion."""
        return self._value(self._tree, opinions)

    def _check(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._check(value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._check(node.operand)
        elif not isinstance(node, ast.Name):
            raise InputError(f"combination {self.expression!r}: only names, and, or, not and brackets are allowed")
        elif self._method_of(node.id) is None:
            known = ", ".join(self._methods)
            raise InputError(f"combination {self.expression!r}: unknown name {node.id!r}; the methods are {known}")

    def _method_of(self, name: str) -> str | None:
        """The method that a name refers to, or None."""
        if name in self._methods:
            return name
        method, _, verdict = name.rpartition("_")
        return method if method in self._methods and verdict in VERDICTS else None

    def _value(self, node: ast.expr, opinions: Mapping[str, Opinion]) -> bool:
        if isinstance(node, ast.BoolOp):
            values = (self._value(value, opinions) for value in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            return not self._value(node.operand, opinions)
        assert isinstance(node, ast.Name)
        method = self._method_of(node.id)
        assert method is not None
        opinion = opinions[method]
        return opinion.accepts if node.id == method else opinion.verdict == node.id.rpartition("_")[2]
