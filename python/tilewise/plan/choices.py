"""Choices: what the user asked for, checked name by name; None is where the plan decides."""

from __future__ import annotations

import msgspec

from tilewise.errors import UsageError
from tilewise.plan.names import IO

FIXABLE = ("ranks", "threads", "algorithm", "exchange", "io", "grid")


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that say how and where. Memory in bytes; `grid` is rows × columns of ranks."""

    ranks: int | None = None
    threads: int | None = None
    algorithm: str | None = None
    exchange: str | None = None
    read: str | None = None
    write: str | None = None
    grid: tuple[int, int] | None = None
    memory: int | None = None
    hosts: str = ""
    place: str = "core"
    remainder: str = "spread"
    kernel: str = "fast"
    hints: dict[str, str] = {}
    launcher: str = ""
    verify: str = "auto"
    repeat: int = 1
    warmup: int = 0
    sync: bool = False

    def fixed(self) -> list[str]:
        """Names of the flags that were given, out of those a plan chooses."""
        given = {
            "ranks": self.ranks,
            "threads": self.threads,
            "algorithm": self.algorithm,
            "exchange": self.exchange,
            "io": self.read or self.write,
            "grid": self.grid,
        }
        return [name for name in FIXABLE if given[name] is not None]


def one_of(flag: str, value: str | None, names: tuple[str, ...] | list[str]) -> str | None:
    """`value` when it is one of `names`, None for `auto` or nothing; UsageError listing `names` otherwise."""
    if value is None or value in names:
        return value
    if value == "auto":
        return None
    raise UsageError(f"{flag} {value!r} is unknown; known are auto, {', '.join(names)}")


def parse_io(text: str | None) -> tuple[str | None, str | None]:
    """Reading and writing strategy out of `NAME` or `READ:WRITE`; None where the plan decides."""
    if text is None:
        return None, None
    read, colon, write = text.partition(":")
    return one_of("--io", read, list(IO)), one_of("--io", write if colon else read, list(IO))


def parse_hints(pairs: tuple[str, ...]) -> dict[str, str]:
    """MPI-IO hints out of `KEY=VALUE` words."""
    hints: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--hint wants KEY=VALUE such as cb_nodes=2, not {pair!r}")
        if hints.setdefault(key, value) != value:
            raise UsageError(f"--hint {key} was given twice with different values")
    return hints
