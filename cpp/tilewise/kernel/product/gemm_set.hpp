// What a product needs of an instruction set: packing of operands, and blocks of C by tiles in registers.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tilewise::kernel {

/// Blocks in a sum of Strassen's at most: two for each of three levels.
inline constexpr std::size_t most_terms = 8;

/// An operand as packing sees it, or a sum x₀ ± x₁ ± … of 2, 4 or 8 blocks of it. The outer side is A's rows or B's
/// columns, the inner one k; `along` is the distance between neighbours on the outer side, `down` between those on the
/// inner one, and one of the two is 1. (Plain arrays: functions of std::array would be compiled for each set.)
template <class T> struct Terms {
    std::size_t count = 1;
    std::int64_t along = 0, down = 0;
    const T* at[most_terms] = {};
    T sign[most_terms] = {};  ///< 1 or −1; of the first, 1
};

/// A block of C, its rows `stride` numbers apart; `accumulate`: the product is added to what is there.
template <class T> struct BlockOfC {
    T* data;
    std::int64_t stride, rows, columns;
    bool accumulate;
};

/// The blocks of C that a product of Strassen's goes to: added, or as the first that is written there.
template <class T> struct Targets {
    std::size_t count = 0;
    std::int64_t stride = 0;
    T* at[most_terms] = {};
    T sign[most_terms] = {};
    bool add[most_terms] = {};
};

/// Packing and tiles for one type of number. Panels are as wide as a tile, the last padded with zeros.
template <class T> struct GemmTiles {
    std::int64_t rows, columns;  ///< of a whole tile
    void (*pack_a)(const Terms<T>& a, std::int64_t m, std::int64_t depth, T* panels);
    void (*pack_b)(const Terms<T>& b, std::int64_t n, std::int64_t depth, T* panels);
    /// C = or += A·B, for a packed block of A and one of B, both `k` deep.
    void (*multiply)(std::int64_t k, const T* a, const T* b, const BlockOfC<T>& c);
    /// Each target = or += ± product, m×n.
    void (*add)(std::int64_t m, std::int64_t n, const T* product, std::int64_t stride, const Targets<T>& targets);
};

struct GemmSet {
    std::string_view name;  ///< what the record calls it
    GemmTiles<float> float32;
    GemmTiles<double> float64;
    GemmTiles<std::uint64_t> integers;  ///< signed or not: the bits are the same, and overflow wraps

    template <class T> const GemmTiles<T>& tiles() const {
        if constexpr (std::is_same_v<T, float>) {
            return float32;
        } else if constexpr (std::is_same_v<T, double>) {
            return float64;
        } else {
            return integers;
        }
    }
};

}  // namespace tilewise::kernel
