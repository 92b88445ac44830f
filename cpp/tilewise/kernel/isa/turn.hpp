// Turns a small tile round in registers: as many rows as fill a register, of columns that lie in 16 bytes.
//
//     four-byte items, 64-byte registers, after loading:         after two rounds of interleaving:
//     register k holds row k, row 4+k, row 8+k, row 12+k,        register k holds column k of rows 0 … 15: a whole
//     16 bytes of each in a lane of its own                      cache line of the target
//
// Nothing crosses a lane, so that each round is one cheap instruction a register, for every width. In an unnamed
// namespace, like all that is compiled for several instruction sets: the linker must not take the code of one for
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tilewise/kernel/isa/shuffle.hpp"

namespace tilewise::kernel {
namespace {

template <std::size_t width> struct Register {
    typedef std::uint64_t type __attribute__((vector_size(width)));
};

/// 16 bytes at `from`, at `from` + stride, … : one in each lane.
template <std::size_t width> [[gnu::always_inline]] inline void load_lanes(typename Register<width>::type& into,
                                                                           const std::byte* from, std::int64_t stride) {
    if constexpr (width == 16) {
        std::memcpy(&into, from, 16);
    } else {
        typename Register<width / 2>::type low, high;
        load_lanes<width / 2>(low, from, stride);
        load_lanes<width / 2>(high, from + static_cast<std::int64_t>(width / 32) * stride, stride);
        into = joined<typename Register<width>::type>(low, high);
    }
}

/// Within each lane the items of a and b in turn, a0 b0 a1 b1 …: of the lanes' first halves or of their second ones.
template <std::size_t width, std::size_t item, bool second, std::size_t... position>
[[gnu::always_inline]] inline void interleave(typename Register<width>::type& into,
                                              const typename Register<width>::type& a,
                                              const typename Register<width>::type& b, Positions<position...>) {
    using Vector = typename Items<width, item>::type;
    constexpr std::size_t lane = 16 / item, all = width / item;
    into = (typename Register<width>::type)shuffled(
        (Vector)a, (Vector)b,
        Positions<(position % 2 * all + position / lane * lane + position % lane / 2 + (second ? lane / 2 : 0))...>{});
}

/// Turns width / item rows of 16 bytes, `stride` bytes apart, into 16 / item columns. Each round moves one bit of an
/// item's row number into its column number.
template <std::size_t width, std::size_t item>
[[gnu::always_inline]] inline void turn(const std::byte* from, std::int64_t stride,
                                        typename Register<width>::type* columns) {
    constexpr std::size_t count = 16 / item;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < count; ++i) {
        load_lanes<width>(columns[i], from + static_cast<std::int64_t>(i) * stride,
                          static_cast<std::int64_t>(count) * stride);
    }
    if constexpr (count > 1) {
        constexpr typename UpTo<width / item>::type positions;
#pragma GCC unroll 4
        for (std::size_t round = 1; round < count; round *= 2) {
            typename Register<width>::type next[count];
#pragma GCC unroll 8
            for (std::size_t i = 0; i < count / 2; ++i) {
                interleave<width, item, false>(next[2 * i], columns[i], columns[i + count / 2], positions);
                interleave<width, item, true>(next[2 * i + 1], columns[i], columns[i + count / 2], positions);
            }
#pragma GCC unroll 16
            for (std::size_t i = 0; i < count; ++i) {
                columns[i] = next[i];
            }
        }
    }
}

}  // namespace
}  // namespace tilewise::kernel
