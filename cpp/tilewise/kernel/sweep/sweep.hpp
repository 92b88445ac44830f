// One rank's stencil sweeps: several in one pass over memory, whatever the weights; the plain version beside the fast
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"

namespace tilewise::kernel {

/// What lies beyond the edges of a matrix: a map to places within it, or a value.
///
/// fixed: cells within `radius` of the edge keep their value. periodic: the other side. reflect: mirrored about the
/// edge of the outer cells, d c b a | a b c d | d c b a. mirror: about their centres, d c b | a b c d | c b a. nearest:
/// the outer cell again and again, a a a | a b c d | d d d. constant: `value`, whatever the matrix holds.
struct Boundary {
    enum Kind { fixed, periodic, reflect, mirror, nearest, constant };
    static const Boundary zero;

    Kind kind = constant;
    double value = 0;

    constexpr Boundary() = default;
    constexpr Boundary(Kind k, double v = 0) : kind(k), value(v) {}  // NOLINT(google-explicit-constructor)
    constexpr operator Kind() const { return kind; }                 // NOLINT(google-explicit-constructor)
};
inline constexpr Boundary Boundary::zero{};

/// No place: the value stands there.
inline constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::min();

/// The place among 0 … n − 1 whose value stands at i, as often round as it takes. A side that is no edge goes on:
/// places there are their own. Always inline: it is compiled for several instruction sets, and the linker must not take
/// the code of one for another.
[[gnu::always_inline]] constexpr std::int64_t source_of(Boundary::Kind kind, std::int64_t i, bool edge_below,
                                                        bool edge_above, std::int64_t n) {
    const bool below = edge_below && i < 0, above = edge_above && i >= n;
    if (!below && !above) {
        return i;
    }
    const auto around = [i](std::int64_t period) { return (i % period + period) % period; };
    switch (kind) {
        case Boundary::periodic:
            return around(n);
        case Boundary::nearest:
            return below ? 0 : n - 1;
        case Boundary::reflect:
        case Boundary::mirror: {
            const std::int64_t shared = kind == Boundary::mirror ? 1 : 0;  // cells that lie on the mirror
            if (!edge_below || !edge_above) {
                return (below ? -1 : 2 * n - 1) + (below ? shared : -shared) - i;
            }
            const std::int64_t period = 2 * (n - shared), phase = period > 0 ? around(period) : 0;
            return phase < n ? phase : period + shared - 1 - phase;
        }
        case Boundary::fixed:
        case Boundary::constant:
            break;
    }
    return nowhere;
}

/// out[i,j] = Σ values[a,b] · in[i+a−radius, j+b−radius]; (2·radius+1)² numbers row by row, radius 1 … 4.
struct Weights {
    int radius = 1;
    std::vector<double> values;
};

/// A block of float32 or float64 in memory with margins around it, pitch and padding chosen for the kernel: rows never
/// lie a power of two apart, and in memory that starts at a cache line (such as a Buffer's) cell (0, 0) does so too.
struct FieldShape {
    std::int64_t rows = 0, columns = 0;  ///< of the block itself
    std::int64_t margin = 0;    ///< cells on each side that neighbours' (or the other side's) values may be put into
    std::int64_t pitch = 0;     ///< elements from a row to the next
    std::int64_t origin = 0;    ///< elements from the beginning of the memory to cell (0, 0)
    std::int64_t elements = 0;  ///< in all
};
FieldShape field_shape(std::int64_t rows, std::int64_t columns, std::int64_t margin, Dtype dtype);

/// Which sides of the block are edges of the whole matrix; on the others the margin holds the neighbour's cells. Beyond
/// an edge it may hold anything.
struct Edges {
    bool top = true, bottom = true, left = true, right = true;
};

/// A rectangle of the block's own cells.
struct Part {
    std::int64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
};

/// How the sums of one set of weights are computed (see sweep_sum.hpp): zero weights off the cross are left out, and
/// cells that mirror each other in both directions are added before they are multiplied.
enum class SumForm { star_symmetric, star, box_symmetric, box };

struct SweepSet;

inline constexpr int max_radius = 4;

/// Sweeps in one pass that are fastest here; `star`: no weight off the cross. For the default depth of whoever plans
/// sweeps. More save memory traffic, but the columns that strips compute twice and the rows saved for each level grow
/// with them.
constexpr int best_steps(int radius, bool star, Dtype dtype) {
    switch (radius) {
        case 1:
            return star ? (dtype == Dtype::float32 ? 40 : 25) : 20;
        case 2:
            return star ? 20 : 12;
        default:
            return star ? 12 : 8;
    }
}

class Sweeper {
public:
    /// `plain`: the loops of the reference. Throws UsageError for anything but float32 and float64, and for other
    /// weights than Weights says. Of a periodic boundary the caller puts the other side into the margin: the sweeps see
    /// no edge then. `set`: the code of an instruction set that this processor has (see sweep_strip.hpp);
    /// otherwise its best.
    Sweeper(const Weights& weights, Boundary boundary, Dtype dtype, bool plain, const SweepSet* set = nullptr);

    /// `to` gets the cells `part` of the block after `steps` ≥ 0 sweeps over `from`, and nothing else is written. Reads
    /// cells of the block and of the margin up to steps·radius around the part (so that the margin must be that deep on
    /// sides that are no edge), never beyond an edge of the matrix. Both memories have the same shape and do not
    /// overlap. On one instruction set the result is bit-identical for every cut into parts, steps and threads, and to
    /// plain. Throws UsageError where the margin is too thin. Takes memory beside both fields, and keeps it for the
    /// next sweep. Plain frees it; it is, for every thread's band of rows, two fields (for 2 steps one) with (steps −
    /// 1)·radius cells around it, none for one step.
    ///
    /// Returns the bytes that a model of the pass moves through memory, with no cache that holds a strip: each strip
    /// reads its own cells and those that its sums reach around them once, and writes its own once. Plain sweeps read
    /// and write once a step.
    std::int64_t sweep(const FieldShape& shape, Edges edges, const std::byte* from, std::byte* to, const Part& part,
                       int steps, int threads);

    /// Adds and multiplications that one point takes as computed (a fused one is two).
    double flops_per_point() const;
    /// The same for these weights; 1 for plain.
    int best_steps() const;
    SumForm form() const { return form_; }

private:
    int radius_;
    Boundary boundary_;
    Dtype dtype_;
    bool plain_;
    SumForm form_;
    std::vector<double> taps_;       ///< in the order in which they are summed
    const SweepSet* set_;            ///< the code for this processor
    std::vector<Buffer> scratch_{};  ///< each thread's own

    /// A single sweep has nothing to gain from levels, for which cells are turned into lanes and back.
    bool goes_row_by_row(int steps) const { return plain_ || steps == 1; }
    std::vector<Part> cut(const Part& part, int steps, int threads) const;
};

}  // namespace tilewise::kernel
