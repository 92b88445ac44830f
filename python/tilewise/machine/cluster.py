"""Simulated clusters: hosts, their processors and the network between them, as SimGrid describes them.

A cluster is a file of SimGrid's (`PLATFORM.xml`), one of those that come with tilewise (`fat-tree`), or a
plain one in a word:

    64x2:12.5GB/s:1.5us                  64 hosts of 2 cores on one switch, with a bandwidth of 12.5 GB/s each
                                         and a latency of 1.5 µs between any two. Computing is timed.
    64x2:12.5GB/s:1.5us:40GF/s:10GB/s    the same, and each core does 40 billion operations and moves 10 GB a
                                         second: what ranks compute is counted, and a result repeats exactly.
    64x2:ping.json                       the same hosts, the network and the way within a host as
    64x2:ping.json:40GF/s:10GB/s         `tilewise measure` found them and wrote to this file.
    fat-tree[:32]                        the first 32 hosts of it: ranks are dealt to these alone.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE
from tilewise.machine.allocation import Node
from tilewise.machine.facts import Facts, remote_facts
from tilewise.machine.terms import KINDS, Machine, Term

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FLAG = "--simulate"
EXAMPLE = "64x2:12.5GB/s:1.5us"
_PLAIN = re.compile(r"(\d+)(?:x(\d+))?((?::[^:]+){2,4})")
_MEASURED = re.compile(r"(\d+)(?:x(\d+))?:(.+\.json)((?::[^:]+){0,2})")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e-?[0-9]+)?)\s*([a-zA-Zµ/]*)")
_FIRST = re.compile(r"(.+)\[:(\d+)\]")
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_PREFIX |= {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3}
_MEMORY = 10e9  # bytes a second that a core moves, where nobody says
_LOOPBACK = 3e-7  # seconds that a message takes within a host
_EXACT, _NETWORK = 0.02, 0.2  # how far terms of a simulated machine are off, relative
_TIMED = 1e9  # operations a second of a host whose work is timed: the simulator wants some number
_HOW = "tilewise measure ping --hosts FILE --levels core,node --json RESULT.json"
_WITHIN = ("core", "cache", "socket", "sibling")  # the first of them that was measured
_LINKS = {"FLAT": 2, "FAT_TREE": 4, "DRAGONFLY": 5}  # from a host to the farthest
_MOST = 1 << 20  # hosts


class Link(msgspec.Struct, frozen=True):
    """Bytes a second of a link, and the seconds that a message takes on it."""

    bandwidth: float
    latency: float


class Network(msgspec.Struct, frozen=True):
    """Links from host to host, and from rank to rank of a host."""

    between: Link
    within: Link


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is as it was asked for, `cores` those of each host; `xml` is what the simulator reads.

    `operations` and `bytes` are those that a core does and moves in a second; 0: work is timed, not counted.
    `network` is into a host, and to the farthest; None where the file describes each link apart.
    """

    name: str
    hosts: tuple[str, ...]
    cores: int
    operations: float
    bytes: float
    network: Network | None = None
    xml: str

    def __str__(self) -> str:
        return self.name

    @property
    def counted(self) -> bool:
        """Return whether the work of ranks is counted, not timed."""
        return self.operations > 0

    @property
    def speed(self) -> float:
        """Operations a second of a core, as the simulator counts."""
        return self.operations or _TIMED

    def machine(self) -> Machine:
        """Return its machine: files and starting take no time, and kernels what their work takes."""
        rate = Term(rate=self.speed, error=_EXACT, source=self.name)
        moved = Term(rate=self.bytes, error=_EXACT, source=self.name)
        known = {name: rate for name, kind in KINDS.items() if kind.unit == "FLOP/s"}
        known |= {"copy": moved, "turn": moved}
        if self.network is not None:
            for where, way in (("node", self.network.between), ("core", self.network.within)):
                known[f"link/{where}"] = Term(
                    rate=way.bandwidth, node=way.bandwidth, error=_NETWORK, source=self.name
                )
                known[f"message/{where}"] = Term(seconds=way.latency, error=_NETWORK, source=self.name)
        else:
            known |= {name: KINDS[name].assumed for name in KINDS if name.startswith(("link/", "message/"))}
        nothing = Term(error=0.0, source=self.name)
        return Machine(
            name=self.name,
            nodes=len(self.hosts),
            cores=self.cores,
            terms={name: known.get(name, nothing) for name in KINDS},
        )

    def facts(self, here: Facts) -> Facts:
        """Return facts of its hosts, as if a batch system had granted them: only their cores are known."""
        nodes = tuple(Node(name, self.cores) for name in self.hosts)
        # The simulator has shared windows wrong, so there is no shared memory.
        found = remote_facts(here, f"simulated: {self.name}", nodes, f"{self.name} has")
        return msgspec.structs.replace(found, cpu="simulated")


