// Packs an operand of a product into panels, in the sequence in which tiles read it.
//
//        rows of A (columns of B):      panels of `width` of them, one step of k after the other, the last padded by
//        0 1 2 3 4 5 6 7 8 9            zeros:
//      k [ . . . . . . . . . . ]            [ 0 1 2 3 | next k | … ]  [ 4 5 6 7 | … ]  [ 8 9 0 0 | … ]
//      ↓ [ . . . . . . . . . . ]
//
// Where k runs along memory, squares are turned round in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tilewise/kernel/product/gemm_set.hpp"
#include "tilewise/kernel/transpose/transpose_turn.hpp"

namespace tilewise::kernel {
namespace {

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

}  // namespace
}  // namespace tilewise::kernel
