"""Conditions of a study in words: what one that does not hold lacks here, and where a claim's figure must be.

ranks <= 2 * cores                       ──▶  needs 4 cores; this machine has 2
largest >= 4096                          ──▶  needs points with size 4096 or more; the largest here is 512
figure > 0.9 * 64 and figure < 1.1 * 64  ──▶  above 57.6 and below 70.4
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tilewise.base.units import bytes_text, listing, plural
from tilewise.lab.study.expression import Expression, Missing, Scope, short

MACHINE = {
    "cores": "core",
    "cpus": "processor",
    "gpus": "device",
    "hosts": "host",
    "memory": "free memory",
    "disk": "free disk space",
}
"""What limits may ask of a machine, in words; `memory` and `disk` in bytes."""

_BYTES = ("memory", "disk", "input_bytes")
_NAMES = {"input_bytes": "inputs of"}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "below",
    ast.LtE: "at most",
    ast.Gt: "above",
    ast.GtE: "at least",
    ast.Eq: "exactly",
    ast.NotEq: "other than",
}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_UP, _DOWN = (ast.Gt, ast.GtE), (ast.Lt, ast.LtE)


class _Side(NamedTuple):
    """One side of a comparison, and what it comes to here."""

    node: ast.expr
    value: Any


class _Extreme(NamedTuple):
    """The largest or smallest value of an axis that something was measured at."""

    axis: str
    largest: bool


def lack(condition: Expression, scope: Scope, shared: Mapping[str, Expression] | None = None) -> str:
    """`needs 4 cores; this machine has 2`, of a condition that does not hold in `scope`.

    `shared` are the expressions that its names stand for. Missing and UsageError as of its value.
    """
    return f"needs {_Lack(condition, scope, shared or {}).of(condition.tree)}"


class _Lack:
    """What one condition lacks: a phrase that follows `needs`."""

    def __init__(self, condition: Expression, scope: Scope, shared: Mapping[str, Expression]) -> None:
        self._condition, self._scope, self._shared = condition, scope, shared

    def of(self, node: ast.expr) -> str:
        if isinstance(node, ast.BoolOp):
            failing = [each for each in node.values if not self._value(each)]
            if isinstance(node.op, ast.And):
                return self.of(failing[0])
            # Where one part is up to the machine, the others say when it is asked.
            ours = next((each for each in failing if self._machine(each)), None)
            return self.of(ours) if ours is not None else ", or ".join(map(self.of, failing))
        if isinstance(node, ast.Compare):
            sides = [_Side(each, self._value(each)) for each in (node.left, *node.comparators)]
            for place, op in enumerate(node.ops):
                pair = ast.Compare(sides[place].node, [op], [sides[place + 1].node])
                if len(node.ops) == 1 or not self._value(pair):
                    return self._compared(sides[place], type(op), sides[place + 1])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "square":
            return f"{self._said(node.args[0])} a square, not {short(self._value(node.args[0]))}"
        return self._other(node)

    def _compared(self, left: _Side, op: type[ast.cmpop], right: _Side) -> str:
        if self._machine(right.node) and not self._machine(left.node) and op in _TURNED:
            left, op, right = right, _TURNED[op], left
        for side, other, sign in ((left, right, op), (right, left, _TURNED.get(op))):
            parts = self._parts(side.node, "min" if sign in _UP else "max")
            if sign in _UP + _DOWN and parts and not self._machine(other.node):
                failing = (each for each in parts if not _fits(each.value, sign, other.value))
                return self._compared(next(failing), sign, other)
        if self._machine(left.node) and not self._machine(right.node):
            return self._of_machine(left, op, right)
        for side, other, sign in ((left, right, op), (right, left, _TURNED.get(op, op))):
            extreme = self._extreme(side.node)
            if extreme is not None and sign in _SIGNS:
                kind = "largest" if extreme.largest else "smallest"
                said = f"points with {_plain(extreme.axis)} {_bound(sign, other.value)}"
                return f"{said}; the {kind} here is {short(side.value)}"
            if isinstance(side.node, (ast.Name, ast.Attribute)):
                return self._of_name(side, sign, other)
        return self._other(ast.Compare(left.node, [op()], [right.node]))

    def _of_machine(self, side: _Side, op: type[ast.cmpop], other: _Side) -> str:
        """More or less of one thing that a machine has, where the side is so many times of it."""
        (name, *more) = sorted(self._machine(side.node))
        has = self._scope(name)
        times = self._times(side.node, name)
        if more or times is None or op not in _UP + _DOWN:
            return f"{'more' if op in _UP else 'fewer'} {listing([f'{MACHINE[e]}s' for e in (name, *more)])}"
        wanted = float(other.value) / times
        if name in _BYTES:
            asked, there = _sizes(wanted, has)
            return f"{'' if op in _UP else 'at most '}{asked} of {MACHINE[name]}; this machine has {there}"
        noun = MACHINE[name]
        if op in _UP:
            count = math.floor(wanted) + 1 if op is ast.Gt else math.ceil(wanted)
            asked = plural(count, noun)
        else:
            count = math.ceil(wanted) - 1 if op is ast.Lt else math.floor(wanted)
            asked = f"at most {plural(count, noun)}"
        if name == "gpus":
            return f"{asked}; there is no device here" if not has else f"{asked}; {has} here"
        if name == "hosts":
            return f"{asked}; there {'is' if has == 1 else 'are'} {has} here"
        return f"{asked}; this machine has {has or 'none'}"

    def _times(self, node: ast.expr, name: str) -> float | None:
        """How many times of what `name` stands for a side is; None where it is something else."""

        def at(amount: float) -> float:
            return float(self._condition.part(node, lambda n: amount if n == name else self._scope(n)))

        try:
            once = at(1.0)
            return once if once > 0 and at(0.0) == 0 and at(2.0) == 2 * once else None
        except (Missing, TypeError, ValueError):
            return None

    def _of_name(self, side: _Side, op: type[ast.cmpop], other: _Side) -> str:
        said, value = self._said(side.node), side.value
        if op in (ast.In, ast.NotIn):
            among = listing([short(each) for each in other.value], "or")
            return f"{said} {'' if op is ast.In else 'other than '}{among}, not {short(value)}"
        with_ = self._with(other.node)
        sign = f"{_SIGNS[op]} " if op is not ast.Eq else ""
        wanted, here = short(other.value), short(value)
        if "input_bytes" in self._names(side.node):
            wanted, here = _sizes(other.value, value)
        return f"{said} {sign}{wanted}{with_}" + (f", not {here}" if op is not ast.NotEq else "")

    def _with(self, node: ast.expr) -> str:
        names = sorted(self._names(node) - set(self._shared))
        said = [f"{_plain(name)} {short(self._scope(name))}" for name in names]
        return f" with {listing(said)}" if said else ""

    def _other(self, node: ast.expr) -> str:
        """Whatever it is: not with the values that it was asked of."""
        names = sorted(self._names(node))
        said = [f"{_plain(name)} {short(self._scope(name))}" for name in names]
        return f"something other than {listing(said)}" if said else "what the study rules out"

    def _parts(self, node: ast.expr, function: str) -> list[_Side]:
        """The arguments of `min(a, b)`: it is at least c where all of them are."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function):
            return []
        return [_Side(each, self._value(each)) for each in node.args] if len(node.args) > 1 else []

    def _extreme(self, node: ast.expr) -> _Extreme | None:
        """Of `max(axis('size', …))`, or of a name that stands for it."""
        if isinstance(node, ast.Name) and node.id in self._shared:
            return self._extreme(self._shared[node.id].tree)
        match node:
            case ast.Call(
                func=ast.Name(id="max" | "min" as kind),
                args=[ast.Call(func=ast.Name(id="axis"), args=[ast.Constant(value=str() as axis)])],
            ):
                return _Extreme(axis, kind == "max")
        return None

    def _value(self, node: ast.expr) -> Any:
        return self._condition.part(node, self._scope)

    def _names(self, node: ast.expr) -> set[str]:
        return set(_named(node))

    def _machine(self, node: ast.expr) -> set[str]:
        return self._names(node) & set(MACHINE)

    def _said(self, node: ast.expr) -> str:
        name = ast.unparse(node)
        return _NAMES.get(name, _plain(name))


