// Products of float64 and complex128 matrices that lie row by row: what decompositions and their proofs are made of.
#pragma once

#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

template <class T> Operand operand(const T* data, std::int64_t stride, bool transposed = false) {
    return {reinterpret_cast<const std::byte*>(data), stride, transposed};
}

/// C (m×n, without gaps) = A·B, or C + A·B. With k = 0 nothing is done.
template <class T> void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a, const Operand& b,
                                 T* c, bool accumulate, int threads) {
    constexpr Dtype dtype = std::is_same_v<T, double> ? Dtype::float64 : Dtype::complex128;
    static_assert(dtype == Dtype::float64 || std::is_same_v<T, std::complex<double>>);
    if (m > 0 && n > 0 && k > 0) {
        gemm({dtype, m, n, k, a, b, reinterpret_cast<std::byte*>(c), n, accumulate}, threads);
    }
}

}  // namespace tilewise::kernel
