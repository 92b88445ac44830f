"""Numbers as tables and axes show them: three figures, a unit that suits, a dash where there is none."""

from __future__ import annotations

import math

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


def within(part: float | None) -> str:
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
