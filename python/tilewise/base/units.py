"""Sizes, shapes and grids as people write them, and numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from tilewise.base.errors import UsageError

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgtp])(i)?)?(b)?", re.IGNORECASE)
_PAIR = re.compile(r"(\d+)\s*[x×*,]\s*(\d+)", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|min|h|d)?", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
_LARGEST = 2**62  # the seam carries signed 64-bit integers


def parse_size(text: str, flag: str) -> int:
    """Bytes meant by `text`: `128K` and `128KB` are 128000, `128KiB` is 131072.

    Raises UsageError, naming `flag`, for anything else.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{flag} expects a size such as 512MiB, 4GiB or 2000000, not {text!r}")
    number, prefix, binary, _ = match.groups()
    factor = _BINARY[prefix.lower()] if binary else _DECIMAL[(prefix or "").lower()]
    size = int(float(number) * factor) if "." in number else int(number) * factor
    if size > _LARGEST:
        raise UsageError(f"{flag} {text} is more memory than any machine has")
    return size


def parse_time(text: str, flag: str) -> float:
    """Seconds meant by `text`, such as `30s`, `10min` or `90`; raises UsageError, naming `flag`, else."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{flag} expects a time such as 30s, 10min or 2h, not {text!r}")
    return float(match[1]) * _SECONDS[(match[2] or "").lower()]


def parse_pair(text: str, flag: str, example: str) -> tuple[int, int]:
    """Two whole numbers written `PxQ`; raises UsageError naming `flag` and showing `example`."""
    match = _PAIR.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{flag} expects two whole numbers such as {example}, not {text!r}")
    return int(match[1]), int(match[2])


def parse_shape(text: str, flag: str) -> tuple[int, int]:
    """Rows and columns written `MxN`; zero is allowed, more elements than 2^62 bytes hold is not."""
    rows, columns = parse_pair(text, flag, "4096x4096")
    if max(rows, columns, rows * columns * 16) > _LARGEST:
        raise UsageError(f"{flag} {text} is larger than any file can be")
    return rows, columns


def parse_extents(text: str, flag: str) -> tuple[int, ...]:
    """The shape of an array of two dimensions or more, written `KxMxN`; as `parse_shape` has two."""
    fields = re.split(r"\s*[x×*,]\s*", text.strip(), flags=re.IGNORECASE)
    if len(fields) <= 2 or not all(re.fullmatch("[0-9]{1,18}", field) for field in fields):
        return parse_shape(text, flag)
    shape = tuple(map(int, fields))
    if max(*shape, math.prod(shape) * 16) > _LARGEST:
        raise UsageError(f"{flag} {text} is larger than any file can be")
    return shape


def bytes_text(count: float) -> str:
    """`count` bytes in binary units with three figures: `1.50 GiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(count) < 1024 or unit == "PiB":
            return plural(round(count), "byte") if unit == "bytes" else f"{_three(count)} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def rate_text(per_second: float, unit: str) -> str:
    """A rate in decimal units with three figures: `12.3 GB/s`, `105 GFLOP/s`."""
    for prefix in ("", "K", "M", "G", "T", "P"):
        if abs(per_second) < 1000 or prefix == "P":
            return f"{_three(per_second)} {prefix}{unit}"
        per_second /= 1000
    raise AssertionError("unreachable")


def seconds_text(seconds: float) -> str:
    """Seconds for a table, with as many digits as are worth reading."""
    if seconds < 0.00005:
        return "0"
    return f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3f}" if seconds < 100 else f"{seconds:.1f}"


def duration_text(seconds: float) -> str:
    """A time as flags have it: `90 s`, `10 min`, `2 h`."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def shape_text(*extents: int) -> str:
    """`4096×512`, the way shapes stand in every message; `(7,)` with one dimension, as in Python."""
    return "×".join(map(str, extents)) if len(extents) > 1 else str(extents)


def plural(count: int, noun: str) -> str:
    """`1 rank`, `2 ranks`, `3 launches`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}es" if noun.endswith(("ch", "sh", "ss")) else f"{count} {noun}s"


def times_text(count: int) -> str:
    """`once`, `twice` or `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def listing(names: list[str] | tuple[str, ...], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {joint} {names[-1]}"


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """The known word closest to a mistyped `word`; empty where none is `alike` enough."""
    import difflib  # which only a mistake needs

    return next(iter(difflib.get_close_matches(word, known, 1, alike)), "")


def _three(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def share_text(share: float) -> str:
    """`87 %`, with as many digits as keep it apart from none and from all."""
    if share <= 0 or share >= 1:
        return f"{share:.0%}".replace("%", " %")
    digits = max(0, math.ceil(-math.log10(100 * min(share, 1 - share))))
    return f"{100 * share:.{min(digits, 9)}f} %"
