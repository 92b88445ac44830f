"""A small language of expressions over names: Python's own syntax, of which only harmless parts are known.

    "ranks <= 4 * cores"          "algorithm != 'cannon' or square(ranks)"
    "seconds.input.max / seconds.total.max"          "all(column('speedup', 4) > 1.5)"

Where an operand is a list, arithmetic and comparison go element by element.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import statistics
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tilewise.base.errors import UsageError

Scope = Callable[[str], Any]
Function = Callable[..., Any]
Evaluate = Callable[[Scope], Any]


class Missing(Exception):  # noqa: N818 - a figure that is not there is no error
    """Something that an expression asks for was not measured; the text says what, and why if known."""


class IncomputableError(UsageError):
    """An operation that makes no sense for its values; `reason` says why, without the expression."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def square(value: int) -> bool:
    """Tell whether `value` is the square of a whole number."""
    return value >= 0 and math.isqrt(int(value)) ** 2 == value


def _all(values: Any) -> bool:
    return bool(_some(values)) and all(values)


def _some(values: Any) -> list[Any]:
    some = list(values) if isinstance(values, (list, tuple)) else [values]
    if not some:
        raise Missing("there is no figure")
    return some


def _extreme(pick: Callable[[list[Any]], Any]) -> Function:
    return lambda *values: pick(_some(values[0] if len(values) == 1 else list(values)))


FUNCTIONS: dict[str, Function] = {
    "abs": abs,
    "all": _all,
    "any": lambda values: any(_some(values)),
    "ceil": math.ceil,
    "count": len,
    "floor": math.floor,
    "log2": math.log2,
    "log10": math.log10,
    "max": _extreme(max),
    "mean": lambda values: statistics.fmean(_some(values)),
    "median": lambda values: statistics.median(_some(values)),
    "min": _extreme(min),
    "round": round,
    "sqrt": math.sqrt,
    "square": square,
    "str": str,
    "sum": lambda values: sum(_some(values)),
}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_MEMBER = (_COMPARE[ast.In], _COMPARE[ast.NotIn])
_MOST_BITS = 4096  # of a whole number: more digits than anything here can mean
_LONG_BITS = 256  # of one that is worth writing out
_FAILURES = (TypeError, ValueError, OverflowError, IndexError, KeyError, RecursionError)


class Called(NamedTuple):
    """A call as it is written: its arguments, None for those that are no constants."""

    function: str
    positions: list[Any]
    named: dict[str, Any]


