"""This machine's terms: what runs have taught, its measured peaks, and what is assumed of the rest.

Of products that is what the width of the processor's registers lets expect: KINDS is of 256 bits.
"""

from __future__ import annotations

from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.machine.terms import GEMM, KINDS, Machine, Term, gemm

_PEAK_ERROR = 0.15  # of a rate that products have reached: others may not
# Of processors with these flags, operations in a cycle over those with AVX2 and its fused multiply-add.
_WIDTHS = {"avx512f": 2.0, "avx2": 1.0, "asimd": 0.5}
_NARROW = 0.25


def machine_here(facts: Facts, key: str) -> Machine:
    """The machine that `facts` are of, which the profile has under `key`."""
    stored = profile.load()
    terms = dict(stored.terms.get(key, {}))
    for name, peak in _peaks(stored, facts).items():
        terms.setdefault(name, peak)  # what was measured or learned of the term itself is nearer
    for name, supposed in _supposed(facts).items():
        terms.setdefault(name, supposed)
    nodes = len(facts.granted.nodes) if facts.granted is not None else 1
    return Machine(
        name=facts.host, nodes=nodes, cores=facts.cores, memory=facts.memory_available, terms=terms
    )


def _supposed(facts: Facts) -> dict[str, Term]:
    """Rates of products of floating-point numbers, by what the processor has, where that is known."""
    if not facts.flags:
        return {}
    wider = next((width for flag, width in _WIDTHS.items() if flag in facts.flags), _NARROW)
    usual = {name: kind.assumed for name, kind in KINDS.items() if name.startswith(GEMM)}
    del usual[gemm("int64")]
    return {name: term.times(1 / wider, term.source, term.error) for name, term in usual.items()}


def _peaks(stored: profile.Profile, facts: Facts) -> dict[str, Term]:
    """Rates of products that were measured here, of a core while as many as possible were at work."""
    found: dict[str, Term] = {}
    most: dict[str, int] = {}
    for key, peak in stored.peaks.items():
        whose = f"{profile.host_key(facts.host, facts.cpu)}|"
        dtype, _, rest = key.removeprefix(whose).partition("|")
        cores = rest.partition("|")[0]
        if not key.startswith(whose) or not cores.isdigit() or f"{GEMM}{dtype}" != gemm(dtype):
            continue
        count = max(1, int(cores))
        if count > most.get(dtype, 0):
            most[dtype] = count
            found[gemm(dtype)] = Term(
                rate=peak.flops_per_second / count, error=_PEAK_ERROR, source="measured"
            )
    return found
