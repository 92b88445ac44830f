"""The operations; this registry is all that the command line and the engine know of them.

An operation is one module, or a folder of four: `options` (what may be asked for, as one struct: flags,
checks, inputs), `plan` (the stated rule that plans it), `cost` (the memory and the time that a plan takes)
and `show` (what people are told before and afterwards). Adding an operation takes its module, a line here,
its work in the worker, a page of docs and its tests.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewise.operations.operation import Operation
    from tilewise.operations.show import Show

# A line for the overview page each; a module is imported when somebody asks for it.
OPERATIONS = {
    "multiply": "multiply two matrix files:  tilewise multiply A.npy B.npy -o C.npy",
    "transpose": "transpose a matrix:         tilewise transpose A.npy -o AT.npy",
    "svd": "decompose it (SVD):         tilewise svd A.npy -o svd/",
    "stencil": "smooth or diffuse it:       tilewise stencil A.npy -o B.npy --steps 200",
    "generate": "generate a matrix:          tilewise generate -o A.npy --shape 4096x4096",
    "convert": "convert format or type:     tilewise convert A.txt -o A.npy",
    "norm": "compute its norms:          tilewise norm A.npy",
}


def module_of(name: str, part: str) -> ModuleType:
    """The module that holds a `part` (options, plan, cost or show) of the operation called `name`."""
    module = importlib.import_module(f"tilewise.operations.{name}")
    return importlib.import_module(f"{module.__name__}.{part}") if hasattr(module, "__path__") else module


def options_of(name: str) -> type[Operation]:
    """The options of the operation called `name`, one of OPERATIONS."""
    kind: type[Operation] = getattr(module_of(name, "options"), name.capitalize())
    return kind


def show_of(name: str, each: object = None) -> Show:
    """The words for jobs of the operation called `name`, which may be one that another version knew.

    With `each`, what a record or a plan says of its slices, the words for a job on a stack.
    """
    from tilewise.operations.show import Show, ShowStack

    if each is not None:
        return ShowStack(show_of(name))
    if name not in OPERATIONS:
        return Show()
    show: Show = getattr(module_of(name, "show"), f"Show{name.capitalize()}")()
    return show
