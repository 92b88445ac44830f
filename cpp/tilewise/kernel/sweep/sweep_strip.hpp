// What Sweeper hands to the code of one instruction set: a rectangle of cells to sweep, and where to work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewise/kernel/sweep/sweep.hpp"

namespace tilewise::kernel {

/// One piece of a sweep for one thread. `taps` in the order of sweep_sum.hpp, as float64 whatever the field's type.
struct SweepPiece {
    FieldShape shape;
    Edges edges;
    Boundary boundary;
    Dtype dtype;
    SumForm form;
    int radius;
    const double* taps;
    const std::byte* from;
    std::byte* to;
    Part part;
    int steps;
    bool streaming;      ///< the result goes past the caches
    std::byte* scratch;  ///< wave_size's bytes, at a multiple of 64; may hold any numbers and be left with any
};

/// One product of a cell's sum: a weight, and the cells, added from the left and in pairs, that it multiplies.
struct SweepTerm {
    double weight;
    int cells = 0;  ///< 1, 2 or 4
    struct {
        int line, shift;  ///< among the 2·radius + 1 rows around the cell's; columns to the right of it
    } cell[4] = {};
};

/// Sums the terms, one after the other, for `count` cells. `lines` are rows around them at their own first column.
using PlainRow = void (*)(const SweepTerm* terms, int term_count, const void* const* lines, void* to,
                          std::int64_t count);

/// The code for one width of registers.
struct SweepSet {
    std::int64_t width;  ///< bytes
    PlainRow plain32, plain64;
    void (*wave)(const SweepPiece& piece);
};

/// The reference: see sweep_plain.cpp.
void sweep_plain(const SweepSet& set, const SweepPiece& piece);

/// Rows of one level that are computed before the next level follows.
constexpr int rows_at_once(int radius) { return radius == 1 ? 8 : 2 * radius + 4; }

constexpr std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// [begin, end) along one direction, `reach` cells wider, but not beyond an edge of the matrix at 0 or at n.
struct Range {
    std::int64_t begin, end;
};
constexpr Range widened(std::int64_t begin, std::int64_t end, std::int64_t reach, bool edge_below, bool edge_above,
                        std::int64_t n) {
    return {edge_below ? most(begin - reach, 0) : begin - reach, edge_above ? least(end + reach, n) : end + reach};
}

/// How large the scratch of a piece is: rows of registers, then one row as it lies in the field.
struct WaveSize {
    Range columns;           ///< that the strip holds
    std::int64_t registers;  ///< that a row has
    std::int64_t stride;     ///< registers from a row to the next: an odd number, so that rows spread over a cache
    std::int64_t rows;
    std::int64_t bytes;
};
constexpr WaveSize wave_size(const Part& part, const SweepPiece& piece, std::int64_t width) {
    const auto item = static_cast<std::int64_t>(size_of(piece.dtype));
    const Range columns = widened(part.column_begin, part.column_end, std::int64_t{piece.steps} * piece.radius,
                                  piece.edges.left, piece.edges.right, piece.shape.columns);
    const std::int64_t lanes = width / item, unit = 16 / item;
    const std::int64_t registers = most((columns.end - columns.begin + lanes * unit - 1) / (lanes * unit) * unit, 4);
    const std::int64_t stride = (registers + 2 * piece.radius) | 1;
    const std::int64_t rows = 1 + 2 * rows_at_once(piece.radius) + 4 * std::int64_t{piece.radius} * piece.steps;
    return {.columns = columns,
            .registers = registers,
            .stride = stride,
            .rows = rows,
            .bytes = (rows * stride + registers + lanes) * width};
}

}  // namespace tilewise::kernel
