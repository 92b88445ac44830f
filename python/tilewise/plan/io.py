"""How a product on one rank reads and writes, where the user left that open; part of the stated rule.

Reading: `mapped` where the one rank can compute with the numbers as they lie in the files, on a local
file system; nothing is copied then. Writing: `uncached` where the output is large and a probe of its folder
says that the device takes it in half the time of the computing or less: the finished part of C is written
while the rest is computed. In every other case `positioned`.
"""

from __future__ import annotations

import os
import sys

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.machine import probe, storage
from tilewise.plan.plan import Plan
from tilewise.units import rate_text

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
_FLOPS = 50e9  # a core, each second
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p", "fuse")


def refine(plan: Plan, folder: str) -> Plan:
    """The plan with reading and writing chosen for this output folder.

    Writes nothing that has a name. Leaves a choice of the user's as it is.
    """
    variant, reasons = plan.job.variant, list(plan.reasons)
    if variant.algorithm != "local":
        return _with(plan, variant, reasons)
    read, write = variant.read, variant.write
    if plan.choices.read is None and any(in_place(region, plan.job.dtype) for region in plan.job.inputs):
        read = "mapped"
        reasons.append("read mapped: the one rank computes with the files' own pages")
    size = plan.shape[0] * plan.shape[1] * ITEMSIZE[plan.dtype]
    if plan.choices.write is None and size >= LARGE:
        rate = probe.direct_write_rate(folder)
        cores = min(variant.threads, plan.facts.cores)
        flops = 2.0 * plan.shape[0] * plan.shape[1] * plan.job.inputs[0].shape[1]
        if rate is not None and size / rate <= HIDDEN * flops / (_FLOPS * max(cores, 1)):
            write = "uncached"
            reasons.append(
                f"write uncached: the device takes {rate_text(rate, 'B/s')} while the rest is computed"
            )
    return _with(plan, msgspec.structs.replace(variant, read=read, write=write), reasons)


def _with(plan: Plan, variant: Variant, reasons: list[str]) -> Plan:
    job = msgspec.structs.replace(plan.job, variant=variant, hints=hints(variant, plan.job.hints))
    return msgspec.structs.replace(plan, job=job, reasons=reasons)


def hints(variant: Variant, given: dict[str, str]) -> dict[str, str]:
    """The MPI-IO hints for this variant: the measured defaults where MPI-IO is used, under what was given."""
    return {**HINTS, **given} if "collective" in (variant.read, variant.write) else given


def in_place(region: Region, dtype: str) -> bool:
    """Whether a region's numbers can be computed with as they lie in the file."""
    return (
        not region.generator
        and region.dtype == dtype
        and region.byte_order == sys.byteorder
        and region.rows * region.columns > 0
        and not storage.file_system(os.path.realpath(region.path)).startswith(_REMOTE)
    )
