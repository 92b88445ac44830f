// The Frobenius, 1, ∞ and max norms of a matrix in a file, in one pass over it.
#pragma once

#include <array>
#include <cstdint>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/outcome.hpp"
#include "tilewise/io/transfer.hpp"

namespace tilewise::norm {

struct Options {
    io::StrategyKind read = io::StrategyKind::positioned;
    io::Hints hints;
    std::int64_t band_bytes = std::int64_t{32} << 20;  ///< on each rank, at a time
};

/// All are NaN where the matrix holds a NaN, else infinite where it holds an infinity, and 0 where it holds nothing.
/// Finite numbers overflow only where the norm itself is beyond float64.
struct Norms : Outcome {
    double frobenius = 0;  ///< the root of the sum of squares
    double one = 0;        ///< the largest sum of magnitudes of a column
    double infinity = 0;   ///< the largest sum of magnitudes of a row
    double max = 0;        ///< the largest magnitude
    std::int64_t nans = 0, infinities = 0;
};

/// The same on every rank. Band after band, so that the matrix may be far larger than memory: `band_bytes` a rank, for
/// each of its threads a float64 for each number of a row as the file stores it, and what the strategy stages. Throws
/// the same Error on every rank, or aborts the job where ranks already wait. @note Collective over `context.comm`.
Norms norms(Context& context, const io::Region& a, const Options& options);

/// Sums of magnitudes and of their squares, as one thread adds them up: no square is lost to the range of float64.
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
