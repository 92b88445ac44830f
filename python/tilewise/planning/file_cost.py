"""What it costs to read inputs and to write a result, by strategy, format and the state of the page cache.

    positioned   each thread calls for each row of its block, or a few times for whole rows
    MPI's own    one thread of each rank calls, and waits
    root         rank 0 calls for everything, and all else is sent: a link, and one core, do all of it
    mapped       where pages are computed with as they lie, nothing is copied; else as positioned
    two_phase    whole panels, then an exchange among ranks
    uncached     the device, and nothing else

What is read into memory that was never touched pays for its pages as well. Where these come from:
docs/design/005 and 029, and `tilewise measure file`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.job import Variant
from tilewise.machine import storage
from tilewise.machine.terms import AT
from tilewise.planning.cost import Part, Take
from tilewise.planning.need import characters
from tilewise.planning.plan import Plan
from tilewise.planning.where import Spread

_ROOT = ("root", "root_collective")
_EXCHANGING = ("collective", "split_collective", "two_phase")
DEALT = ("shared_pointer", "ordered")  # what a rank has read goes on to those that want it
_ONE_THREAD = (*_EXCHANGING, *DEALT, "independent")
_AROUND = 8  # pages of a mapped file that come with one that is touched
LONG_CALL = 1 << 20  # bytes that one call moves at most


class Use:
    """Who reads and writes: so many ranks, of which `on_node` share a node, with threads each."""

    def __init__(self, variant: Variant, spread: Spread) -> None:
        self.ranks, self.threads, self.on_node = variant.ranks, variant.threads, spread.on_node
        self.ranks_and_nodes = (spread.on_node, spread.nodes)
        self.here = spread.nodes == 1  # where the page cache that can be looked at is that of the ranks
        self.link = "link/node" if spread.nodes > 1 else "link/core"
        self.message = "message/node" if spread.nodes > 1 else "message/core"

    def shared_out(self, term: str, amount: float) -> Take:
        """`amount` in all, done by all threads of all ranks."""
        return Take(term, amount / (self.ranks * self.threads), self.on_node * self.threads)

    def by_way(self, way: str, term: str, amount: float) -> Take:
        """The same by the threads that call where files are read or written that `way`."""
        return self.by_ranks(term, amount) if way in _ONE_THREAD else self.shared_out(term, amount)

    def by_ranks(self, term: str, amount: float) -> Take:
        """The same by one thread of each rank."""
        return Take(term, amount / self.ranks, self.on_node)

    def new_pages(self, amount: float) -> list[Part]:
        """Memory of that size that nobody has touched yet, by all threads of all ranks."""
        return [self.shared_out("fault", amount), self.shared_out("recall", amount)]

    def sent(self, amount: float, messages: float = 0.0) -> list[Part]:
        """Bytes and messages that one rank receives, while all others do."""
        return [Take(self.message, messages), Take(self.link, amount, self.on_node)]


def reading(
    region: Region,
    way: str,
    use: Use,
    *,
    rows: int = 0,
    times: float = 1.0,
    whole_rows: bool = True,
    fresh: bool = True,
) -> list[Part]:
    """The parts of reading a whole region once (or `times`), each number by one rank.

    `rows` are those of a rank's block as the file stores it, which are `whole_rows` or parts of them.
    `fresh`: into memory that nobody has touched yet.
    """
    size = region.bytes * times
    pages = use.new_pages(size) if fresh else []
    if region.generator:
        return [use.shared_out("generate", size), *pages]
    if region.encoding == "text":
        end = region.file_bytes if region.text_end < 0 else region.text_end
        return [use.shared_out("parse", max(0, end) * times), *_spread_out(use, size, way), *pages]
    if region.chunks is not None:
        return [use.shared_out("unpack", size), *_spread_out(use, size, "two_phase"), *pages]
    term = at("device/read" if way == "uncached" or is_cold(region, use) else "read", region.path)
    if way in _ROOT:
        return [
            Take(term, size),
            Take("copy", 2 * size),
            *use.sent(size * (use.ranks - 1) / use.ranks),
            *pages,
        ]
    calls = rows if not whole_rows else size / use.ranks / LONG_CALL
    parts: list[Part] = [use.by_way(way, term, size), Take("call", calls * times / use.threads), *pages]
    parts += _through_buffer(use, size, way)
    return parts + (_spread_out(use, size, way) if way in _EXCHANGING else [])


def touching(region: Region, use: Use) -> list[Part]:
    """The parts of computing with the pages of a mapped file, beside what is computed: those that are not in
    memory come from the device, and many are mapped at once."""
    if is_cold(region, use):
        return [use.shared_out(at("device/read", region.path), region.bytes)]
    return [use.shared_out("fault", region.bytes / _AROUND)]


def is_cold(region: Region, use: Use) -> bool:
    """Whether the page cache of this machine, on which the ranks run, has next to nothing of a file."""
    return use.here and storage.cache_state(region.path) == "cold"


def at(term: str, path: str) -> str:
    """A term of files, on the file system of `path`."""
    mount = storage.mount_point(path) if path else ""
    return f"{term}{AT}{mount}" if mount else term


def into_cache(path: str) -> list[str]:
    """The terms of a byte that is written into a new page of the page cache, on the file system of `path`."""
    return [at("write", path), "recall"]


def writing(
    plan: Plan, target: Target | None, use: Use, *, rows: int = 0, whole_rows: bool = True
) -> list[Part]:
    """The parts of writing the result of `plan`; `target` is None where nothing is written."""
    if target is None:
        return []
    kind, way, dtype = target.format, plan.job.variant.write, plan.dtype
    numbers = plan.shape[0] * plan.shape[1]
    size = float(numbers * ITEMSIZE[dtype])
    if kind.text:
        text = numbers * characters(dtype) * 0.8
        written = [use.shared_out(term, text) for term in into_cache(target.path)]
        return [use.shared_out("format", text), *_spread_out(use, size, way), *written]
    terms = [at("device/write", target.path)] if way == "uncached" else into_cache(target.path)
    if way in _ROOT:
        return [*(Take(term, size) for term in terms), *use.sent(size * (use.ranks - 1) / use.ranks)]
    calls = rows if not whole_rows else size / use.ranks / LONG_CALL
    parts: list[Part] = [use.by_way(way, term, size) for term in terms]
    parts += [Take("call", calls / use.threads), *_through_buffer(use, size, way)]
    if not kind.one_array and not kind.folder:  # packed by the front when all is done
        parts.append(Take("pack", size))
    return parts + (_spread_out(use, size, way) if way in _EXCHANGING else [])


def verifying(inputs: Sequence[Region], output: float, target: Target | None, use: Use) -> list[Part]:
    """The parts of reading all files again, of which the result has `output` bytes."""
    files = [(region.path, float(region.bytes)) for region in inputs if not region.generator]
    files.append((target.path if target is not None else "", output))
    read = [use.shared_out(at("read", path), size) for path, size in files]
    return [*read, use.shared_out("copy", sum(size for _, size in files))]


def _through_buffer(use: Use, size: float, way: str) -> list[Part]:
    """All of it copied once more, where whole windows of the file are read or written."""
    return [use.shared_out("copy", 2 * size)] if way == "sieve" else []


def _spread_out(use: Use, size: float, way: str) -> list[Part]:
    """All of it exchanged among ranks, once."""
    if use.ranks == 1:
        return []
    share = size / use.ranks if way not in _ROOT else size
    return use.sent(share * (use.ranks - 1) / use.ranks, use.ranks - 1)