def shipped() -> tuple[str, ...]:
    """Names of the clusters that come with tilewise."""
    from importlib import resources

    files = resources.files("tilewise.machine") / "clusters"
    return tuple(
        sorted(file.name.removesuffix(".xml") for file in files.iterdir() if file.name.endswith(".xml"))
    )


def parse_cluster(text: str, flag: str = FLAG) -> Cluster:
    """The cluster that `text` asks for; UsageError where it asks for none."""
    from importlib import resources

    if os.path.isfile(text):
        try:
            with open(text, encoding="utf-8") as file:
                return _described(text, file.read())
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{flag} {text}: cannot be read: {error}") from None
    if text in shipped():
        return _described(
            text, (resources.files("tilewise.machine") / "clusters" / f"{text}.xml").read_text()
        )
    if match := _MEASURED.fullmatch(text):
        rates = match[4][1:].split(":") if match[4] else []
        hosts = int(match[1])
        return _plain(text, hosts, int(match[2] or 1), rates, measured_network(match[3], hosts))
    if match := _FIRST.fullmatch(text):
        return _first(text, parse_cluster(match[1]), int(match[2]))
    match = _PLAIN.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{flag} {text!r}: there is no such file, and it is none of {', '.join(shipped())}",
            f"{flag} {EXAMPLE}, which is HOSTSxCORES:BANDWIDTH:LATENCY",
        )
    bandwidth, latency, *rates = match[3][1:].split(":")
    between = Link(_number(text, bandwidth, "B/s"), _number(text, latency, "s"))
    return _plain(text, int(match[1]), int(match[2] or 1), rates, between)


def _first(text: str, whole: Cluster, count: int) -> Cluster:
    if not 0 < count <= len(whole.hosts):
        raise UsageError(f"{FLAG} {text}: expected 1 to {len(whole.hosts)} hosts of {whole.name}")
    return msgspec.structs.replace(whole, name=text, hosts=whole.hosts[:count])


def _plain(text: str, hosts: int, cores: int, rates: list[str], known: Network | Link) -> Cluster:
    """Hosts on one switch, `known` the network or, where nothing else is, what is between two of them."""
    if not (0 < hosts <= _MOST and 0 < cores <= 4096):
        raise UsageError(f"{FLAG} {text}: a cluster has at least one host and one core, and not millions")
    operations = _number(text, rates[0], "F/s") if rates else 0.0
    moved = _number(text, rates[1], "B/s") if len(rates) > 1 else _MEMORY
    if isinstance(known, Network):
        between, within = known.between, known.within
    else:  # a core reads what it writes
        between, within = known, Link(moved / 2, _LOOPBACK)
    # A message passes two links: out of one host, into the other.
    xml = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{hosts - 1}"
           speed="{operations or _TIMED:.9g}f" core="{cores}"
           bw="{between.bandwidth:.9g}Bps" lat="{between.latency / 2:.9g}s"
           loopback_bw="{within.bandwidth:.9g}Bps" loopback_lat="{within.latency:.9g}s"/>
