"""How a product reads and writes, where the user left that open; part of the stated rule.

Reading: `uncached` where operands are read again and again and the page cache has no room for them. On one
rank, `mapped` where it can compute with the numbers as they lie in the files, on a local
file system; nothing is copied then. Writing: `uncached` where the output is large and a probe of its folder
says that the device takes it in half the time of the computing or less: the finished part of C is written
while the rest is computed. The folder is asked once a day. In every other case `positioned`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, listing, rate_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region, is_encoded
from tilewise.files.target import Target, check_order
from tilewise.launch.job import Variant
from tilewise.machine import storage
from tilewise.machine.storage import Probed
from tilewise.planning.names import ONLY_READ
from tilewise.planning.task import Task

LARGE = 64 << 20  # bytes of output from which writing early is worth a probe
HIDDEN = 0.5  # of the computing time
# ROMIO's two-phase buffering copies every byte twice and waits in between; for blocks with long rows plain
# positioned access below the file view was 2 to 30 times faster (4096², 2 and 4 ranks), and sieving only
# reads and locks more. A --hint of the same name wins.
HINTS = {
    "romio_cb_read": "disable",
    "romio_cb_write": "disable",
    "romio_ds_read": "disable",
    "romio_ds_write": "disable",
}
_VIEWS = ("collective", "split_collective", "independent", *ONLY_READ)
SHORT_ROW = 16 << 10  # bytes; of longer ones a part is read sooner by a call of its own (measured)
_FLOPS = 50e9  # a core, each second


def choose(
    task: Task[Any], variant: Variant, dtype: str, plain_output: bool = True
) -> tuple[Variant, Probed | None]:
    """The variant with reading and writing chosen for a product; reasons go to the task.

    Also what the probe found, to be kept. `plain_output`: numbers go to the file row by row in this machine's
    byte order. Writes nothing that has a name. Leaves a choice of the user's as it is.
    """
    operands, choices, facts, why = task.inputs, task.options, task.facts, task.why
    folder = os.path.dirname(task.output.path)
    if variant.algorithm != "local":
        return variant, None
    probed: Probed | None = None
    read, write = variant.read, variant.write
    if choices.io.read is None and any(in_place(region, dtype) for region in operands):
        read = "mapped"
        why.append("read mapped: the one rank computes with the files' own pages")
    (m, k), (_, n) = operands[0].shape, operands[1].shape
    size = m * n * ITEMSIZE[dtype]
    if choices.io.write is None and write == "positioned" and plain_output and size >= LARGE:
        device, probed = storage.device_of(folder, facts.host)
        seconds = 2.0 * m * n * k / (_FLOPS * max(1, min(variant.threads, facts.cores)))
        if device is not None and size / device.bytes_per_second <= HIDDEN * seconds:
            write = "uncached"
            rate = rate_text(device.bytes_per_second, "B/s")
            why.append(f"write uncached: the device takes {rate} while the rest is computed")
    return msgspec.structs.replace(variant, read=read, write=write), probed


def order_of(target: Target | None, wanted: str | None) -> str:
    """The format's own order of storage unless another is `wanted`; UsageError where it has only that."""
    if target is None:
        return wanted or "C"
    order = wanted or target.natural_order
    check_order(target, order)
    return order


def fitting(task: Task[Any]) -> tuple[str, str]:
    """Reading and writing strategy, as far as the files leave a choice.

    A folder of tiles is read and written `per_rank`, whatever is asked for the other side, and `per_rank`
    takes nothing else. A text is parsed and formatted by all ranks in panels (`two_phase`) unless rank 0 is
    to do it alone, and packed chunks are unpacked so. Raises UsageError where `per_rank` meets no tiles, or
    where chunks are to be read in another way.
    """
    choices, target = task.options, task.target
    files = [region for region in task.inputs if not region.generator]
    to_tiles = target is not None and target.format.folder
    to_text = target is not None and target.format.text
    from_tiles = any(region.tiles for region in files)
    if "per_rank" in (choices.io.read, choices.io.write) and not (from_tiles or to_tiles):
        names = [region.name for region in files] + ([target.name] if target is not None else [])
        raise UsageError(
            f"--io per_rank expects a folder of tiles, but there is only {listing(names, 'and')}",
            "a name that ends in .tiles or .zarr, or --io positioned",
        )

    def side(choice: str | None, tiles: bool, parsed: bool) -> str:
        if tiles:
            return "per_rank"
        wanted = "positioned" if choice in (None, "per_rank") else choice
        return "two_phase" if parsed and wanted not in ("root", "root_collective") else wanted

    read = choices.io.read or _of_parts(task, files)
    all_tiles = bool(files) and all(region.tiles for region in files)
    parsed = bool(files) and all(region.encoding != "binary" for region in files)
    return side(read, all_tiles, parsed), side(choices.io.write, to_tiles, to_text)


def _of_parts(task: Task[Any], files: Sequence[Region]) -> str | None:
    """How to read where only parts of the stored rows are wanted; None where that makes no difference.

    A call for each row costs more than the bytes between them where rows are short.
    """
    plain = [region.uncut for region in files if region.narrow and region.uncut.in_one_piece]
    rows = [(each.rows if each.order == "F" else each.columns) * ITEMSIZE[each.dtype] for each in plain]
    if not rows or max(rows) >= SHORT_ROW:
        return None
    read = "sieve" if any(is_encoded(each) or not storage.is_local(each.path) for each in plain) else "mapped"
    task.why.append(f"read {read}: parts of many short rows")
    return read


def of_streams(task: Task[Any], variant: Variant, room: int) -> Variant:
    """The variant with reading chosen for operands that are read again and again.

    `room` are the bytes that the job leaves for the page cache.
    """
    files = [region for region in task.inputs if not region.generator]
    if task.options.io.read is not None or variant.read != "positioned" or not are_plain(files):
        return variant
    size = sum({(region.path, region.offset): region.bytes for region in files}.values())
    paths = {region.path for region in files}
    # A file server's client asks for more than is wanted, and does well with it.
    if size <= room or not all(storage.is_local(path) and storage.takes_direct(path) for path in paths):
        return variant
    if all(storage.cache_state(path) == "cached" for path in paths):
        return variant
    task.why.append(f"read uncached: the page cache has no room for the {bytes_text(size)} of A and B")
    return msgspec.structs.replace(variant, read="uncached")


def are_plain(regions: Sequence[Region]) -> bool:
    """True if the numbers of each lie in one file as bytes, or are made."""
    files = [region for region in regions if not region.generator]
    return all(region.in_one_piece for region in files)


def hints(variant: Variant, given: dict[str, str]) -> dict[str, str]:
    """The MPI-IO hints for this variant: the measured defaults where MPI-IO is used, under what was given."""
    return {**HINTS, **given} if set(_VIEWS) & {variant.read, variant.write} else given


def in_place(region: Region, dtype: str) -> bool:
    """True if a region's numbers can be computed with as they lie in the file."""
    return (
        region.in_one_piece
        and region.dtype == dtype
        and region.byte_order == sys.byteorder
        and region.rows * region.columns > 0
        and storage.is_local(region.path)
    )
