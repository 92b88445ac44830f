"""This machine's terms: what runs have taught and measurements found, and what is assumed of the rest.

Of products that is what the width of the processor's registers lets expect: KINDS is of 256 bits.
"""

from __future__ import annotations

from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.machine.host import REPORTED_AFTER, free_page_reporting
from tilewise.machine.terms import GEMM, KINDS, Machine, Term, gemm

# Of processors with these flags, operations in a cycle over those with AVX2 and its fused multiply-add.
_WIDTHS = {"avx512f": 2.0, "avx2": 1.0, "asimd": 0.5}
_NARROW = 0.25


def machine_here(facts: Facts, key: str) -> Machine:
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
