// Multiplies a block with two vectors at once in one pass over it: what proving a product costs.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "tilewise/kernel/gemm.hpp"

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

/// Two vectors of the same length.
template <class V> struct Pair {
    std::vector<V> first, second;

    explicit Pair(std::int64_t length = 0)
        : first(static_cast<std::size_t>(length)),
          second(static_cast<std::size_t>(length)) {}
    std::int64_t size() const { return static_cast<std::int64_t>(first.size()); }
};

/// y[y_at + i] += Σ_j X(i, j)·x[x_at + j] for both vectors, and squares[y_at + i] += Σ_j |X(i, j)|² (not for integers), X being m×n.
/// Not collective; reads X once: m·n·sizeof(T) bytes. Defined for the types that are computed in.
template <class T>
void apply(const Operand& matrix, std::int64_t m, std::int64_t n, const Pair<Check<T>>& x, std::int64_t x_at,
           Pair<Check<T>>& y, std::int64_t y_at, std::vector<double>& squares, int threads);

}  // namespace tilewise::kernel