def bounds(condition: Expression, scope: Scope) -> str:
    """Where a claim's figure must be, `above 2 and below 3`; `as computed` where that is no matter of bounds.

    Missing and UsageError as of its value.
    """
    return _bounds(condition.tree, condition, scope) or "as computed"


def _bounds(node: ast.expr, condition: Expression, scope: Scope) -> str:
    if isinstance(node, ast.BoolOp):
        parts = [_bounds(each, condition, scope) for each in node.values]
        return listing(parts, "and" if isinstance(node.op, ast.And) else "or") if all(parts) else ""
    match node:
        case ast.Call(func=ast.Name(id="all" | "any" as how), args=[inner]):
            said = _bounds(inner, condition, scope)
            return f"{how} {said}" if said else ""
        case ast.Compare(left=ast.Call(func=ast.Name(id="abs"), args=[inner]), ops=[ast.Lt() | ast.LtE()]):
            far = short(condition.part(node.comparators[0], scope))
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
                return f"within ±{far} of {short(condition.part(inner.right, scope))}"
            return f"within ±{far}"
        case ast.Compare(ops=[op]) if type(op) in _SIGNS:
            if "figure" in condition.names and "figure" not in _named(node.left):
                return ""
            bound = condition.part(node.comparators[0], scope)
            number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
            return f"{_SIGNS[type(op)]} {short(bound)}" if number else ""
    return ""


def _sizes(*sizes: float) -> list[str]:
    """Bytes as people read them, with all digits where these alone tell them apart."""
    texts = list(map(bytes_text, sizes))
    return texts if len(set(texts)) == len(texts) else [f"{size:.0f} bytes" for size in sizes]


def _bound(op: type[ast.cmpop], value: Any) -> str:
    if op in (ast.GtE, ast.LtE):
        return f"{short(value)} or {'more' if op is ast.GtE else 'less'}"
    return f"{_SIGNS[op]} {short(value)}" if op is not ast.Eq else short(value)


def _fits(value: Any, op: type[ast.cmpop], bound: Any) -> bool:
    return bool(
        {ast.Gt: value > bound, ast.GtE: value >= bound, ast.Lt: value < bound}.get(op, value <= bound)
    )


def _named(node: ast.AST) -> Iterator[str]:
    """Names in it, dotted ones whole; not those of functions."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield ast.unparse(node)
        return
    skipped = node.func if isinstance(node, ast.Call) else None
    for each in ast.iter_child_nodes(node):
        if each is not skipped:
            yield from _named(each)


def _plain(name: str) -> str:
    return name.replace("_", " ")
