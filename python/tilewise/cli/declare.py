"""How a command declares its flags: annotations that stay text until somebody has to read them.

A command's function says of each argument `Annotated[int | None, Parameter(name="--ranks", …)]`. Annotations
are not evaluated where they stand, so declaring costs nothing. `plain` reads names and types out of them;
only `careful`, which needs the help and the groups too, has cyclopts, whose import takes longer than
everything else that the front does for a small job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cyclopts

WHAT, HOW, WHERE, SHOW = "What", "How", "Where", "Show"  # headings of a help page, in their order


def Parameter(*, group: str | None = None, **fields: Any) -> cyclopts.Parameter:
    """One argument as cyclopts wants it; `group` is one of the headings, `fields` are cyclopts' own."""
    import cyclopts

    if group is not None:
        fields["group"] = cyclopts.Group(group, sort_key=(WHAT, HOW, WHERE, SHOW).index(group) + 1)
    return cyclopts.Parameter(**fields)


def order_of_storage() -> cyclopts.Parameter:
    """The flag `--order`, which several commands have."""
    said = "C: row by row, F: column by column; the format's own if not said."
    return Parameter(name="--order", group=WHAT, help=said)
