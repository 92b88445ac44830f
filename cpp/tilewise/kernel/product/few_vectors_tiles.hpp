// Tiles of C, held for the whole of k: one load for each register of B, and one broadcast for each row of A.
//
//     A, where it lies        B          C
//     [ a → ]                [ | | ]    [ # # ]      for p = 0 … k−1:  #[r] += A(r, p)·B(p, :)
//     [ a → ]                [ | | ]    [ # # ]
//     [ a → ]                           [ # # ]
#pragma once

#include "tilewise/kernel/product/few_vectors.hpp"
#include "tilewise/kernel/product/tile.hpp"

namespace tilewise::kernel {
namespace {

/// All rows, of so many registers' width: `rows` at a time, then half as many, down to one.
template <class T, std::size_t width, std::size_t rows, std::size_t vectors>
void few_rows(std::int64_t m, std::int64_t k, Strided<T> a, const T* b, T* c, std::int64_t c_row) {
    std::int64_t i = 0;
    for (; i + static_cast<std::int64_t>(rows) <= m; i += rows) {
        const T *left = a.data + i * a.row_step, *right = b;
        Tile<T, width, rows, vectors> tile;
        tile.add(k, left, a.row_step, a.column_step, right, c_row);
        tile.template store<Into::added>(c + i * c_row, c_row);
    }
    if constexpr (rows > 1) {
        if (i < m) {
            a.data += i * a.row_step;
            few_rows<T, width, rows / 2, vectors>(m - i, k, a, b, c + i * c_row, c_row);
        }
    }
}

template <class T, std::size_t width, std::size_t rows, std::size_t vectors>
void few_vectors(std::int64_t m, std::int64_t k, std::int64_t columns, const Strided<T>& a, const T* b, T* c) {
    static_assert(vectors == 3);
    constexpr std::int64_t lanes = width / sizeof(T), most = vectors;
    const std::int64_t all = columns / lanes, strips = (all + most - 1) / most;
    for (std::int64_t index = 0; index < strips; ++index) {
        const std::int64_t first = all * index / strips, count = all * (index + 1) / strips - first, at = first * lanes;
        const auto rows_of = count == 1   ? few_rows<T, width, rows, 1>
                             : count == 2 ? few_rows<T, width, rows, 2>
                                          : few_rows<T, width, rows, 3>;
        rows_of(m, k, a, b + at, c + at, columns);
    }
}

}  // namespace
}  // namespace tilewise::kernel
