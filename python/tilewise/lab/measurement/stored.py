"""Measurements in files: read, written, and kept as this machine's profile."""

from __future__ import annotations

import msgspec

from tilewise.base.errors import RunError, UsageError
from tilewise.base.staging import replace
from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import plural
from tilewise.lab.measurement.fit import DISTURBED, terms_of
from tilewise.lab.measurement.result import VERSION, Measurement
from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.machine.model import FittedCurve, Model
from tilewise.machine.profile import FittedKinds
from tilewise.machine.terms import GEMM, Term
from tilewise.operations.prediction import machine_name

_PARTS = {"ping": ("ping", "collective"), "file": ("file",), "memory": ("memory",), "compute": ("compute",)}
_KIND_OF = {"injection": "ping", "copy_rate": "memory"}  # what else a model has beside costs


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
    """Stores it as this machine's profile; returns the files, none where the cache cannot be written.

    The profile's costs of kinds that it did not measure stay as they are, and so do quiet ones where it was
    disturbed: a warning of the measurement then says so. The measurement itself replaces the last one of the
    same kinds on this host.
    """
    held: list[str] = []

    def joined(old: FittedKinds | None) -> FittedKinds:
        known = old or FittedKinds(Model())
        model, quiet = merged(known.model, measurement.model, measurement.kinds)
        held.extend(quiet)
        times = {**known.times, **dict.fromkeys(measurement.kinds, measurement.time)}
        return FittedKinds(model, times)

    key = profile.host_key(facts.host, facts.cpu)
    paths = [profile.store_measured(key, joined)]
    found = terms_of(measurement.lines, facts.cores)

    def kept(old: dict[str, Term]) -> dict[str, Term]:
        busy = {name for name, term in found.items() if term.error >= DISTURBED}
        stay = {name for name in busy if name in old and old[name].error < DISTURBED}
        held.extend(name for name in found if name.startswith(GEMM) and name in stay)
        return old | {name: term for name, term in found.items() if name not in stay}

    profile.store_terms(machine_name(facts), kept)
    if held:
        measurement.warnings.append(
            f"{plural(len(held), 'figure')} measured on a disturbed machine are not stored: the profile has"
            f" quiet ones, of {held[0]} ; measure again when nothing else runs"
        )
    whole = set(_PARTS) == set(measurement.kinds)
    path = profile.measurement_path(facts.host, "all" if whole else "-".join(measurement.kinds))
    paths += [path] if profile.write(path, encode(measurement)) else []
    return [path for path in paths if path]


def merged(old: Model, new: Model, kinds: list[str]) -> tuple[Model, list[str]]:
    """`new` for what was measured, `old` for the rest and for what is quiet there and disturbed in `new`;
    and the names of the latter."""
    before, after = _figures(old), _figures(new)
    again = {part for kind in kinds for part in _PARTS[kind]}
    of = {name: _KIND_OF.get(name, name.partition("/")[0]) for name in (*before, *after)}
    held = [n for n in after if n in before and of[n] in again and n in new.labels and n not in old.labels]
    fresh = {n for n in after if n not in held and (of[n] in again or n not in before)}
    stays = {n for n in before if n not in fresh and (n in held or n in _KIND_OF or of[n] not in again)}
    figures = {n: (after if n in fresh else before)[n] for n in (*before, *after) if n in fresh | stays}
    labels = {n: (new if n in fresh else old).labels.get(n, []) for n in figures}
    made = Model(
        costs=[cost for cost in figures.values() if isinstance(cost, FittedCurve)],
        labels={name: told for name, told in labels.items() if told},
        **{name: figures.get(name) for name in _KIND_OF},  # type: ignore[arg-type]
    )
    return made, held


def _figures(model: Model) -> dict[str, FittedCurve | float]:
    """All that `model` has, by what its labels call it."""
    rest = {name: value for name in _KIND_OF if (value := getattr(model, name)) is not None}
    return {**{cost.key: cost for cost in model.costs}, **rest}