class Expression:
    """One expression, parsed; `where` names its place in every message. `names` and `calls` are all in it.

    Raises UsageError for what is no expression, and for syntax that this language lacks.
    """

    def __init__(self, text: str, where: str, functions: Mapping[str, Function] | None = None) -> None:
        self.text = text
        self.where = where
        self._functions = {**FUNCTIONS, **(functions or {})}
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{where} expects an expression such as 'ranks <= cores', not {text!r}")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UsageError(f"{where}: {text!r} is not an expression") from None
        self.names: set[str] = set()
        try:
            self._evaluate = self._compiled(self._tree)
        except RecursionError:
            raise UsageError(f"{where}: the expression is too deep") from None
        called = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        self.calls = [_called(node) for node in called]

    def value(self, scope: Scope) -> Any:
        """Evaluate the expression; `scope` gives the value of a dotted name.

        Raises UsageError where an operation makes no sense for its values; Missing passes through.
        """
        try:
            return self._evaluate(scope)
        except ZeroDivisionError:
            raise Missing("it divides by zero") from None
        except _FAILURES as error:
            raise self._failed(error) from None

    def number(self, scope: Scope) -> float:
        """Evaluate it to one finite number; UsageError where it is none."""
        value = self.value(scope)
        try:
            if isinstance(value, str):
                raise TypeError("a text is not a number")
            if not math.isfinite(number := float(value)):
                raise ValueError(f"{number} is not a finite number")
        except _FAILURES as error:
            raise self._failed(error) from None
        return number

    def holds(self, scope: Scope) -> bool:
        """Evaluate it to a yes or no; UsageError where it is a list."""
        value = self.value(scope)
        if isinstance(value, list):
            raise UsageError(f"{self.where}: {self.text!r} gives a list; put all(…) or any(…) around it")
        return bool(value)

    def thresholds(self, name: str, scope: Scope) -> list[float]:
        """List what `name` is compared with, sorted; `abs(name - 5) < 1` has 4 and 6."""
        found: list[float] = []
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                for one, two in [*itertools.pairwise(sides), *itertools.pairwise(sides[::-1])]:
                    if isinstance(one, ast.Name) and one.id == name:
                        found.append(float(self._compiled(two)(scope)))
                    elif (centre := _distance_from(one, name)) is not None:
                        middle, far = (float(self._compiled(each)(scope)) for each in (centre, two))
                        found += [middle - far, middle + far]
        return sorted(set(found))

    def _failed(self, error: Exception) -> UsageError:
        said = f"{self.where}: {self.text!r} cannot be computed: {error}"
        return IncomputableError(said, reason=str(error))

    def _compiled(self, node: ast.expr) -> Evaluate:
        """Return what evaluates `node`; UsageError for syntax that this language lacks."""
        match node:
            case ast.Constant(value=int() | float() | str() as value):
                return lambda scope: value
            case ast.Name() | ast.Attribute():
                name = self._dotted(node)
                self.names.add(name)
                return lambda scope: scope(name)
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                parts = list(map(self._compiled, elts))
                return lambda scope: [part(scope) for part in parts]
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                one, other, operation = self._compiled(left), self._compiled(right), _BINARY[type(op)]
                return lambda scope: _elementwise(operation, one(scope), other(scope))
            case ast.UnaryOp(ast.Not(), operand):
                negated = self._compiled(operand)
                return lambda scope: not negated(scope)
            case ast.UnaryOp(ast.USub() | ast.UAdd() as op, operand):
                signed, sign = self._compiled(operand), -1 if isinstance(op, ast.USub) else 1
                return lambda scope: _elementwise(operator.mul, sign, signed(scope))
            case ast.BoolOp(op, values):
                choices, last = list(map(self._compiled, values)), isinstance(op, ast.Or)
                return lambda scope: _first(choices, last, scope)
            case ast.Compare(left, ops, comparators) if all(type(op) in _COMPARE for op in ops):
                sides = list(map(self._compiled, (left, *comparators)))
                comparisons = [_COMPARE[type(op)] for op in ops]
                return lambda scope: _compared(sides, comparisons, scope)
            case ast.IfExp(test, body, orelse):
                asked, yes, no = map(self._compiled, (test, body, orelse))
                return lambda scope: yes(scope) if asked(scope) else no(scope)
            case ast.Subscript(inner, index):
                whole, place = self._compiled(inner), self._compiled(index)
                return lambda scope: whole(scope)[place(scope)]
            case ast.Call(ast.Name(id=name), args, keywords):
                return self._call(name, args, keywords)
        raise self._unknown(node)

    def _call(self, name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Evaluate:
        if name not in self._functions:
            known = ", ".join(sorted(self._functions))
            raise UsageError(f"{self.where}: there is no function {name!r}; expected one of {known}")
        for keyword in keywords:
            if keyword.arg is None:
                raise self._unknown(keyword)
        function = self._functions[name]
        positions = list(map(self._compiled, args))
        named = {str(keyword.arg): self._compiled(keyword.value) for keyword in keywords}
        return lambda scope: function(
            *[each(scope) for each in positions], **{key: each(scope) for key, each in named.items()}
        )

    def _unknown(self, node: ast.AST) -> UsageError:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        return UsageError(f"{self.where}: {part!r} is more than an expression may have")

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            if node.id.startswith("_"):
                raise self._unknown(node)
            return node.id
        if isinstance(node, ast.Attribute) and not node.attr.startswith("_"):
            return f"{self._dotted(node.value)}.{node.attr}"
        raise self._unknown(node)


def _first(choices: list[Evaluate], wanted: bool, scope: Scope) -> Any:
    """Return the first choice that is as `wanted`, else the last one, as `or` and `and` do."""
    last: Any = None
    for each in choices:
        last = each(scope)
        if bool(last) == wanted:
            break
    return last


def _compared(sides: list[Evaluate], comparisons: list[Callable[[Any, Any], Any]], scope: Scope) -> Any:
    """Return whether each side compares with the next one, up to the first that does not."""
    left, truth = sides[0](scope), True
    for comparison, side in zip(comparisons, sides[1:], strict=True):
        right = side(scope)
        truth = comparison(left, right) if comparison in _MEMBER else _elementwise(comparison, left, right)
        if truth is False:
            break
        left = right
    return truth


def _distance_from(node: ast.expr, name: str) -> ast.expr | None:
    """Return what is taken from `name` in `abs(name - …)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs"):
        return None
    (inner,) = node.args if len(node.args) == 1 else (None,)
    if not (
        isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) and isinstance(inner.left, ast.Name)
    ):
        return None
    return inner.right if inner.left.id == name else None


def _elementwise(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    lists = [each for each in (left, right) if isinstance(each, list)]
    if not lists:
        if isinstance(left, str) or isinstance(right, str):
            if operation in (operator.eq, operator.ne):
                return operation(left, right)
            if isinstance(left, str) != isinstance(right, str) or operation in _BINARY.values():
                raise TypeError("a text has no value to compute with")
        if (
            operation is operator.pow
            and isinstance(left, int)
            and left.bit_length() * abs(right) > _MOST_BITS
        ):
            raise ValueError(f"a power of {right}")
        return operation(left, right)
    if len({len(each) for each in lists}) > 1:
        raise ValueError(f"lists of {len(left)} and {len(right)} do not go together")
    lefts = left if isinstance(left, list) else [left] * len(right)
    rights = right if isinstance(right, list) else [right] * len(left)
    return [_elementwise(operation, one, two) for one, two in zip(lefts, rights, strict=True)]


def _called(node: ast.Call) -> Called:
    named = {str(each.arg): _constant(each.value) for each in node.keywords}
    return Called(ast.unparse(node.func), [_constant(each) for each in node.args], named)


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def short(value: Any) -> str:
    """A value as it is said in a sentence."""
    if isinstance(value, int) and value.bit_length() > _LONG_BITS:
        return f"a whole number of {value.bit_length()} bits"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def scope_of(values: Mapping[str, Any], where: str) -> Scope:
    """The values of a mapping under their names; UsageError for others."""

    def look(name: str) -> Any:
        if name not in values:
            raise UsageError(f"{where} asks for {name!r}; expected one of {', '.join(sorted(values))}")
        return values[name]

    return look
