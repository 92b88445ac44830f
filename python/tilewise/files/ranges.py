"""Ranges of rows and columns as people write them: `100:200`, `-10:`, `7`; what they mean in a matrix."""

from __future__ import annotations

import re

from tilewise.base.errors import UsageError
from tilewise.base.units import plural

_RANGE = re.compile(r"\s*(-?[0-9]{1,18})?\s*:\s*(-?[0-9]{1,18})?\s*|\s*-?[0-9]{1,18}\s*")


def parse_range(text: str, flag: str) -> str:
    """`text` where it is a range without a step, or one number; else a UsageError that names `flag`."""
    if _RANGE.fullmatch(text):
        return text
    why = ", and steps are not taken" if text.count(":") == 2 else ""
    raise UsageError(f"{flag} expects FROM:TO such as 100:200, :50, -10: or 7, not {text!r}{why}")


def selection(text: str, extent: int, what: str) -> slice:
    """The slice that `text` means, a step allowed; one number picks one row or column. UsageError for none.

    Ends beyond the matrix are kept, as Python keeps them.
    """
    fields = text.split(":")
    try:
        numbers = [int(field) if field.strip() else None for field in fields]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0) or numbers == [None]:
        raise UsageError(f"{text!r} is not a range of {what}s; write 3, 0:5, -2: or ::10")
    if len(numbers) == 1:
        index = numbers[0]
        assert index is not None
        if not -extent <= index < extent:
            raise UsageError(f"there is no {what} {index}: the matrix has {extent} {what}s, counted from 0")
        index %= extent
        return slice(index, index + 1)
    return slice(*numbers)


def needed(text: str | None) -> int | None:
    """How many rows from the top tell which ones `text` means; None where that takes their whole number."""
    fields = [field.strip() for field in (text or "").split(":")]
    if len(fields) > 3 or not all(field.isdecimal() for field in fields if field):
        return None
    begin, *more = [int(field) if field else None for field in fields]
    if not more:
        return None if begin is None else begin + 1
    return more[0] if more[0] is not None and more[0] > (begin or 0) else None


def taken(text: str | None, extent: int, what: str, name: str) -> tuple[int, int, str]:
    """The first row or column that `text` means, one past the last, and a warning if the matrix has fewer.

    None means all. UsageError where nothing is left of the matrix `name`.
    """
    if text is None:
        return 0, extent, ""
    asked = selection(text, extent, what)
    begin, end, _ = asked.indices(extent)
    has = f"{name} has {plural(extent, what)}"
    if begin >= end and extent > 0:
        raise UsageError(f"--{what}s {text} takes no {what}s: {has}", f"--{what}s FROM:TO, counted from 0")
    beyond = any(each is not None and not -extent <= each <= extent for each in (asked.start, asked.stop))
    said = f"--{what}s {text} takes {plural(end - begin, what)}, from {begin} on: {has}"
    return begin, end, said if beyond else ""
