"""Machines: this one, by what is known of it, and others, which a file describes."""

from __future__ import annotations

import json
import subprocess

import msgspec

from tilewise.base.errors import UsageError, clean
from tilewise.base.undecodable import UNDECODABLE
from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.machine.host import REPORTED_AFTER, free_page_reporting
from tilewise.machine.terms import GEMM, KINDS, Machine, Term, checked, gemm

_FLAG = "--machine"
# Of processors with these flags, operations in a cycle over those with AVX2 and its fused multiply-add.
_WIDTHS = {"avx512f": 2.0, "avx2": 1.0, "asimd": 0.5}
_NARROW = 0.25
_PATIENCE = 30.0  # seconds; the measurement takes about one


def local_machine(facts: Facts, key: str) -> Machine:
    """The machine that `facts` are of, which the profile has under `key`."""
    known = profile.load()
    terms = dict(known.terms.get(key, {}))
    for name, supposed in _supposed(facts).items():
        terms.setdefault(name, supposed)
    nodes = len(facts.granted.nodes) if facts.granted is not None else 1
    return Machine(
        name=facts.host,
        nodes=nodes,
        cores=facts.cores,
        memory=facts.memory_available,
        rested=free_page_reporting() and profile.idle_seconds() > REPORTED_AFTER,
        terms=terms,
        habits=known.habits.get(key, {}),
    )


def _supposed(facts: Facts) -> dict[str, Term]:
    """Rates of products of floating-point numbers, by what the processor has, where that is known."""
    if not facts.flags:
        return {}
    wider = next((width for flag, width in _WIDTHS.items() if flag in facts.flags), _NARROW)
    usual = {name: kind.assumed for name, kind in KINDS.items() if name.startswith(GEMM)}
    del usual[gemm("int64")]
    return {name: term.times(1 / wider, term.source, term.error) for name, term in usual.items()}


def read_machine(path: str) -> Machine:
    """The machine that the JSON file at `path` describes, as `tilewise.machine.terms` has it; UsageError."""
    try:
        with open(path, "rb") as file:
            machine = msgspec.json.decode(file.read(), type=_Written)
    except OSError as error:
        raise UsageError(f"{_FLAG} {path}: cannot be read: {error.strerror}") from None
    except UNDECODABLE as error:
        raise UsageError(
            f"{_FLAG} {path}: does not describe a machine: {error}", "docs/how-to/plan-for-another-machine.md"
        ) from None
    if wrong := checked(machine):
        raise UsageError(f"{_FLAG} {path}: {wrong}")
    given = {
        name: msgspec.structs.replace(term, source="given" if term.source == "assumed" else term.source)
        for name, term in machine.terms.items()
    }
    name = " ".join(clean(machine.name or path).split())
    return msgspec.structs.replace(machine, name=name, terms=given, habits={})


class _Written(Machine, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine in whose description a word that means nothing is a mistake."""


def stored_tile(item_bytes: int, threads: int, facts: Facts) -> profile.MeasuredTile | None:
    """The best tile for items of that many bytes (1 to 16) on so many threads; None before that is known."""
    return profile.load().tiles.get(profile.tile_key(facts.host, facts.cpu, item_bytes, threads))


def measure_tile(item_bytes: int, threads: int, facts: Facts, worker: str) -> None:
    """Measure the tile with the program `worker`, and store it; where it cannot tell, nothing is stored."""
    command = [worker, "--transpose-tile", str(item_bytes), str(threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        fastest = json.loads(done.stdout)
        tile = profile.MeasuredTile(
            rows=int(fastest["rows"]),
            columns=int(fastest["columns"]),
            streaming=bool(fastest["streaming"]),
            bytes_per_second=float(fastest["bytes_per_second"]),
        )
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return
    profile.store_tile(profile.tile_key(facts.host, facts.cpu, item_bytes, threads), tile)
