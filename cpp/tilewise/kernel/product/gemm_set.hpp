// What a product needs of an instruction set: packing of operands, and blocks of C by tiles in registers.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tilewise::kernel {

/// An operand as packing sees it: the outer side is A's rows or B's columns, the inner one k. `along` is the distance
/// between neighbours on the outer side, `down` between those on the inner one; one of the two is 1.
template <class T> struct PackSource {
    const T* data;
    std::int64_t outer, inner, along, down;
};

/// A block of C, its rows `stride` numbers apart; `accumulate`: the product is added to what is there.
template <class T> struct BlockOfC {
    T* data;
    std::int64_t stride, rows, columns;
    bool accumulate;
};

/// Packing and tiles for one type of number. Panels are as wide as a tile, the last padded with zeros.
template <class T> struct GemmTiles {
    std::int64_t rows, columns;  ///< of a whole tile
    void (*pack_a)(const PackSource<T>& a, T* panels);
    void (*pack_b)(const PackSource<T>& b, T* panels);
    /// C = or += A·B, for a packed block of A and one of B, both `k` deep.
    void (*multiply)(std::int64_t k, const T* a, const T* b, const BlockOfC<T>& c);
};

struct GemmSet {
    std::string_view name;  ///< what the record calls it
    std::int64_t width;     ///< bytes of a register
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

// One for each width of register: of SSE2 or NEON, AVX2 and AVX-512.
extern const GemmSet gemm_set_16, gemm_set_32, gemm_set_64;

}  // namespace tilewise::kernel
