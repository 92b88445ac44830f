// How large the blocks of a product are, and whether our own tiles compute it: from a table of processors.
//
// A row is found by what the processor says of itself, and says nothing that changes from run to run: bits of results
// depend on it. `bench/run.py products` measures what a row for the machine at hand should say. How large blocks are
// follows from the caches and the tile alone, by an analytical model:
//
//     second-level cache, half of it:   A's block, rows × depth         the other half: panels of B that pass by, C
//     third-level cache, its share:     B's block, depth × columns
//
// A panel of B (depth × one tile) is read once for each tile. Low et al. keep it in the first-level cache; with
// registers as wide as today's it would then be so short (128 steps with AVX-512) that adding tiles to C costs more
// than it saves. Streamed from the second level instead, it needs no more than
//
//     numbers of one row of B / cycles for its multiply-adds = units · lanes / rows of the tile:  16 bytes a cycle
//
// where such caches give 32 or more. So depth and rows share half of the second level, rows · depth · size = half, and
// what one multiply-add costs beside itself is least: C is read and written once for each `depth` of them, B's panel
// once for each `rows`, and the former costs `weight` = 4 times the latter, as it ends a pipeline that runs full
// (fitted on Zen 5, to 128 × 512):
//
//     weight / depth + 1 / rows least  ⇒  depth = weight · rows  ⇒  rows = √(half / (weight · size))
//
// T. Low, F. Igual, T. Smith, E. Quintana-Ortí, "Analytical modeling is enough for high-performance BLIS", 2016.
//
// Design: docs/design/products.md
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tilewise::kernel {

/// KiB of the caches that count here: what one core has to itself, and its share of what all share.
struct Caches {
    std::int64_t second, third;
};

/// What a processor says of itself: CPUID's family and model, or an Arm core's implementer and part.
struct ProcessorId {
    enum class Kind { other, amd, intel, arm } kind = Kind::other;
    int family = 0, model = 0;
};

/// Whether our own tiles are the choice: where they were measured to be ahead of BLAS.
struct OwnTiles {
    std::int64_t least_single;  ///< in single precision, with AVX-512, from this side on
    bool doubles;
};

struct Processor {
    std::string_view name;
    ProcessorId::Kind kind;
    int family, first_model, last_model;
    Caches caches;
    OwnTiles own;
    std::string_view because;  ///< measured, or what it follows from
};

/// Every row; of those that match, the first counts. The last ones match whatever is left of a kind, and anything.
std::span<const Processor> processors();

/// The row of this processor; the same for the life of the process.
const Processor& processor();

/// The row for what a processor says of itself.
const Processor& processor_of(const ProcessorId& id);

struct Blocking {
    std::int64_t depth;    ///< of both blocks; part of what a result's bits depend on
    std::int64_t rows;     ///< of A's block, a multiple of a tile's
    std::int64_t columns;  ///< of B's block, a multiple of a tile's
    friend bool operator==(const Blocking&, const Blocking&) = default;
};

/// For tiles of `rows` × `columns` numbers of `size` bytes.
Blocking blocking_for(const Caches& caches, std::int64_t rows, std::int64_t columns, std::int64_t size);

}  // namespace tilewise::kernel
