// A tile of C in registers: the innermost loop of a product, for every width of register and every part of a tile.
//
//                       b  [ v0 v1 v2 ]   one row of a packed panel of B: `vectors` registers
//                 a                           (32 registers: 8 × 3 of C, 3 of B, the rest for numbers of A)
//               [ a0 ]     [ c  c  c  ]       (16 registers: 4 × 3 of C, 3 of B, 1 for numbers of A)
//               [ a1 ]     [ c  c  c  ]   each step of k: rows × vectors multiply-adds for rows + vectors loads
//               [ …  ]     [ c  c  c  ]
//
// At C's edges a tile has fewer rows and vectors, and of its last vector only some numbers are stored; what an element
// of C is does not depend on the tile it is in. In an unnamed namespace, like all that is compiled for several
// instruction sets: the linker must not take the code of one for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tilewise::kernel {
namespace {

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

}  // namespace
}  // namespace tilewise::kernel
