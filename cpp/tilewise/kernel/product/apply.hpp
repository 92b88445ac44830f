// One pass over a block: what proving a product costs. Products with two vectors, and what bounds the rounding errors
// in them.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

/// The type that a check sums in: double for float32 too, modulo 2⁶⁴ for integers, so that integer checks are exact.
template <class T> struct CheckType {
    using type = double;
};
template <class T> struct CheckType<std::complex<T>> {
    using type = std::complex<double>;
};
template <> struct CheckType<std::int64_t> {
    using type = std::uint64_t;
};
template <> struct CheckType<std::uint64_t> {
    using type = std::uint64_t;
};
template <class T> using Check = typename CheckType<T>::type;

/// Two vectors that a matrix is multiplied with, and a weight for each of its columns; a column of weight 0 is left
/// out, whatever it holds.
template <class V> struct Probe {
    std::vector<V> first, second;
    std::vector<double> weights;

    explicit Probe(std::int64_t length = 0)
        : first(static_cast<std::size_t>(length)),
          second(static_cast<std::size_t>(length)),
          weights(static_cast<std::size_t>(length)) {}
};

/// What comes out: both products, and of each row the 1-norm and the square of the 2-norm of the numbers times their
/// weights.
template <class V> struct Image {
    std::vector<V> first, second;
    std::vector<double> sums, squares;

    explicit Image(std::int64_t length = 0)
        : first(static_cast<std::size_t>(length)),
          second(static_cast<std::size_t>(length)),
          sums(static_cast<std::size_t>(length)),
          squares(static_cast<std::size_t>(length)) {}
};

/// y.first[y_at + i] += Σ_j X(i, j)·x.first[x_at + j], likewise `second`, and with the weights w, y.sums[y_at + i] +=
/// Σ_j |X(i, j)|·w[x_at + j] and y.squares[…] += Σ_j (|X(i, j)|·w[x_at + j])²; X is m×n, |z| of complex numbers |re| +
/// |im| in the sums. Weights mean nothing for integers. Not collective; reads X once: m·n·sizeof(T) bytes. Defined for
/// the types that are computed in.
template <class T>
void apply(const Operand& matrix, std::int64_t m, std::int64_t n, const Probe<Check<T>>& x, std::int64_t x_at,
           Image<Check<T>>& y, std::int64_t y_at, int threads);

/// Of each column its largest magnitude, past NaN, and its sum of squares, which is NaN where there is one. Complex
/// numbers count as two.
struct ColumnSizes {
    std::vector<double> largest, squares;

    explicit ColumnSizes(std::int64_t length)
        : largest(static_cast<std::size_t>(length)),
          squares(static_cast<std::size_t>(length)) {}
};

/// Takes the m×n matrix into account, whose first column is number `at`. Not collective; one pass. Of floating-point
/// types only.
template <class T>
void measure_columns(const Operand& matrix, std::int64_t m, std::int64_t n, ColumnSizes& sizes, std::int64_t at,
                     int threads);

}  // namespace tilewise::kernel
