"""Machine: what one does of everything that costs time in a job, in a second; what is not known is assumed.

A term is a rate, of one core (or one pair of ranks) and of all of a node together, or the seconds of one
thing. It says how far it may be off, and where it is from. Those of files may be of one file system:
`write@/scratch` is that of files below the mount point /scratch; `write` counts where nobody knows more.
A habit says how much longer than by the terms a phase takes in jobs of one kind.
`tilewise plan --machine FILE` reads a machine from JSON:

    {"name": "two nodes", "nodes": 2, "cores": 64, "memory": 549755813888,
     "terms": {"gemm/float64": {"rate": 35e9, "error": 0.1, "source": "measured"},
               "link/node": {"rate": 25e9, "node": 25e9}, "message/node": {"seconds": 2e-6}}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """Speed of one core or pair (`rate`, a second), and of a `node` at most; or the `seconds` of one thing.

    `node` 0: as much as all of its cores. `error` is relative: 0.3 is ± 30 %. `source`: where it is from;
    `runs`: how many jobs have corrected it; `date`: the day of the last one, or of the measurement; `before`:
    what was measured, or said, before jobs corrected it.
    """

    rate: float = 0.0
    node: float = 0.0
    seconds: float = 0.0
    error: float = 0.3
    source: str = "assumed"
    runs: int = 0
    date: str = ""
    before: Term | None = None

    def times(self, factor: float, source: str, error: float) -> Term:
        """Term by which everything takes `factor` as long."""
        return Term(
            rate=self.rate / factor,
            node=self.node / factor,
            seconds=self.seconds * factor,
            error=error,
            source=source,
            runs=self.runs,
        )


class Habit(msgspec.Struct, frozen=True):
    """So many `runs` of a kind of job took `factor` times what the terms say, each off by `error` of it."""

    factor: float = 1.0
    error: float = 0.1
    runs: int = 0


class Kind(msgspec.Struct, frozen=True):
    """Meaning of a term, its unit, and the value assumed of a machine that was never measured."""

    what: str
    unit: str
    assumed: Term


def _rate(what: str, unit: str, rate: float, node: float = 0.0) -> Kind:
    return Kind(what, unit, Term(rate=rate, node=node))


def _seconds(what: str, seconds: float) -> Kind:
    return Kind(what, "s", Term(seconds=seconds))


AT = "@"  # between a term of files and a mount point
GEMM = "gemm/"  # and the type of the numbers
_TELLING = ("copy", "link/core", "link/node")  # of these, one at least is measured or said of a known machine
OF_FILES = ("read", "write", "device/read", "device/write")
_LARGEST_NODES, _LARGEST_CORES = 1 << 16, 1 << 16
_SLOWEST, _FASTEST = 1e-3, 1e21  # of a rate; and of seconds its inverse
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        f"{GEMM}float64": _rate("products by the fast kernel", "FLOP/s", 35e9),
        f"{GEMM}float32": _rate("products of float32 by the fast kernel", "FLOP/s", 70e9),
        f"{GEMM}complex128": _rate("products of complex numbers by the fast kernel", "FLOP/s", 35e9),
        f"{GEMM}complex64": _rate("products of complex64 by the fast kernel", "FLOP/s", 70e9),
        f"{GEMM}integer": _rate("products of integers", "FLOP/s", 4e9),
        "plain": _rate("operations of the reference loops", "FLOP/s", 1.5e9),
        "lapack": _rate("operations of decompositions, in blocks", "FLOP/s", 15e9),
        "sweep": _rate("operations of sweeps that stay in the caches", "FLOP/s", 20e9),
        "copy": _rate("bytes of memory, read and written", "B/s", 10e9, 20e9),
        "fault": _rate("bytes of pages that are touched for the first time", "B/s", 2.5e9, 5e9),
        "recall": _rate("bytes of new pages that the host has to give back", "B/s", 0.6e9, 0.9e9),
        "turn": _rate("bytes read and written by transposing in memory", "B/s", 6e9, 12e9),
        "generate": _rate("bytes of generated numbers", "B/s", 1e9),
        "read": _rate("bytes read from the page cache", "B/s", 4e9, 6e9),
        "write": _rate("bytes written into the page cache", "B/s", 1.5e9, 2e9),
        "device/read": _rate("bytes read from the device", "B/s", 0.5e9, 1.5e9),
        "device/write": _rate("bytes written to the device", "B/s", 0.7e9, 0.7e9),
        "call": _seconds("a call that reads or writes", 2e-6),
        "parse": _rate("bytes of text that are parsed", "B/s", 0.25e9),
        "format": _rate("bytes of text that are formatted", "B/s", 0.25e9),
        "unpack": _rate("bytes of numbers that are unpacked", "B/s", 0.4e9),
        "pack": _rate("bytes of numbers that are packed", "B/s", 0.1e9),
        "message/core": _seconds("a message within a node", 1e-6),
        "message/node": _seconds("a message between nodes", 3e-6),
        "link/core": _rate("bytes that a rank receives within a node", "B/s", 5e9, 10e9),
        "link/node": _rate("bytes that a rank receives from another node", "B/s", 1e9, 1e9),
        "start": _seconds("starting the ranks of a job, and what the front does", 0.08),
        "start/rank": _seconds("starting one rank more on a node", 0.01),
        "start/nodes": _seconds("starting on twice as many nodes", 0.1),
    }
)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """So many `nodes` of so many `cores` and bytes of `memory`, and what is known of them.

    `rested`: it is a virtual machine whose free pages are the host's by now; else a `recall` takes no time.
    """

    name: str = ""
    nodes: int = 1
    cores: int = 1
    memory: int = 0
    rested: bool = False
    terms: dict[str, Term] = {}
    habits: dict[str, Habit] = {}

    def term(self, name: str) -> Term:
        """Known or assumed term called `name`, be it of one file system or of all."""
        found = self.terms.get(name) or self.terms.get(base_of(name))
        return found if found is not None else kind_of(name).assumed

    def seconds(self, name: str, amount: float, at_once: int = 1) -> float:
        """For `amount` of `name` by one, while so many of a node do as much at once."""
        if name == "recall" and not self.rested:
            return 0.0
        term = self.term(name)
        if term.rate <= 0:  # of things that take no time, neither is known
            return amount * term.seconds * max(1.0, at_once / self.cores)
        return amount / min(term.rate, (term.node or term.rate * self.cores) / at_once)

    @property
    def known(self) -> bool:
        """True if the speed of its memory or its network was measured or said."""
        return any(self.terms[name].source != "assumed" for name in _TELLING if name in self.terms)


def base_of(name: str) -> str:
    """`write` of `write@/scratch`, and of `write`."""
    return name.partition(AT)[0]


def kind_of(name: str) -> Kind:
    """Kind of the term `name`, wherever."""
    return KINDS[base_of(name)]


def what_of(name: str) -> str:
    """Meaning of a term in words: `bytes written into the page cache on /scratch`."""
    where = name.partition(AT)[2]
    return kind_of(name).what + (f" on {where}" if where else "")


def gemm(dtype: str) -> str:
    """The term of products of that type."""
    return f"{GEMM}{'integer' if dtype.startswith(('int', 'uint')) else dtype}"


def checked(machine: Machine) -> str:
    """Say what is wrong with a machine that somebody typed in; empty where nothing is."""
    if not (1 <= machine.nodes <= _LARGEST_NODES and 1 <= machine.cores <= _LARGEST_CORES):
        return f"nodes must be 1 to {_LARGEST_NODES}, and cores 1 to {_LARGEST_CORES}"
    if machine.memory < 0:
        return "memory must be 0 or more"
    return next(filter(None, map(wrong_term, machine.terms, machine.terms.values())), "")


def wrong_term(name: str, term: Term) -> str:
    """Say what is wrong with a term; empty where nothing is."""
    base, at, where = name.partition(AT)
    if base not in KINDS or (at and not (base in OF_FILES and where.startswith("/"))):
        return f"terms has {name!r}, but they are {', '.join(KINDS)}"
    numbers = (term.rate, term.node, term.seconds, term.error, float(term.runs))
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        return f"{name} has a number that is negative or not finite"
    if KINDS[base].unit == "s":
        fits, wanted = term.rate == 0 and term.seconds <= 1 / _SLOWEST, "seconds, and no rate"
    else:
        rates = (term.rate, term.node or term.rate)
        fits = term.seconds == 0 and all(_SLOWEST <= rate <= _FASTEST for rate in rates)
        wanted = "a rate above 0, and no seconds"
    return "" if fits else f"{name} must have {wanted}"
