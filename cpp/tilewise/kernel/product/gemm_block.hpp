// A block of C from packed panels: every tile with exactly the rows and vectors that C has there.
//
//              B's panels  [ 0 | 1 | 2 ]    The panel of B stays in the nearest cache that holds it while all panels of
//     A's  [ 0 ]           [ #   .   , ]    A pass by, from the second-level cache. At the edges (, and ;) there is a
//    panels[ 1 ]         C [ #   .   , ]    tile compiled for each number of rows and of vectors; what an element of C
//          [ 2 ]           [ ;   ;   ; ]    is does not depend on the tile it is in.
#pragma once

#include <utility>

#include "tilewise/kernel/product/gemm_set.hpp"
#include "tilewise/kernel/product/panels.hpp"
#include "tilewise/kernel/product/tile.hpp"

namespace tilewise::kernel {
namespace {

/// Asks for a tile of C: at its beginning, as it may lie in memory, and again near its end, as the panels that pass
/// through the first-level cache push it out (rows a power of two apart all fall on the same few places of it).
template <class T, std::size_t width, std::size_t rows, std::size_t vectors>
[[gnu::always_inline]] inline void fetch(const T* c, std::int64_t stride) {
    constexpr std::int64_t line = 64 / sizeof(T), columns = vectors * width / sizeof(T);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::int64_t j = 0; j < columns; j += line) {
            __builtin_prefetch(c + static_cast<std::int64_t>(r) * stride + j, 1);
        }
    }
}

/// C = or += the product of a panel of A and one of B. `stored` numbers of the last vector are C's. A whole tile has
/// `a_step` rows and `b_step` columns, as panels do.
template <class T, std::size_t width, std::size_t rows, std::size_t vectors, int a_step, int b_step>
[[gnu::noinline]] void multiply_panels(std::int64_t k, const T* a, const T* b, T* c, std::int64_t stride,
                                       bool accumulate, std::int64_t stored) {
    constexpr std::int64_t soon = 32;  // steps before the end
    Tile<T, width, rows, vectors> tile;
    fetch<T, width, rows, vectors>(c, stride);
    for (std::int64_t from = 0, to = k > soon ? k - soon : k; from < k; from = to, to = k) {
        tile.add(to - from, a, 1, a_step, b, b_step);
        fetch<T, width, rows, vectors>(c, stride);
    }
    accumulate ? tile.template store<Into::added>(c, stride, stored)
               : tile.template store<Into::replaced>(c, stride, stored);
}

/// Tiles of at most `rows` × `vectors` registers of `width` bytes.
template <class T, std::size_t width, std::size_t rows, std::size_t vectors> struct Blocks {
    static constexpr std::int64_t lanes = width / sizeof(T), columns = vectors * width / sizeof(T), height = rows;
    using MultiplyPanels = void (*)(std::int64_t, const T*, const T*, T*, std::int64_t, bool, std::int64_t);

    /// By rows and, within them, vectors. Not std::array: its functions would be compiled for these instructions.
    struct Table {
        MultiplyPanels of[rows * vectors];
    };
    template <std::size_t... index> static constexpr Table tiles_of(std::index_sequence<index...>) {
        return {{multiply_panels<T, width, index / vectors + 1, index % vectors + 1, static_cast<int>(rows),
                                 static_cast<int>(columns)>...}};
    }
    static constexpr Table tiles = tiles_of(std::make_index_sequence<rows * vectors>());

    static void multiply(std::int64_t k, const T* a, const T* b, const BlockOfC<T>& c) {
        for (std::int64_t j = 0; j < c.columns; j += columns, b += columns * k) {
            const std::int64_t right = c.columns - j < columns ? c.columns - j : columns;
            const std::int64_t whole = (right - 1) / lanes, stored = right - whole * lanes;
            const T* panel = a;
            for (std::int64_t i = 0; i < c.rows; i += height, panel += height * k) {
                const std::int64_t down = c.rows - i < height ? c.rows - i : height;
                tiles.of[(down - 1) * (columns / lanes) + whole](k, panel, b, c.data + i * c.stride + j, c.stride,
                                                                 c.accumulate, stored);
            }
        }
    }

    static void add(std::int64_t m, std::int64_t n, const T* product, std::int64_t stride, const Targets<T>& targets) {
        for (std::int64_t i = 0; i < m; ++i, product += stride) {
            for (std::size_t t = 0; t < targets.count; ++t) {
                T* to = targets.at[t] + i * targets.stride;
                const T sign = targets.sign[t];
                if (targets.add[t]) {
#pragma omp simd
                    for (std::int64_t j = 0; j < n; ++j) {
                        to[j] = multiply_add(sign, product[j], to[j]);
                    }
                } else {
#pragma omp simd
                    for (std::int64_t j = 0; j < n; ++j) {
                        to[j] = sign * product[j];
                    }
                }
            }
        }
    }

    static constexpr GemmTiles<T> set{
        height, columns, Panels<T, width, height>::pack, Panels<T, width, columns>::pack, multiply, add};
};

}  // namespace
}  // namespace tilewise::kernel
