"""The operations, a room each; this registry is all that the command line and the engine know of them.

A room has `options` (what may be asked for, as one struct: flags, checks, inputs), `variants` (the stated
rule that plans it), `need` (the memory of a variant) and `show` (what is said of it before and afterwards).
Adding an operation is a room, a line here, its work in the worker, a page of docs and its tests.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewise.operations.operation import Operation
    from tilewise.operations.show import Show

# What each does, for the overview page; a room is imported when somebody asks for it.
OPERATIONS = {
    "multiply": "multiply two matrix files:  tilewise multiply A.npy B.npy -o C.npy",
    "transpose": "transpose a matrix:         tilewise transpose A.npy -o AT.npy",
    "svd": "decompose it (SVD):         tilewise svd A.npy -o svd/",
    "stencil": "smooth or diffuse it:       tilewise stencil A.npy -o B.npy --steps 200",
    "generate": "generate a matrix:          tilewise generate -o A.npy --shape 4096x4096",
    "convert": "convert format or type:     tilewise convert A.txt -o A.npy",
    "norm": "compute its norms:          tilewise norm A.npy",
}


def options_of(name: str) -> type[Operation]:
    """The options of the operation called `name`, one of OPERATIONS."""
    room = importlib.import_module(f"tilewise.operations.{name}.options")
    kind: type[Operation] = getattr(room, name.capitalize())
    return kind


def show_of(name: str, each: object = None) -> Show:
    """What is said of jobs of the operation called `name`, which may be one that another version knew.

    With `each`, what a record or a plan says of slices, of one that was done for all of these.
    """
    if each is not None:
        from tilewise.operations.show_stack import ShowStack

        return ShowStack(show_of(name))
    if name not in OPERATIONS:
        from tilewise.operations.show import Show

        return Show()
    room = importlib.import_module(f"tilewise.operations.{name}.show")
    show: Show = getattr(room, f"Show{name.capitalize()}")()
    return show


def exchanges_of(name: str) -> list[str]:
    """Every exchange that some algorithm of the operation called `name` can use, as the table has them."""
    from tilewise.planning.names import EXCHANGES

    used = {each for algorithm in options_of(name).algorithms.values() for each in algorithm.exchanges}
    return [exchange for exchange in EXCHANGES if exchange in used]
