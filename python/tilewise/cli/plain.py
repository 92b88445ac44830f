"""Reads words that are written in the plainest way, without cyclopts: nearly all of them, and in no time.

    A.npy  B.npy  -o  C.npy  --ranks  4  --seed=7  -q
    ─────  ─────  ─────────  ──────────  ────────  ──
    positions     a flag and its value   or so     a switch

Whatever else there is (help, a mistake, a flag given twice, a negative number, an empty word …) it leaves to
`careful`, which means the same by the same words and has a sentence for each mistake.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

_READERS: dict[Any, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    str: (re.compile(r"[^-].*", re.DOTALL), str),
    int: (re.compile(r"[0-9]{1,18}"), int),
    float: (re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?"), float),
}
_NEVER = (re.compile(r"(?!)"), str)


class _Declared(NamedTuple):
    """What is read of a `Parameter`: how the flag is spelt; `*` stands for all flags of a class."""

    name: str | list[str] = ""
    allow_leading_hyphen: bool = False


class _Flag(NamedTuple):
    """Where a value goes (`owner` is the argument that holds all flags of a class), and its type."""

    owner: str
    field: str
    kind: Any
    takes_hyphen: bool


class Arguments(NamedTuple):
    """What a function is called with."""

    positions: list[str]
    named: dict[str, Any]


def read(function: Callable[..., Any], words: list[str]) -> Arguments | None:
    """The arguments of `function` that `words` mean, or None where they are not plain."""
    slots = list(inspect.signature(function).parameters.values())
    positional = [slot.name for slot in slots if slot.kind is slot.POSITIONAL_ONLY]
    kinds, flags, classes = _declared(function)
    positions: list[str] = []
    named: dict[str, dict[str, Any]] = {owner: {} for owner in ("", *classes)}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            if not word or len(positions) == len(positional) or kinds[positional[len(positions)]] is not str:
                return None
            positions.append(word)
            continue
        spelt, equals, value = word.partition("=")
        flag = flags.get(spelt)
        if flag is None or flag.field in named[flag.owner]:
            return None
        if flag.kind is bool:
            if equals:
                return None
            named[flag.owner][flag.field] = True
            continue
        text = value if equals else next(rest, "")
        pattern, convert = _READERS.get(flag.kind, _NEVER)
        if not (pattern.fullmatch(text) or (flag.takes_hyphen and text == "-")):
            return None
        named[flag.owner][flag.field] = convert(text)
    given = named.pop("")
    there = {*positional[: len(positions)], *given}
    if any(slot.default is slot.empty and slot.name not in there for slot in slots):
        return None
    return Arguments(positions, {**given, **{owner: classes[owner](**named[owner]) for owner in named}})


def flags(function: Callable[..., Any]) -> dict[str, Any]:
    """Every spelling of every flag of `function`, with the type of its value."""
    _, found, _ = _declared(function)
    return {spelt: flag.kind for spelt, flag in found.items() if spelt.startswith("-")}


def _declared(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, _Flag], dict[str, Any]]:
    """The type of each argument, every spelling of a flag, and the classes whose fields are flags."""
    kinds: dict[str, Any] = {}
    flags: dict[str, _Flag] = {}
    classes: dict[str, Any] = {}

    def add(holder: Any, owner: str) -> None:
        for field, found in _hints(holder).items():
            hint = _alone(found)  # Python 3.10 adds a None of its own to what has None as its default
            if typing.get_origin(hint) is not typing.Annotated:
                continue
            kind, declared = typing.get_args(hint)[:2]
            if declared.name == "*":
                classes[field] = kind
                add(kind, field)
                continue
            kinds[field] = _alone(kind)
            spellings = [declared.name] if isinstance(declared.name, str) else declared.name
            for spelt in spellings:
                flags[spelt] = _Flag(owner, field, kinds[field], declared.allow_leading_hyphen)

    add(function, "")
    return kinds, flags, classes


def _hints(holder: Any) -> dict[str, Any]:
    """The annotations of a function or class, with our `Parameter` in them instead of cyclopts'."""

    def declared(name: str | list[str] = "", allow_leading_hyphen: bool = False, **_: Any) -> _Declared:
        return _Declared(name, allow_leading_hyphen)

    names = {"Parameter": declared, "order_of_storage": lambda: _Declared("--order")}
    return typing.get_type_hints(holder, localns=names, include_extras=True)


def _alone(kind: Any) -> Any:
    """`int` for `int | None`."""
    kinds = [each for each in typing.get_args(kind) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in typing.get_args(kind) else kind
