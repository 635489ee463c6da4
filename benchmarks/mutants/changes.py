"""Small errors that can be put into any Python source."""

import ast
import dataclasses

SWAPS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
"""Operators, and what stands in their place."""

AXES = {"0": "1", "1": "0", "2": "1", "3": "2", "-1": "-2", "-2": "-1"}

KEPT_ARGUMENT = {
    "cast": 0,
    "stop_gradient": 0,
    "logical_and": 0,
    "logical_or": 0,
    "logical_not": 0,
    "maximum": 0,
    "minimum": 0,
    "clip": 0,
    "where": 1,
    "flip": 0,
    "guard": 0,
    "sorted": 0,
}
"""Functions that are left out, and which of their arguments stays."""


@dataclasses.dataclass(frozen=True)
class Change:
    """A replacement in a source text.

    Attributes:
        kind: Kind of the error.
        function: Name of the function or class around it.
        start: Index of the first character that is replaced.
        end: Index behind the last one.
        new: What stands there instead.
    """

    kind: str
    function: str
    start: int
    end: int
    new: str


def list_changes(text):
    """Lists the errors that can be put into a source, one place each.

    Signs, comparisons, integers, axes, flags, conditions, and calls that are
    left out: casts, masks, limits and checks.

    >>> [(c.kind, c.new) for c in list_changes("y = f(x, axis=1) + 2")]
    [('operator', '-'), ('axis', '0'), ('integer', '3')]
    """
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return finder.changes


class _Finder(ast.NodeVisitor):
    def __init__(self, text):
        self.changes = []
        self._text = text
        self._names = []
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def _span(self, node):
        return (
            self._index(node.lineno, node.col_offset),
            self._index(node.end_lineno, node.end_col_offset),
        )

    def _index(self, line, column):
        """Index of a character; columns of the syntax tree count bytes."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)

    def _add(self, kind, span, new):
        name = ".".join(self._names)
        self.changes.append(Change(kind, name, *span, new))

    def _swap(self, operator, left, right):
        if type(operator) not in SWAPS:
            return
        old, new = SWAPS[type(operator)]
        start, end = self._span(left)[1], self._span(right)[0]
        start = self._text.index(old, start, end)
        self._add("operator", (start, start + len(old)), new)

    def visit_ClassDef(self, node):
        self._names.append(node.name)
        for child in node.body:
            self.visit(child)
        self._names.pop()

    def visit_FunctionDef(self, node):
        self._names.append(node.name)
        for child in [*node.args.defaults, *node.args.kw_defaults, *node.body]:
            if child is not None:
                self.visit(child)
        self._names.pop()

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node):
        """Leaves messages as they are."""

    def visit_Raise(self, node):
        """Leaves messages as they are."""

    def visit_Expr(self, node):
        call = node.value
        if isinstance(call, ast.Call):
            name = ast.unparse(call.func).split(".")[-1].lstrip("_")
            if name.startswith(("check", "refuse", "require")):
                self._add("check", self._span(node), "pass")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if not isinstance(node.left, ast.Constant) or not isinstance(
            node.left.value, str
        ):
            self._swap(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            self._swap(node.ops[0], node.left, node.comparators[0])
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        start, _ = self._span(node)
        if isinstance(node.op, ast.Not):
            self._add("condition", (start, start + len("not ")), "")
        elif isinstance(node.op, ast.USub):
            self._add("operator", (start, start + 1), "")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        start, end = self._span(node)
        if not self._text[start:end].count("("):
            self._add("condition", (start, self._span(node.values[1])[0]), "")
        self.generic_visit(node)

    def visit_keyword(self, node):
        if node.arg == "axis" and ast.unparse(node.value) in AXES:
            new = AXES[ast.unparse(node.value)]
            self._add("axis", self._span(node.value), new)
        else:
            self.visit(node.value)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self._add("flag", self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add("integer", self._span(node), str(node.value + 1))

    def visit_Call(self, node):
        name = ast.unparse(node.func).split(".")[-1]
        index = KEPT_ARGUMENT.get(name)
        if index is not None and len(node.args) > index:
            start, end = self._span(node.args[index])
            self._add("call", self._span(node), self._text[start:end])
        self.generic_visit(node)
