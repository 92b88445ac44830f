// QR of a matrix whose columns are spread over ranks, each of which keeps its own: what travels is a panel of
// reflectors at a time.
//
//      panel     on its way to all         every rank, its columns of what is left
//     [ R R |                             [ . . ]
//     [ Y R |    Y, the reflectors        [ c c ]   C ← C − Y·(T'·(Y'·C))
//     [ Y Y |                             [ c c ]
//
// Memory of a rank beside its columns: a panel, 128 numbers for each of its columns, and with pivots a sketch of 72
// rows; rank 0 then has the sketch of all columns.
#pragma once

#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/dist/column_comm.hpp"

namespace tilewise::dist {

/// Columns of a panel that is factored, and of one whose reflectors are applied: a wide one makes products that threads
/// can share.
inline constexpr std::int64_t factored_columns = 64, applied_reflectors = 128;
/// Rows of a sketch beyond the number of pivots that are chosen by it.
inline constexpr std::int64_t sketch_oversampling = 8;

/// A = Q·R: R in the upper triangle, the reflectors of Q below it, each column on the rank that has it.
template <class T> struct ColumnQrOf {
    SpreadColumnsOf<T> columns;
    std::vector<T> tau;  ///< the same on all ranks
};
using ColumnQr = ColumnQrOf<double>;

/// Factors the columns one after the other, in place. The panels are factored by every rank, with the same
/// result.
template <class T> ColumnQrOf<T> column_qr(const SpreadColumnsOf<T>& a, const ColumnComm& comm, int threads);

/// A·P = Q·R in place, long columns first: each diagonal element of R is about as large as what is left of any later
/// column. A rank's columns are rearranged to follow their places, and none of them leaves it. `permutation`: column j
/// of A·P is column permutation[j] of A. For at least as many rows as columns; O(rows·columns²), half of it for the
/// sketches by which columns are chosen.
template <class T> ColumnQrOf<T> pivoted_column_qr(const SpreadColumnsOf<T>& a, std::vector<int>& permutation,
                                                   const ColumnComm& comm, int threads);

/// C ← Q·C, of each rank's columns of C.
template <class T> void apply_q(const ColumnQrOf<T>& qr, const kernel::ColumnsOf<T>& c, const ColumnComm& comm,
                                int threads);

/// Rᵀ, of complex numbers Rᴴ (columns×columns, lower triangle), of which each rank gets the columns `wanted`.
template <class T> kernel::MatrixOf<T> transposed_triangle(const ColumnQrOf<T>& qr,
                                                           const std::function<grid::Range(int rank)>& wanted,
                                                           const ColumnComm& comm, int threads);

/// Row i of some columns becomes row order[i]; without an order they stay. Not collective.
template <class T, class Index>
void put_rows_back(const std::vector<Index>& order, const kernel::ColumnsOf<T>& columns, int threads) {
    if (order.empty()) {
        return;
    }
    parallel_ranges(columns.count > 8 ? threads : 1, columns.count, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<T> sorted(order.size());
        for (std::int64_t c = begin; c < end; ++c) {
            std::copy_n(columns.column(c), columns.rows, sorted.begin());
            for (std::size_t i = 0; i < order.size(); ++i) {
                columns.column(c)[order[i]] = sorted[i];
            }
        }
    });
}

#define TILEWISE_COLUMN_QR(form, T)                                                                                \
    form template ColumnQrOf<T> column_qr(const SpreadColumnsOf<T>&, const ColumnComm&, int);                      \
    form template ColumnQrOf<T> pivoted_column_qr(const SpreadColumnsOf<T>&, std::vector<int>&, const ColumnComm&, \
                                                  int);                                                            \
    form template void apply_q(const ColumnQrOf<T>&, const kernel::ColumnsOf<T>&, const ColumnComm&, int);         \
    form template kernel::MatrixOf<T> transposed_triangle(                                                         \
        const ColumnQrOf<T>&, const std::function<grid::Range(int rank)>&, const ColumnComm&, int);
TILEWISE_COLUMN_QR(extern, double)
TILEWISE_COLUMN_QR(extern, kernel::Complex)

}  // namespace tilewise::dist
