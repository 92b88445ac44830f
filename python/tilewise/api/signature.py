"""Signatures and docstrings of the functions, with the options that their commands declare.

`help(tilewise.multiply)` and an editor's TAB thus show every option. They are made when somebody asks for a
function; importing the package makes none.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from tilewise.base.declare import Argument, declared
from tilewise.base.errors import UsageError
from tilewise.base.units import nearest
from tilewise.files.formats import InputFlags
from tilewise.operations import OPERATIONS, options_of

LEFT_OUT = ("output", "json", "quiet", "verbose")  # what a function returns, and what it does not print


@functools.cache
def options(command: str) -> dict[str, Argument]:
    """The options of the function of a command, by their names in Python; none of any other function."""
    if command in OPERATIONS:
        from tilewise.engine.request import Request

        operation = options_of(command)
        streams = declared(InputFlags) if operation.operands else ()
        found: Iterable[Argument] = [*declared(operation), *streams, *declared(Request)]
    elif command == "measure":
        from tilewise.lab.measurement.request import MeasureRequest

        found = declared(MeasureRequest)
    else:
        return {}
    shown = (each for each in found if not (each.flag.place or each.hidden))
    return {name: each for each in shown if (name := python_name(each)) not in LEFT_OUT}


def python_name(one: Argument) -> str:
    """The name of a flag as a keyword of a function: `max_sweeps`, or `as_`, as Python has `as` itself."""
    spelt = one.name.lstrip("-").replace("-", "_")
    return spelt + "_" * keyword.iskeyword(spelt)


def document(function: Callable[..., Any]) -> None:
    """Put the options of a function into its signature and its docstring."""
    known = options(function.__name__)
    if not known or hasattr(function, "__signature__"):  # in another thread, just now
        return
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind != inspect.Parameter.VAR_KEYWORD]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in known
        if name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    wrap = functools.partial(textwrap.fill, width=98, initial_indent="    ", subsequent_indent=" " * 8)
    lines = "\n".join(wrap(f"{name}: {_said(one)}") for name, one in known.items())
    function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{lines}\n"


def _said(one: Argument) -> str:
    choices = f" One of {', '.join(one.choices)}." if one.choices else ""
    default = f" Default: {one.flag.default}." if one.flag.default else ""
    return f"{one.help}{choices}{default}"


def refuse_unknown(command: str, given: Iterable[str]) -> None:
    """Raise UsageError for a name that is no option of the function, with the nearest that is one."""
    known = options(command)
    taken = {name.rstrip("_") for name in (*known, *LEFT_OUT)}
    for name in given:
        if name.rstrip("_") not in taken:
            raise UsageError(
                f"tilewise.{command} has no option {name!r}",
                nearest(name, known) or f"help(tilewise.{command})",
            )
