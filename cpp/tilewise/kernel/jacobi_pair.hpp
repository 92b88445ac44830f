// Two blocks of columns taken as one matrix: their norms and cosines, and their product with a small matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/jacobi.hpp"

namespace tilewise::kernel {

/// The columns of two blocks, numbered through; the blocks lie anywhere in memory.
struct ColumnPair {
    Columns left, right;

    std::int64_t rows() const { return left.count > 0 ? left.rows : right.rows; }
    std::int64_t count() const { return left.count + right.count; }
    double* column(std::int64_t index) const {
        return index < left.count ? left.column(index) : right.column(index - left.count);
    }
};

/// Below this norm a column has too few digits left for a direction: it counts as one of zeros, from the sweeps to the
/// singular values.
constexpr double least_norm = 1e-290;

/// What a pair solver works on: cosines (w×w, upper triangle, diagonal 1, or 0 for a column of zeros) and norms of w
/// columns.
struct Cosines {
    double* values = nullptr;
    std::int64_t count = 0;  ///< w, and the stride
    std::vector<double> norms{}, inverses{};

    double* column(std::int64_t index) const { return values + index * count; }
};

/// Fills `cosines` (values: count×count elements) from the columns' Gram matrix; neither large nor tiny columns
/// overflow in it: they are scaled meanwhile, exactly. Throws Error for columns that are not finite. rows·count²
/// operations, on the BLAS's threads; `threads` for the rest.
void find_cosines(const ColumnPair& x, Cosines& cosines, int threads);

/// The norm of a column, whatever its scale; NaN where it has one.
double norm_of(const double* column, std::int64_t rows);

/// An orthogonal W that mixes columns within blocks only, after they have been put in another order: X ← X·P·W.
struct Rotation {
    struct Block {
        std::int64_t begin = 0, end = 0;
    };
    const double* w = nullptr;          ///< count×count; only its diagonal blocks are read
    std::vector<Block> blocks{};        ///< they cover all columns
    std::vector<std::int64_t> order{};  ///< column c of X·P is column order[c] of X; empty: P = I

    std::int64_t from(std::int64_t c) const { return order.empty() ? c : order[static_cast<std::size_t>(c)]; }
};

/// Rows that are multiplied at a time: the copy of them stays small, and W is packed once for each.
inline constexpr std::int64_t rotated_rows = 2048;

/// X ← X·P·W, or X ← X + X·P·W (`add`). `scratch` grows as needed. 2·rows·(block's columns)² operations a block, on the
/// BLAS's threads; `threads` for the rest.
void multiply_columns(const ColumnPair& x, const Rotation& rotation, bool add, Array<double>& scratch, int threads);

}  // namespace tilewise::kernel
