"""Which algorithm decomposes a matrix: what was asked for, what flags lead to, or what the rule picks.

The stated rule. Flags that only one algorithm knows decide for it. Else `randomized` where K components are
wanted and a full decomposition would not fit in memory, or would be long and cost more than `READINGS`
readings of the file with blocks of K + oversample vectors. How many readings it takes depends on the
singular values, which nobody knows before: 3 where they fall fast, 20 to 40 where they hardly do; it goes on
until all are exact. A full one is exact at once, and is taken where it is short, and with `--energy`, where
K is not known. Else `local` on one rank where min(M, N) is at most `LOCAL_MAX`; above that, and from
`HIGH_LEAST` on where A is much longer one way, `two_stage` for real numbers on one node where it fits in
memory; and `jacobi` for all others, and, once they are read, for matrices of which the others would lose
small singular values.
"""

from __future__ import annotations

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, listing, plural
from tilewise.files.region import Region
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.operations.svd.need import DOUBLE, full_bytes, two_stage_bytes
from tilewise.operations.svd.options import ALGORITHMS, OVERSAMPLE, Svd
from tilewise.operations.svd.shape import Shape
from tilewise.planning import need, where
from tilewise.planning.names import Algorithm

# The shorter side up to which one rank takes gesdd, which is the fastest there; above it two stages are.
LOCAL_MAX = 512
HIGH_LEAST = 64  # columns of a matrix that is much longer one way, from which two stages are faster, too
LONG = 5e9  # M·N·min(M, N) from which a full decomposition for a few components is a waste: seconds
FULL = 20  # operations of a full decomposition, over M·N·min(M, N)
FEWEST, READINGS, MOST = 3, 20, 40  # of the file, that `randomized` may take; READINGS it is expected to
READ = 30  # operations that could be done while a number is read


def algorithm_of(
    shape: Shape, source: Region, options: Svd, facts: Facts, joined: Join | None, why: list[str]
) -> Algorithm:
    """The algorithm that was asked for, that flags lead to, or that the rule picks."""
    if options.algorithm is not None:
        return ALGORITHMS[options.algorithm]
    if options.resumed is not None:
        return ALGORITHMS[options.resumed.variant.algorithm]
    jacobi, randomized = options.of_jacobi(), options.of_randomized()
    if jacobi and randomized:
        raise UsageError(
            f"{jacobi[0]} is for jacobi and {randomized[0]} for randomized; they contradict each other"
        )
    if randomized:
        why.append(
            f"randomized: {listing(randomized)} {'requires' if len(randomized) == 1 else 'require'} it"
        )
        return ALGORITHMS["randomized"]
    if jacobi:
        why.append(f"jacobi: {listing(jacobi)} {'requires' if len(jacobi) == 1 else 'require'} it")
        return ALGORITHMS["jacobi"]
    if options.checkpoint and not options.again:
        why.append("jacobi: --checkpoint requires it, as the others keep nothing to go on from")
        return ALGORITHMS["jacobi"]
    room = options.memory if options.memory is not None else int(facts.memory_available * need.SHARE)
    if (options.components is not None or options.energy is not None) and shape.number == DOUBLE:
        pays = options.components is not None and few(shape)
        if (pays or options.energy is not None) and (full := full_bytes(shape)) > room:
            why.append(f"randomized: all components would take {bytes_text(full)} of memory")
            return ALGORITHMS["randomized"]
        if pays and shape.work >= LONG:
            why.append(
                f"randomized: {plural(shape.components, 'component')} of {shape.least}, for which some "
                "readings are expected to take less than all of them would"
            )
            return ALGORITHMS["randomized"]
    ranks = joined.size if joined is not None else options.ranks
    alone = ranks in (None, 1) and options.grid in (None, (1, 1))
    nodes = 1 if ranks == 1 else where.ground(options, facts, joined).count
    in_two = two_stage_bytes(shape, source, options, options.again, facts.cores)
    fits = in_two <= room and shape.number == DOUBLE and nodes == 1
    high = fits and shape.least >= HIGH_LEAST and is_high(shape.most, shape.least)
    if shape.least <= LOCAL_MAX and alone and options.tolerance is None and not high:
        why.append(
            "local: gesdd is faster for so few columns; jacobi takes over where rows or columns differ so "
            "much in scale that small singular values would be lost"
        )
        return ALGORITHMS["local"]
    if options.tolerance is not None:
        why.append("jacobi: --tolerance applies to it and to randomized")
        return ALGORITHMS["jacobi"]
    if shape.number > DOUBLE:
        why.append("jacobi: two_stage takes real numbers only")
    elif nodes > 1:
        why.append(f"jacobi: {plural(nodes, 'node')} share it")
    elif shape.least <= LOCAL_MAX and not (alone and high):
        why.append(f"jacobi: {plural(ranks or 1, 'rank')} share it")
    elif in_two > room:
        why.append(f"jacobi: two_stage would take {bytes_text(in_two)} of memory")
    else:
        fast = "a matrix that is much longer one way" if high else f"more than {LOCAL_MAX} columns"
        why.append(
            f"two_stage: the fastest for {fast}; jacobi takes over where rows or "
            "columns differ so much in scale that small singular values would be lost"
        )
        return ALGORITHMS["two_stage"]
    return ALGORITHMS["jacobi"]


def is_high(most: int, least: int) -> bool:
    """Whether `two_stage` finds a triangle first, faster than LAPACK does; the sides of A are so long."""
    return 3 * most >= 5 * least


def few(shape: Shape) -> bool:
    """Whether the components that are wanted are expected to take less than all would."""
    block = shape.components + OVERSAMPLE
    return READINGS * (4 * block + READ) <= FULL * shape.least
