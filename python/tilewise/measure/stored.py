"""Measurements in files: read, written, and kept as this machine's profile."""

from __future__ import annotations

import os

import msgspec

from tilewise.errors import RunError, UsageError
from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.machine.model import Model
from tilewise.machine.profile import Measured, Peak
from tilewise.machine.replacing import replace
from tilewise.measure.result import VERSION, Measurement

_PARTS = {"ping": ("ping", "collective"), "file": ("file",), "memory": ("memory",), "compute": ("compute",)}


def encode(measurement: Measurement) -> bytes:
    """JSON, indented, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(measurement), indent=1) + b"\n"


def schema() -> bytes:
    """The JSON schema that every measurement fits."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Measurement)), indent=1) + b"\n"


def read(path: str) -> Measurement:
    """The measurement in the file at `path`; UsageError for anything else."""
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(), type=Measurement)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is no measurement: {error}", "tilewise measure --json FILE makes one"
        ) from None
    if found.version != VERSION:
        raise UsageError(f"{path} is of version {found.version}, and this program knows {VERSION}")
    return found


def write(measurement: Measurement, path: str) -> None:
    """Replaces what is at `path` at once; RunError when that fails."""
    try:
        replace(path, encode(measurement))
    except OSError as error:
        raise RunError(f"the measurement cannot be written to {path}: {error.strerror or error}") from None


def keep(measurement: Measurement, facts: Facts) -> list[str]:
    """Stores it as this machine's profile; returns the files, none where the cache cannot be written.

    The profile's costs of kinds that it did not measure stay as they are. The measurement itself replaces the
    last one of the same kinds on this host.
    """

    def joined(old: Measured | None) -> Measured:
        known = old or Measured(Model())
        times = {**known.times, **dict.fromkeys(measurement.kinds, measurement.time)}
        return Measured(merged(known.model, measurement.model, measurement.kinds), times)

    key = profile.host_key(facts.host, facts.cpu)
    paths = [profile.store_measured(key, joined, peaks(measurement, facts))]
    whole = set(_PARTS) == set(measurement.kinds)
    path = profile.measurement_path(facts.host, "all" if whole else "-".join(measurement.kinds))
    paths += [path] if profile.write(path, encode(measurement)) else []
    return [path for path in paths if path]


def merged(old: Model, new: Model, kinds: list[str]) -> Model:
    """`new` for what was measured, `old` for the rest."""
    prefixes = tuple(f"{part}/" for kind in kinds for part in _PARTS[kind])
    costs = [cost for cost in old.costs if not cost.key.startswith(prefixes)]
    return Model(
        costs=[*costs, *(cost for cost in new.costs if cost.key.startswith(prefixes))],
        injection=new.injection if "ping" in kinds and new.injection is not None else old.injection,
        copy_rate=new.copy_rate if "memory" in kinds or old.copy_rate is None else old.copy_rate,
    )


def peaks(measurement: Measurement, facts: Facts) -> dict[str, Peak]:
    """The fastest product of each type and thread count, under the keys that jobs look for."""
    kernel = str(measurement.environment.get("blas_kernel", ""))
    forced = os.environ.get("OPENBLAS_CORETYPE", "")
    found: dict[str, Peak] = {}
    for line in measurement.lines:
        rate = line.rate()
        if line.kind != "compute" or rate is None or line.threads > facts.cpus:
            continue
        name = profile.peak_key(facts.host, facts.cpu, line.dtype, line.threads, forced)
        if name not in found or found[name].flops_per_second < rate:
            found[name] = Peak(rate, kernel)
    return found
