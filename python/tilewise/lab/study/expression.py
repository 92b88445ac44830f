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
}
_MOST_BITS = 4096  # of a whole number: more digits than anything here can mean
_LONG_BITS = 256  # of one that is worth writing out
_FAILURES = (TypeError, ValueError, OverflowError, IndexError, KeyError)


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
        self.calls: list[Called] = []
        try:
            self._check(self._tree)
        except RecursionError:
            raise UsageError(f"{where}: the expression is too deep") from None

    def value(self, scope: Scope) -> Any:
        """Evaluate the expression; `scope` gives the value of a dotted name.

        Raises UsageError where an operation makes no sense for its values; Missing passes through.
        """
        try:
            return self._value(self._tree, scope)
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
                        found.append(float(self._value(two, scope)))
                    elif (centre := _distance_from(one, name)) is not None:
                        middle, far = float(self._value(centre, scope)), float(self._value(two, scope))
                        found += [middle - far, middle + far]
        return sorted(set(found))

    def _failed(self, error: Exception) -> UsageError:
        said = f"{self.where}: {self.text!r} cannot be computed: {error}"
        return IncomputableError(said, reason=str(error))

    def _check(self, node: ast.expr) -> None:
        if isinstance(node, (ast.Name, ast.Attribute)):
            self.names.add(self._dotted(node))
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, (int, float, str)):
                raise self._unknown(node)
        elif isinstance(node, (ast.List, ast.Tuple)):
            for each in node.elts:
                self._check(each)
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            self._check(node.left)
            self._check(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.UAdd)):
            self._check(node.operand)
        elif isinstance(node, ast.BoolOp):
            for each in node.values:
                self._check(each)
        elif isinstance(node, ast.Compare):
            for op in node.ops:
                if type(op) not in _COMPARE and not isinstance(op, (ast.In, ast.NotIn)):
                    raise self._unknown(node)
            for each in (node.left, *node.comparators):
                self._check(each)
        elif isinstance(node, ast.IfExp):
            for each in (node.test, node.body, node.orelse):
                self._check(each)
        elif isinstance(node, ast.Subscript):
            self._check(node.value)
            self._check(node.slice)
        elif isinstance(node, ast.Call):
            self._check_call(node)
        else:
            raise self._unknown(node)

    def _check_call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name):
            raise self._unknown(node)
        if node.func.id not in self._functions:
            known = ", ".join(sorted(self._functions))
            raise UsageError(f"{self.where}: there is no function {node.func.id!r}; expected one of {known}")
        for each in node.args:
            if isinstance(each, ast.Starred):
                raise self._unknown(each)
            self._check(each)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._unknown(node)
            self._check(keyword.value)
        named = {str(each.arg): _constant(each.value) for each in node.keywords}
        self.calls.append(Called(node.func.id, [_constant(each) for each in node.args], named))

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

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            return scope(self._dotted(node))
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(each, scope) for each in node.elts]
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, scope), self._value(node.right, scope)
            return _elementwise(_BINARY[type(node.op)], left, right)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, scope)
            if isinstance(node.op, ast.Not):
                return not value
            sign = -1 if isinstance(node.op, ast.USub) else 1
            return [sign * each for each in value] if isinstance(value, list) else sign * value
        if isinstance(node, ast.BoolOp):
            last: Any = None
            for each in node.values:
                last = self._value(each, scope)
                if bool(last) == isinstance(node.op, ast.Or):
                    return last
            return last
        if isinstance(node, ast.Compare):
            return self._comparison(node, scope)
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test, scope) else node.orelse, scope)
        if isinstance(node, ast.Subscript):
            return self._value(node.value, scope)[self._value(node.slice, scope)]
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        positions = [self._value(each, scope) for each in node.args]
        named = {str(each.arg): self._value(each.value, scope) for each in node.keywords}
        return self._functions[node.func.id](*positions, **named)

    def _comparison(self, node: ast.Compare, scope: Scope) -> Any:
        left = self._value(node.left, scope)
        truth: Any = True
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self._value(other, scope)
            if isinstance(op, (ast.In, ast.NotIn)):
                truth = (left in right) == isinstance(op, ast.In)
            else:
                truth = _elementwise(_COMPARE[type(op)], left, right)
            if truth is False:
                return False
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
