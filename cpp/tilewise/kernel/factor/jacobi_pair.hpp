// Two blocks of columns taken as one matrix: their norms and cosines, and their product with a small matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::kernel {

/// The columns of two blocks, numbered through; the blocks lie anywhere in memory.
template <class T> struct ColumnPair {
    ColumnsOf<T> left, right;

    std::int64_t rows() const { return left.count > 0 ? left.rows : right.rows; }
    std::int64_t count() const { return left.count + right.count; }
    T* column(std::int64_t index) const {
        return index < left.count ? left.column(index) : right.column(index - left.count);
    }
};

/// Below this norm a column has too few digits left for a direction: it counts as one of zeros, from the sweeps to the
/// singular values.
constexpr double least_norm = 1e-290;

/// What a pair solver works on: cosines (w×w, upper triangle, diagonal 1, or 0 for a column of zeros) and norms of w
/// columns.
template <class T> struct Cosines {
    T* values = nullptr;
    std::int64_t count = 0;  ///< w, and the stride
    std::vector<double> norms{}, inverses{};

    T* column(std::int64_t index) const { return values + index * count; }
    /// That of two different columns in either sequence: xiᴴ·xj / (|xi|·|xj|).
    T between(std::int64_t i, std::int64_t j) const { return i < j ? column(j)[i] : conjugate(column(i)[j]); }
};

/// Fills `cosines` (values: count×count elements) from the columns' Gram matrix; neither large nor tiny columns
/// overflow in it: they are scaled meanwhile, exactly. Throws Error for columns that are not finite. rows·count²
/// operations, on the BLAS's threads; `threads` for the rest.
template <class T> void find_cosines(const ColumnPair<T>& x, Cosines<T>& cosines, int threads);

/// The norm of a column, whatever its scale; NaN where it has one.
double norm_of(const double* column, std::int64_t rows);
inline double norm_of(const Complex* column, std::int64_t rows) { return norm_of(reals_of(column), 2 * rows); }

/// Columns that a rotation mixes with each other alone.
struct RotationBlock {
    std::int64_t begin = 0, end = 0;
};

/// An orthogonal W that mixes columns within blocks only, after they have been put in another order: X ← X·P·W.
template <class T> struct Rotation {
    using Block = RotationBlock;
    const T* w = nullptr;               ///< count×count; only its diagonal blocks are read
    std::vector<Block> blocks{};        ///< they cover all columns
    std::vector<std::int64_t> order{};  ///< column c of X·P is column order[c] of X; empty: P = I

    std::int64_t from(std::int64_t c) const { return order.empty() ? c : order[static_cast<std::size_t>(c)]; }
};

/// Rows that are multiplied at a time: the copy of them stays small, and W is packed once for each.
inline constexpr std::int64_t rotated_rows = 2048;

/// X ← X·P·W, or X ← X + X·P·W (`add`). `scratch` grows as needed. 2·rows·(block's columns)² operations a block, on the
/// BLAS's threads; `threads` for the rest.
template <class T>
void multiply_columns(const ColumnPair<T>& x, const Rotation<T>& rotation, bool add, Array<T>& scratch, int threads);

#define TILEWISE_PAIR(form, T)                                               \
    form template void find_cosines(const ColumnPair<T>&, Cosines<T>&, int); \
    form template void multiply_columns(const ColumnPair<T>&, const Rotation<T>&, bool, Array<T>&, int);
TILEWISE_PAIR(extern, double)
TILEWISE_PAIR(extern, Complex)

}  // namespace tilewise::kernel