</platform>
"""
    names = tuple(f"node-{index}" for index in range(hosts))
    return Cluster(
        name=text,
        hosts=names,
        cores=cores,
        operations=operations,
        bytes=moved,
        network=Network(between, within),
        xml=xml,
    )


def _number(text: str, word: str, unit: str) -> float:
    """A rate or a time such as 12.5GB/s or 1.5us, in `unit`."""
    match = _NUMBER.fullmatch(word.strip())
    spelled = match[2].replace("Bps", "B/s").replace("Flop", "F").replace("FLOP", "F") if match else ""
    if match is None or not spelled.endswith(unit) or spelled.removesuffix(unit) not in _PREFIX:
        example = {"B/s": "12.5GB/s", "s": "1.5us", "F/s": "40GF/s"}[unit]
        raise UsageError(f"{FLAG} {text}: {word!r} is not a number such as {example}")
    value = float(match[1]) * _PREFIX[spelled.removesuffix(unit)]
    if not value > 0:
        raise UsageError(f"{FLAG} {text}: {word} must be above 0")
    return value


def _described(name: str, xml: str) -> Cluster:
    """Read the hosts of a platform file; the network is between it and the simulator."""
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise UsageError(f"{FLAG} {name}: is no platform file of SimGrid's: {error}") from None
    hosts: list[str] = []
    cores: set[int] = set()
    speeds: set[float] = set()
    moved: set[float] = set()
    network: Network | None = None
    for element in root.iter():
        if element.tag not in ("host", "cluster"):
            continue
        if element.tag == "cluster":
            network = _network(name, element)
        hosts.extend(itertools.islice(_hosts(name, element), _MOST + 1 - len(hosts)))
        if len(hosts) > _MOST:
            raise UsageError(f"{FLAG} {name}: more than {_MOST} hosts")
        if not (core := element.get("core", "1")).isdecimal() or int(core) < 1:
            raise UsageError(f"{FLAG} {name}: a number of cores was expected, not {core!r}")
        cores.add(int(core))
        speeds.add(_speed(name, element.get("speed", "1Gf")))
        for prop in element.findall("prop"):
            if prop.get("id") == "memory":
                moved.add(_number(name, prop.get("value", ""), "B/s"))
    if not hosts:
        raise UsageError(f"{FLAG} {name}: describes no hosts")
    if max(len(speeds), len(moved), len(cores)) > 1:
        raise UsageError(f"{FLAG} {name}: unlike hosts cannot be simulated; all must be alike")
    return Cluster(
        name=name,
        hosts=tuple(hosts),
        cores=min(cores),
        operations=speeds.pop(),
        bytes=moved.pop() if moved else _MEMORY,
        network=network,
        xml=xml,
    )


def _network(name: str, element: Element) -> Network:
    """Return the network of a `cluster` element, whose links are alike."""

    def way(kind: str, links: int) -> Link:
        bandwidth = _number(name, element.get(f"{kind}bw", "1GB/s"), "B/s")
        return Link(bandwidth, links * _number(name, element.get(f"{kind}lat", "0.3us"), "s"))

    return Network(way("", _LINKS.get(element.get("topology", "FLAT"), 2)), way("loopback_", 1))


def _hosts(name: str, element: Element) -> Iterator[str]:
    if element.tag == "host":
        yield element.get("id", "")
        return
    for stretch in element.get("radical", "").split(","):
        first, _, last = stretch.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) > _MOST:
            raise UsageError(f"{FLAG} {name}: radical {stretch!r} is no range of numbers")
        for index in range(int(first), int(last or first) + 1):
            yield f"{element.get('prefix', '')}{index}{element.get('suffix', '')}"


def _speed(name: str, word: str) -> float:
    if not word.endswith("f"):
        raise UsageError(f"{FLAG} {name}: a speed such as 40Gf was expected, not {word!r}")
    return _number(name, f"{word.removesuffix('f')}F/s", "F/s")


class _Summary(msgspec.Struct):
    minimum: float


class _Line(msgspec.Struct):
    kind: str
    pattern: str = ""
    level: str = ""
    pairs: int = 0
    bytes: int = 0
    summary: _Summary | None = None


class _Result(msgspec.Struct):
    lines: list[_Line]


def measured_network(path: str, hosts: int) -> Network:
    """Return the network in the result at `path`; UsageError where that says too little for so many hosts."""
    try:
        with open(path, "rb") as file:
            result = msgspec.json.decode(file.read(), type=_Result)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    except UNDECODABLE as error:
        raise UsageError(f"{path} is not a result of tilewise measure: {error}", _HOW) from None
    ways = {level: way for level in ("node", *_WITHIN) if (way := _link(result.lines, level)) is not None}
    within = next((ways[level] for level in _WITHIN if level in ways), None)
    between = ways.get("node") if hosts > 1 else within
    if between is None or within is None:
        raise UsageError(f"{path} has no messages of two sizes from host to host and within a host", _HOW)
    return Network(between=between, within=within)


def _link(lines: list[_Line], level: str) -> Link | None:
    """Fit a link by the shortest and the longest message of one pair of ranks; None where these are not two.

    By the fastest sample of each: that of others contains what the two ranks waited for a processor.
    """
    seconds: dict[int, float] = {}
    for line in lines:
        there = (line.kind, line.pattern, line.level, line.pairs) == ("ping", "roundtrip", level, 1)
        if there and line.summary is not None:
            once = line.summary.minimum / 2  # of there and back
            seconds[line.bytes] = min(once, seconds.get(line.bytes, once))
    if not seconds:
        return None
    least, most = min(seconds), max(seconds)
    longer = seconds[most] - seconds[least]
    return Link(bandwidth=(most - least) / longer, latency=seconds[least]) if longer > 0 else None
