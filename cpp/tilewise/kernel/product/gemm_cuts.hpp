// Cuts products into smaller ones: by rows and columns of C, and by k.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

/// The same product, of these rows and columns of C only.
Product tile_of(const Product& whole, grid::Range rows, grid::Range columns);

/// The part of it that these numbers of k make, as it is to be added up: it accumulates unless it is the first.
Product slice_of_k(const Product& whole, std::int64_t begin, std::int64_t width);

/// Columns of C at `columns_border(0)`, `(1)`, … and as many rows: tiles that threads take in turn.
struct Cuts {
    std::int64_t rows, columns;
    std::int64_t row_unit = 1, column_unit = 1;  ///< borders fall on multiples of them

    grid::Range row(std::int64_t index, std::int64_t m) const { return part(index, rows, m, row_unit); }
    grid::Range column(std::int64_t index, std::int64_t n) const { return part(index, columns, n, column_unit); }

private:
    static grid::Range part(std::int64_t index, std::int64_t parts, std::int64_t whole, std::int64_t unit) {
        const std::int64_t units = (whole + unit - 1) / unit;
        const auto border = [&](std::int64_t i) { return std::min(whole, units * i / parts * unit); };
        return {border(index), border(index + 1)};
    }
};

/// Near-square tiles, one a thread: the least of A and B to pack for each.
Cuts cuts_for(std::int64_t m, std::int64_t n, int threads);

/// Into how many parts k is cut, each with a C of its own, where all of C has work for few threads only; 1: not at all.
/// `parts` is how many pieces C itself would fall into. Depends on the shape alone, as the result's bits do.
std::int64_t pieces_of_k(std::int64_t parts, std::int64_t k);

}  // namespace tilewise::kernel
