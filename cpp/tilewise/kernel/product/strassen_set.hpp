// What `strassen` calls for each instruction set: packing of sums, products of panels, and adding to several blocks.
#pragma once

#include <array>
#include <cstdint>

namespace tilewise::kernel {

/// Levels at most, and so blocks at most in a sum.
inline constexpr int strassen_most_levels = 3;
inline constexpr std::size_t strassen_most_terms = std::size_t{1} << strassen_most_levels;

/// x₀ ± x₁ ± …, 1, 2, 4 or 8 blocks of one operand, of which the first is positive. `along` numbers lie between
/// neighbours on the side of C, `down` between neighbours in depth; one of the two is 1.
template <class T> struct Terms {
    std::size_t count = 0;
    std::array<const T*, strassen_most_terms> at{};
    std::array<T, strassen_most_terms> sign{};
    std::int64_t along = 0, down = 0;
};

/// The blocks of C that a product goes to: added, or as the first that is written there.
template <class T> struct Targets {
    std::size_t count = 0;
    std::array<T*, strassen_most_terms> at{};
    std::array<T, strassen_most_terms> sign{};
    std::array<bool, strassen_most_terms> add{};
    std::int64_t stride = 0;
};

/// Panels of A are `rows` high and those of B `columns` wide, each packed depth after depth and filled up with zeros.
template <class T> struct StrassenSet {
    std::int64_t rows, columns;
    void (*pack_a)(const Terms<T>& a, std::int64_t m, std::int64_t depth, T* panels);
    void (*pack_b)(const Terms<T>& b, std::int64_t n, std::int64_t depth, T* panels);
    /// product = a·b of packed panels, with its last panels whole.
    void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t depth, const T* a, const T* b, T* product,
                     std::int64_t stride);
    /// Each target = or += ± product, m×n.
    void (*add)(std::int64_t m, std::int64_t n, const T* product, std::int64_t stride, const Targets<T>& targets);
};

struct StrassenSets {
    StrassenSet<float> float32;
    StrassenSet<double> float64;
};

/// By the width of their vectors in bytes; that of 16 is for every processor.
extern const StrassenSets strassen_sets_16;
#if defined(__x86_64__)
extern const StrassenSets strassen_sets_32, strassen_sets_64;
#endif

}  // namespace tilewise::kernel
