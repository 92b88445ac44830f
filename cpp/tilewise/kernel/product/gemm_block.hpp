// A block of C from packed panels: every tile with exactly the rows and vectors that C has there.
//
//              B's panels  [ 0 | 1 | 2 ]    The panel of B stays in the nearest cache that holds it while all panels of
//     A's  [ 0 ]           [ #   .   , ]    A pass by, from the second-level cache. At the edges (, and ;) there is a
//    panels[ 1 ]         C [ #   .   , ]    tile compiled for each number of rows and of vectors.
//          [ 2 ]           [ ;   ;   ; ]
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tilewise/kernel/product/gemm_pack.hpp"
#include "tilewise/kernel/product/gemm_set.hpp"
#include "tilewise/kernel/product/gemm_tile.hpp"

namespace tilewise::kernel {
namespace {

/// Tiles of at most `rows` × `vectors` registers of `width` bytes.
template <class T, std::size_t width, std::size_t rows, std::size_t vectors> struct Blocks {
    static constexpr std::int64_t lanes = width / sizeof(T), columns = vectors * width / sizeof(T), height = rows;
    using Tile = void (*)(std::int64_t, const T*, const T*, T*, std::int64_t, bool, std::int64_t);

    /// By rows and, within them, vectors. Not std::array: its functions would be compiled for these instructions.
    struct Table {
        Tile of[rows * vectors];
    };
    template <std::size_t... index> static constexpr Table tiles_of(std::index_sequence<index...>) {
        return {{tile<T, width, index / vectors + 1, index % vectors + 1, static_cast<int>(rows),
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

    static constexpr GemmTiles<T> set{height, columns, pack<T, width, static_cast<int>(rows)>,
                                      pack<T, width, static_cast<int>(columns)>, multiply};
};

template <std::size_t width, std::size_t rows, std::size_t vectors> constexpr GemmSet gemm_set(std::string_view name) {
    return {name, static_cast<std::int64_t>(width), Blocks<float, width, rows, vectors>::set,
            Blocks<double, width, rows, vectors>::set, Blocks<std::uint64_t, width, rows, vectors>::set};
}

}  // namespace
}  // namespace tilewise::kernel
