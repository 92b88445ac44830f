"""Plans a conversion, or the making of a matrix by rule: bands of a bounded size pass through all ranks."""

from __future__ import annotations

import sys

import msgspec

from tilewise.errors import UsageError
from tilewise.files import TEXTS, format_name
from tilewise.files.dtypes import ITEMSIZE, in_memory
from tilewise.files.region import Region
from tilewise.files.target import Target, check_holds
from tilewise.launch.job import Job, Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.plan import grid, io, need, rule
from tilewise.plan.choices import Choices
from tilewise.plan.plan import Plan, finish, new_id

BAND = 32 << 20  # bytes of a rank's band, less where many ranks share a node
TEXT_BAND = 8 << 20  # where text is parsed or formatted, so that its numbers are still in the cache
BANDS_ON_NODE = 64 << 20  # bytes of the bands of all its ranks
LEAST_BAND = 1 << 20
_WORK = {"generate": 100, "text": 100, "binary": 10}  # multiply-adds that one number is worth
_WIDE_INTEGERS = ("int64", "uint64")  # of a text, these are not read by way of float64


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the output shall be; None where it follows from input and format."""

    dtype: str | None = None
    order: str | None = None
    header: bool = False


def plan_convert(
    source: Region,
    target: Target | None,
    wanted: Wanted,
    choices: Choices,
    facts: Facts,
    joined: Join | None = None,
    command: str = "convert",
) -> Plan:
    """The plan for writing `source` to `target`; raises UsageError for choices that make no sense.

    `command` may be `generate`: the source then makes its numbers by rule.
    """
    _refuse(choices, command)
    dtype = wanted.dtype or source.dtype
    if target is not None:
        check_holds(target, dtype)
    order = io.order_of(target, wanted.order)
    if source.encoding == "text" and dtype in _WIDE_INTEGERS and not source.dtype.startswith("complex"):
        source = msgspec.structs.replace(source, dtype=dtype)
    why: list[str] = []
    kind = "generate" if command == "generate" else source.encoding
    work = float(source.rows) * source.columns * _WORK[kind]
    ranks, threads, nodes = rule.spread(choices, facts, work, why, joined=joined)
    shape, _ = grid.choose(command, ranks, choices.grid or (ranks, 1), source.rows, source.columns)
    read, write = io.fitting(choices, [source], target)
    variant = Variant(
        algorithm="local",
        exchange="none",
        read=read,
        write=write,
        grid=shape,
        ranks=ranks,
        threads=threads,
        kernel=choices.kernel,
        remainder=choices.remainder,
    )
    band = _band(ranks, nodes, choices.memory)
    to_text = target is not None and format_name(target.name) in TEXTS
    if to_text or source.encoding == "text":
        band = min(band, TEXT_BAND)
    if to_text:
        band = max(band, -(-source.columns // shape[1]) * max(ITEMSIZE[dtype], ITEMSIZE[source.dtype]))
    turned = order != source.order and not source.generator
    changed = dtype != source.dtype or source.byte_order != sys.byteorder
    # A matrix smaller than its bands needs no more than itself.
    share = -(-max(source.rows, 1) * max(source.columns, 1) // ranks) * ITEMSIZE[dtype]
    required = need.convert_need(min(band, 2 * share), 1 + turned + changed, variant, nodes)
    need.require_fit(required, choices.memory, facts.memory_available, facts.shared_memory)
    warnings: list[str] = []
    if choices.verify == "auto" and command == "convert":
        why.append("not read back: that would take more than 5 % of the time; --verify fast does it")
    job = Job(
        id=new_id(),
        command=command,
        inputs=[source],
        output=None,
        variant=variant,
        dtype=in_memory(dtype),
        verify="fast" if choices.verify == "fast" else "off",
        read_back=choices.verify == "fast",
        band_bytes=max(band, ITEMSIZE[dtype]),
    )
    return finish(
        job=job,
        shape=(source.rows, source.columns),
        dtype=dtype,
        order=order,
        header=wanted.header,
        choices=choices,
        facts=facts,
        need=required,
        reasons=why,
        warnings=warnings,
        flops=0.0,
        nodes=nodes,
        joined=joined is not None,
        choosable=("ranks", "threads", "io", "grid"),
    )


def _refuse(choices: Choices, command: str) -> None:
    for flag, value in (("--algorithm", choices.algorithm), ("--exchange", choices.exchange)):
        if value is not None:
            raise UsageError(f"{flag} {value} makes no sense with {command}: every rank works for itself")
    if choices.repeat > 1 or choices.warmup > 0:
        raise UsageError(
            f"--repeat and --warmup make no sense with {command}: nothing of it is in memory alone",
            "tilewise study run, to repeat whole runs",
        )
    if choices.verify == "serial" or (command == "generate" and choices.verify == "fast"):
        known = (
            "there is nothing to verify" if command == "generate" else "--verify fast reads the output back"
        )
        raise UsageError(f"--verify {choices.verify} makes no sense with {command}: {known}")


def _band(ranks: int, nodes: int, cap: int | None) -> int:
    """Bytes of one of a rank's three bands."""
    on_node = -(-ranks // nodes)
    band = max(LEAST_BAND, min(BAND, BANDS_ON_NODE // on_node))
    if cap is not None:
        room = cap // on_node - need.FIXED - need.STAGING  # as if all three and the staging were needed
        band = max(LEAST_BAND, min(band, room // 3))
    return band
