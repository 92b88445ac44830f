// Sums of magnitudes and of their squares, as one thread adds them up: no square is lost to the range of float64.
#pragma once

#include <array>
#include <cstdint>

#include "tilewise/base/dtype.hpp"

namespace tilewise::norm {

/// Of the numbers seen so far; sums of several threads and ranks add up, member by member.
struct Sums {
    /// Of x², of (x·2⁻⁶⁰⁰)² where neighbours are so large that x² could overflow, and of (x·2⁶⁰⁰)² where all are so
    /// small that it could underflow.
    std::array<double, 3> squares{};
    double largest = 0;
    std::int64_t nans = 0, infinities = 0;

    /// Adds `count` numbers of a row, in a file's own type and byte order, and the magnitude of each to its column's
    /// sum. Returns the sum of the magnitudes. A complex number with an infinite part is infinite.
    double add(const std::byte* row, std::int64_t count, Dtype dtype, bool swap_bytes, double* columns);

    Sums& operator+=(const Sums& other);
    /// The root of all squares, which is infinite only where the result is beyond float64.
    double root() const;
};

}  // namespace tilewise::norm
