"""A table as a value, its cells, and numbers as they are written: three figures, a unit that suits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

NONE = "–"
_TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def finite(value: float | None) -> float | None:
    """`value`, or None where it is not a number to reckon with."""
    return value if value is not None and math.isfinite(value) else None


def significant(value: float | None, digits: int = 3) -> str:
    """`value` with `digits` figures and no exponent between 1e-6 and 1e15: `0.0123`, `62126`."""
    value = finite(value)
    if value is None:
        return NONE
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if not -7 < size < 15:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - size)}f}"


def time_text(seconds: float | None, digits: int = 3) -> str:
    """`419 ns`, `1.23 µs`, `4.56 ms`, `78.9 s`."""
    seconds = finite(seconds)
    if seconds is None:
        return NONE
    if seconds == 0:
        return "0 s"
    for unit, scale in _TIMES:
        if abs(seconds) >= scale * (1 - 0.5 * 10**-digits) or unit == "ns":
            return f"{significant(seconds / scale, digits)} {unit}"
    raise AssertionError("unreachable")


def time_scale(seconds: list[float]) -> tuple[str, float]:
    """One unit for all of them, and what it is in seconds: that of the middle between least and most."""
    sizes = [abs(each) for each in seconds if finite(each)]
    if not sizes:
        return _TIMES[0]
    middle = math.sqrt(min(sizes)) * math.sqrt(max(sizes))
    return next((each for each in _TIMES if middle >= each[1]), _TIMES[-1])


def giga(per_second: float | None) -> str:
    """A rate in units of 10⁹ a second: `7.19`, `0.112`."""
    value = finite(per_second)
    return significant(None if value is None else value / 1e9)


def size_text(count: float) -> str:
    """Bytes as people chose them: `64 B`, `128 kB`, `128 KiB`; a thousand's multiples count in thousands."""
    if not math.isfinite(count):
        return NONE
    whole = int(count)
    for base, units in ((1000, ("kB", "MB", "GB", "TB")), (1024, ("KiB", "MiB", "GiB", "TiB"))):
        for power in range(len(units), 0, -1):
            if whole >= base**power and whole % base**power == 0:
                return f"{whole // base**power} {units[power - 1]}"
    return f"{whole} B"


def percent(part: float | None) -> str:
    """`62 %`, `0.5 %`."""
    part = finite(part)
    if part is None:
        return NONE
    return f"{part * 100:.0f} %" if abs(part) >= 0.0995 else f"{significant(part * 100, 2)} %"


def reach_text(part: float | None) -> str:
    """How far an interval reaches to both sides: `±1.3 %`; of more than the figure itself `> ±100 %`."""
    if part is not None and part > 1:
        return "> ±100 %"
    return NONE if finite(part) is None else f"±{percent(part)}"


def times(ratio: float | None) -> str:
    """`3.42×`."""
    return NONE if finite(ratio) is None else f"{significant(ratio)}×"


def interval_text(low: float | None, high: float | None) -> str:
    """Two times in the unit of the first: `644–1030 ns`."""
    low, high = finite(low), finite(high)
    if low is None or high is None:
        return NONE
    scale, unit = next(((s, u) for u, s in _TIMES if abs(low or high) >= s), (1e-9, "ns"))
    return f"{significant(low / scale)}–{significant(high / scale)} {unit}"


_MARKS = ("*", "†", "‡", "§", "¶", "#")


@dataclasses.dataclass(frozen=True)
class Column:
    """One column. `unit` belongs to the title; numbers go to the right.

    `base` is the unit of the numbers behind its cells, where `unit` does not tell.
    """

    title: str
    unit: str = ""
    numbers: bool = True
    base: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """Content of one place of a table.

    `value` is the number behind the text, in base units (for sorting and CSV), `spread` how far it may be
    off, which a page and Markdown show behind it (`±4 %`), `hint` what a page shows when the pointer is
    there, `mark` the footnote's sign, `tone` one of "", "faint", "good", "bad", "strong"; a terminal knows
    "warning" and "bar" besides. `data` is what a page says of it to programs, as `data-…`.
    """

    text: str
    value: float | None = None
    hint: str = ""
    mark: str = ""
    tone: str = ""
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)
    spread: str = ""


@dataclasses.dataclass
class Table:
    """`title` says what is seen; `notes` are the footnotes under it. `key` is its file and page name.

    One that is `beside` the table before it stays next to that, where there is room.
    """

    key: str
    title: str
    columns: list[Column]
    rows: list[list[Cell]] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    folded: bool = False
    beside: bool = False

    def add(self, *cells: Cell | str | int) -> None:
        """Adds a row; words and counts become cells."""
        self.rows.append(
            [cell if isinstance(cell, Cell) else Cell(str(cell), _count(cell)) for cell in cells]
        )


def _count(value: str | int) -> float | None:
    return float(value) if isinstance(value, int) else None


def text_columns(*titles: str) -> list[Column]:
    """Columns of words."""
    return [Column(title, numbers=False) for title in titles]


def number_columns(*titles: str, unit: str = "") -> list[Column]:
    """Columns of numbers in one unit."""
    return [Column(title, unit) for title in titles]


def time_columns(
    titles: Iterable[str], seconds: Iterable[float]
) -> tuple[list[Column], Callable[[float], str]]:
    """Columns of times in the unit that suits `seconds`, and what writes a time in it."""
    unit, scale = time_scale(list(seconds))
    return number_columns(*titles, unit=unit), lambda value: significant(value / scale)


def quantity(
    value: float | None,
    show: Callable[[float], str] = significant,
    hint: str = "",
    mark: str = "",
    tone: str = "",
) -> Cell:
    """A number as `show` writes it; an empty cell where there is none."""
    return Cell("" if value is None else show(value), finite(value), hint, mark, tone)


class Footnotes:
    """Footnotes of one table: each text once, with a sign of its own; those of `known` are told beforehand.

    Tables that know the same texts have the same signs for them.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._signs: dict[str, str] = {}
        self._used: set[str] = set()
        self.sign(*known)
        self._used.clear()

    def sign(self, *texts: str) -> str:
        """The signs of `texts`, joined in the order of the notes."""
        used = list(dict.fromkeys(filter(None, texts)))
        for text in used:
            number = len(self._signs)
            self._signs.setdefault(text, _MARKS[number] if number < len(_MARKS) else f"({number + 1})")
        self._used.update(used)
        return "".join(sign for text, sign in self._signs.items() if text in used)

    def notes(self) -> list[str]:
        """Each sign that was used, with its text."""
        return [f"{sign} {text}" for text, sign in self._signs.items() if text in self._used]
