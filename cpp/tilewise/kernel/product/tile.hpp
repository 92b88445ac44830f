// A tile of C in registers: the innermost loop of every product, for every width of register and every part of a tile.
//
//                       b  [ v0 v1 v2 ]   one row of B: `vectors` registers
//                 a                           (32 registers: 8 × 3 of C, 3 of B, the rest for numbers of A)
//               [ a0 ]     [ c  c  c  ]       (16 registers: 4 × 3 of C, 3 of B, 1 for numbers of A)
//               [ a1 ]     [ c  c  c  ]   each step of k: rows × vectors multiply-adds for rows + vectors loads
//               [ …  ]     [ c  c  c  ]
//
// Plain products and Strassen's take both operands from packed panels; block reflectors and products with few vectors
// take them where they lie.
#pragma once

#include <cstdint>
#include <cstring>

#include "tilewise/kernel/isa/registers.hpp"

namespace tilewise::kernel {
namespace {

/// What becomes of the numbers of C.
enum class Into { replaced, added, subtracted };

template <class T, std::size_t width, std::size_t rows, std::size_t vectors> struct Tile {
    using V = typename Vector<T, width>::type;
    static constexpr std::int64_t lanes = width / sizeof(T);

    V sum[rows][vectors];

    [[gnu::always_inline]] Tile() {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
            for (std::size_t v = 0; v < vectors; ++v) {
                sum[r][v] = V{};
            }
        }
    }

    /// sum += Σ a(·, p)·b(p, ·) over the next `count` steps p, which `a` and `b` are moved on by. Rows of A are `a_row`
    /// numbers apart.
    [[gnu::always_inline]] void add(std::int64_t count, const T*& a, std::int64_t a_row, std::int64_t a_step,
                                    const T*& b, std::int64_t b_step) {
        for (std::int64_t p = 0; p < count; ++p) {
            V row[vectors];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < vectors; ++v) {
                row[v] = load<T, width>(b + static_cast<std::int64_t>(v) * lanes);
            }
#pragma GCC unroll 16
            for (std::size_t r = 0; r < rows; ++r) {
                const V factor = everywhere<V>(a[static_cast<std::int64_t>(r) * a_row]);
#pragma GCC unroll 4
                for (std::size_t v = 0; v < vectors; ++v) {
                    sum[r][v] = multiply_add(factor, row[v], sum[r][v]);
                }
            }
            a += a_step;
            b += b_step;
        }
    }

    /// C, whose rows are `stride` numbers apart, takes part once, so that it is rounded once. `stored` numbers of the
    /// last vector are C's.
    template <Into into> [[gnu::always_inline]] void store(T* c, std::int64_t stride,
                                                           std::int64_t stored = lanes) const {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
            T* to = c + static_cast<std::int64_t>(r) * stride;
#pragma GCC unroll 4
            for (std::size_t v = 0; v < vectors; ++v, to += lanes) {
                if (v < vectors - 1 || stored == lanes) {
                    auto& whole = *reinterpret_cast<typename Vector<T, width>::loose*>(to);
                    whole = combined<into>(V{whole}, sum[r][v]);
                } else {
                    T some[width / sizeof(T)];
                    std::memcpy(some, &sum[r][v], width);
                    for (std::int64_t j = 0; j < stored; ++j) {
                        to[j] = combined<into>(to[j], some[j]);
                    }
                }
            }
        }
    }

private:
    template <Into into, class N> [[gnu::always_inline]] static N combined(N old, N made) {
        return into == Into::replaced ? made : into == Into::added ? old + made : old - made;
    }
};

}  // namespace
}  // namespace tilewise::kernel
