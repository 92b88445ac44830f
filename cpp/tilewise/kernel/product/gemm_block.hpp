// Packs operands of a product into panels, and multiplies those tile by tile, for every width of register.
//
// In an unnamed namespace, like all that is compiled for several instruction sets: the linker must not take the code of
// one for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tilewise/kernel/product/gemm_set.hpp"
#include "tilewise/kernel/transpose/transpose_turn.hpp"

namespace tilewise::kernel {
namespace {

// An operand is packed into panels, in the sequence in which tiles read it.
//
//        rows of A (columns of B):      panels of `width` of them, one step of k after the other, the last padded by
//        0 1 2 3 4 5 6 7 8 9            zeros:
//      k [ . . . . . . . . . . ]            [ 0 1 2 3 | next k | … ]  [ 4 5 6 7 | … ]  [ 8 9 0 0 | … ]
//      ↓ [ . . . . . . . . . . ]
//
// Where k runs along memory, squares are turned round in registers.

/// `outer` rows of one panel from `from` on, `stride` apart, numbers of k side by side; `count` of them at a time.
template <class T, std::size_t width, int panel>
void pack_turned(const T* from, std::int64_t stride, std::int64_t outer, std::int64_t inner, T* to) {
    constexpr std::int64_t item = sizeof(T), count = width / sizeof(T);
    constexpr std::size_t columns = 16 / sizeof(T);
    constexpr auto step = static_cast<std::int64_t>(columns);
    std::int64_t i = 0;
    for (; i + count <= outer; i += count) {
        const T* square = from + i * stride;
        std::int64_t p = 0;
        for (; p + step <= inner; p += step) {
            typename Register<width>::type turned[columns];
            turn<width, sizeof(T)>(reinterpret_cast<const std::byte*>(square + p), stride * item, turned);
#pragma GCC unroll 4
            for (std::int64_t c = 0; c < step; ++c) {
                std::memcpy(to + (p + c) * panel + i, turned + c, width);
            }
        }
        for (; p < inner; ++p) {
            for (std::int64_t r = 0; r < count; ++r) {
                to[p * panel + i + r] = square[r * stride + p];
            }
        }
    }
    for (; i < outer; ++i) {
        for (std::int64_t p = 0; p < inner; ++p) {
            to[p * panel + i] = from[i * stride + p];
        }
    }
}

/// The widest register, of at most `width` bytes, that so many bytes are a multiple of.
constexpr std::size_t register_for(std::size_t bytes, std::size_t width) {
    return bytes % width == 0 ? width : register_for(bytes, width / 2);
}

/// Numbers of the outer side side by side: rows of several whole panels at a time, as each is short and the next may
/// lie in another page. Returns how many panels it packed.
template <class T, int panel> std::int64_t pack_rows(const PackSource<T>& from, T* to) {
    constexpr std::int64_t together = 4;
    const std::int64_t whole = from.outer / panel;
    for (std::int64_t first = 0; first < whole; first += together) {
        const std::int64_t last = whole < first + together ? whole : first + together;
        for (std::int64_t p = 0; p < from.inner; ++p) {
            for (std::int64_t i = first; i < last; ++i) {
                std::memcpy(to + (i * from.inner + p) * panel, from.data + p * from.down + i * panel,
                            panel * sizeof(T));
            }
        }
    }
    return whole;
}

/// Packs into panels of `panel` rows or columns, by registers of `width` bytes.
template <class T, std::size_t width, int panel> void pack(const PackSource<T>& from, T* to) {
    const bool turned = from.down == 1 && from.along != 1;
    std::int64_t begin = turned || from.along != 1 ? 0 : pack_rows<T, panel>(from, to) * panel;
    for (to += begin * from.inner; begin < from.outer; begin += panel, to += panel * from.inner) {
        const std::int64_t left = from.outer - begin, here = left < panel ? left : panel;
        const T* first = from.data + begin * from.along;
        if (turned) {
            pack_turned<T, register_for(panel * sizeof(T), width), panel>(first, from.along, here, from.inner, to);
        } else {
            for (std::int64_t p = 0; p < from.inner; ++p) {
                for (std::int64_t i = 0; i < here; ++i) {
                    to[p * panel + i] = first[p * from.down + i * from.along];
                }
            }
        }
        if (here < panel) {
            for (std::int64_t p = 0; p < from.inner; ++p) {
                for (std::int64_t i = here; i < panel; ++i) {
                    to[p * panel + i] = T{};
                }
            }
        }
    }
}

// A tile of C in registers: the innermost loop of a product, for every width of register and every part of a tile.
//
//                       b  [ v0 v1 v2 ]   one row of a packed panel of B: `vectors` registers
//                 a                           (32 registers: 8 × 3 of C, 3 of B, the rest for numbers of A)
//               [ a0 ]     [ c  c  c  ]       (16 registers: 4 × 3 of C, 3 of B, 1 for numbers of A)
//               [ a1 ]     [ c  c  c  ]   each step of k: rows × vectors multiply-adds for rows + vectors loads
//               [ …  ]     [ c  c  c  ]
//
// At C's edges a tile has fewer rows and vectors, and of its last vector only some numbers are stored; what an element
// of C is does not depend on the tile it is in.

template <class T, std::size_t width> struct NumberVector {
    typedef T type __attribute__((vector_size(width), aligned(sizeof(T)), may_alias));
};

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
[[gnu::noinline]] void tile(std::int64_t k, const T* a, const T* b, T* c, std::int64_t stride, bool accumulate,
                            std::int64_t stored) {
    using V = typename NumberVector<T, width>::type;
    constexpr std::int64_t lanes = width / sizeof(T);
    V sum[rows][vectors];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < vectors; ++v) {
            sum[r][v] = V{};
        }
    }
    fetch<T, width, rows, vectors>(c, stride);
    constexpr std::int64_t soon = 32;  // steps before the end
    for (std::int64_t from = 0, to = k > soon ? k - soon : k; from < k; from = to, to = k) {
        for (std::int64_t p = from; p < to; ++p) {
            V row[vectors];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < vectors; ++v) {
                row[v] = *reinterpret_cast<const V*>(b + static_cast<std::int64_t>(v) * lanes);
            }
#pragma GCC unroll 16
            for (std::size_t r = 0; r < rows; ++r) {
                const V factor = a[r] - V{};  // one broadcast: 0 + a would be an addition, for the sake of −0
#pragma GCC unroll 4
                for (std::size_t v = 0; v < vectors; ++v) {
                    sum[r][v] += factor * row[v];
                }
            }
            a += a_step;
            b += b_step;
        }
        fetch<T, width, rows, vectors>(c, stride);
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        T* to = c + static_cast<std::int64_t>(r) * stride;
#pragma GCC unroll 4
        for (std::size_t v = 0; v < vectors; ++v, to += lanes) {
            if (v < vectors - 1 || stored == lanes) {
                V& whole = *reinterpret_cast<V*>(to);
                whole = accumulate ? whole + sum[r][v] : sum[r][v];
            } else {
                T some[width / sizeof(T)];
                std::memcpy(some, &sum[r][v], width);
                for (std::int64_t j = 0; j < stored; ++j) {
                    to[j] = accumulate ? to[j] + some[j] : some[j];
                }
            }
        }
    }
}

// A block of C from packed panels: every tile with exactly the rows and vectors that C has there.
//
//              B's panels  [ 0 | 1 | 2 ]    The panel of B stays in the nearest cache that holds it while all panels of
//     A's  [ 0 ]           [ #   .   , ]    A pass by, from the second-level cache. At the edges (, and ;) there is a
//    panels[ 1 ]         C [ #   .   , ]    tile compiled for each number of rows and of vectors.
//          [ 2 ]           [ ;   ;   ; ]

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
