"""What it costs to read inputs and to write a result, by strategy, format and the state of the page cache.

    positioned   each rank calls for each row of its block, or a few times for whole rows
    root         rank 0 calls for everything, and all else is sent: a link, and one core, do all of it
    mapped       on one rank nothing is copied: pages are touched when they are computed with
    two_phase    whole panels, then an exchange among ranks
    uncached     the device, and nothing else

Where these come from: docs/design/005 and 029, and `tilewise measure file`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.job import Variant
from tilewise.machine import storage
from tilewise.planning.cost import Part, Take
from tilewise.planning.need import characters
from tilewise.planning.plan import Plan
from tilewise.planning.where import Spread

_ROOT = ("root", "root_collective")
_EXCHANGING = ("collective", "split_collective", "two_phase")
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

    def by_ranks(self, term: str, amount: float) -> Take:
        """The same by one thread of each rank."""
        return Take(term, amount / self.ranks, self.on_node)

    def sent(self, amount: float, messages: float = 0.0) -> list[Part]:
        """Bytes and messages that one rank receives, while all others do."""
        return [Take(self.message, messages), Take(self.link, amount, self.on_node)]


def reading(
    region: Region, way: str, use: Use, *, rows: int = 0, times: float = 1.0, whole_rows: bool = True
) -> list[Part]:
    """The parts of reading a whole region once (or `times`), each number by one rank.

    `rows` are those of a rank's block as the file stores it, which are `whole_rows` or parts of them.
    """
    size = region.bytes * times
    if region.generator:
        return [use.shared_out("generate", size)]
    if region.encoding == "text":
        end = region.file_bytes if region.text_end < 0 else region.text_end
        return [use.shared_out("parse", max(0, end) * times), *_spread_out(use, size, way)]
    if region.chunks is not None:
        return [use.shared_out("unpack", size), *_spread_out(use, size, "two_phase")]
    if way == "mapped" and use.ranks == 1:
        return []
    parts: list[Part] = []
    if way in _ROOT:
        parts += [Take("read", size)]
        parts += use.sent(size * (use.ranks - 1) / use.ranks)
        return parts
    cold = way == "uncached" or (use.here and storage.cache_state(region.path) == "cold")
    parts.append(use.by_ranks("device/read", size) if cold else use.shared_out("read", size))
    calls = rows if not whole_rows else size / use.ranks / LONG_CALL
    parts.append(Take("call", calls * times / use.threads))
    return parts + (_spread_out(use, size, way) if way in _EXCHANGING else [])


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
        return [use.shared_out("format", text), *_spread_out(use, size, way), use.shared_out("write", text)]
    if way in _ROOT:
        return [Take("write", size), *use.sent(size * (use.ranks - 1) / use.ranks)]
    term = "device/write" if way == "uncached" else "write"
    calls = rows if not whole_rows else size / use.ranks / LONG_CALL
    parts: list[Part] = [use.shared_out(term, size), Take("call", calls / use.threads)]
    if not kind.one_array and not kind.folder:  # packed by the front when all is done
        parts.append(Take("pack", size))
    return parts + (_spread_out(use, size, way) if way in _EXCHANGING else [])


def verifying(inputs: Sequence[Region], output: float, use: Use) -> list[Part]:
    """The parts of reading all files again, of which the result has `output` bytes."""
    size = output + sum(region.bytes for region in inputs if not region.generator)
    return [use.shared_out("read", size), use.shared_out("copy", size)]


def _spread_out(use: Use, size: float, way: str) -> list[Part]:
    """All of it exchanged among ranks, once."""
    if use.ranks == 1:
        return []
    share = size / use.ranks if way not in _ROOT else size
    return use.sent(share * (use.ranks - 1) / use.ranks, use.ranks - 1)
