"""Measurements in files: read, written, and kept as this machine's profile."""

from __future__ import annotations

import msgspec

from tilewise.base.errors import RunError, UsageError
from tilewise.base.staging import replace
from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import plural
from tilewise.lab.measurement.fit import DISTURBED, terms_of
from tilewise.lab.measurement.request import KINDS
from tilewise.lab.measurement.result import VERSION, Measurement
from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.machine.terms import Term
from tilewise.operations.prediction import machine_name


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
            measurement = msgspec.json.decode(file.read(), type=Measurement)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except UNDECODABLE as error:
        raise UsageError(
            f"{path} is not a measurement: {error}", "tilewise measure --json FILE makes one"
        ) from None
    if measurement.version != VERSION:
        raise UsageError(f"{path} is of version {measurement.version}, and this program knows {VERSION}")
    return measurement


def write(measurement: Measurement, path: str) -> None:
    """Replaces what is at `path` at once; RunError when that fails."""
    try:
        replace(path, encode(measurement))
    except OSError as error:
        raise RunError(f"the measurement cannot be written to {path}: {error.strerror or error}") from None


def keep(measurement: Measurement, facts: Facts) -> list[str]:
    """Store it as this machine's profile; return the files, none where the cache cannot be written.

    Terms of what it did not measure stay as they are, and so do quiet ones where it was disturbed: a warning
    of the measurement then says so. The measurement itself replaces the last one of the same kinds here.
    """
    held: list[str] = []
    found = terms_of(measurement.lines, facts.cores)

    def kept(old: dict[str, Term]) -> dict[str, Term]:
        busy = {name for name, term in found.items() if term.error >= DISTURBED}
        held.extend(name for name in found if name in busy and name in old and old[name].error < DISTURBED)
        return old | {name: term for name, term in found.items() if name not in held}

    times = dict.fromkeys(measurement.kinds, measurement.time)
    paths = [profile.store_measured(profile.host_key(facts.host, facts.cpu), times)]
    profile.store_terms(machine_name(facts), kept)
    if held:
        measurement.warnings.append(
            f"{plural(len(held), 'figure')} measured on a disturbed machine are not stored: the profile has"
            f" quiet ones, of {held[0]} ; measure again when nothing else runs"
        )
    whole = set(KINDS) == set(measurement.kinds)
    path = profile.measurement_path(facts.host, "all" if whole else "-".join(measurement.kinds))
    paths += [path] if profile.write(path, encode(measurement)) else []
    return [path for path in paths if path]
