// Products of float64 matrices that lie row by row: what decompositions and their proofs are made of.
#pragma once

#include "tilewise/kernel/gemm.hpp"

namespace tilewise::kernel {

inline Operand operand(const double* data, std::int64_t stride, bool transposed = false) {
    return {reinterpret_cast<const std::byte*>(data), stride, transposed};
}

/// C (m×n, without gaps) = A·B, or C + A·B. With k = 0 nothing is done.
inline void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a, const Operand& b, double* c,
                     bool accumulate, int threads) {
    if (m > 0 && n > 0 && k > 0) {
        gemm({Dtype::float64, m, n, k, a, b, reinterpret_cast<std::byte*>(c), n, accumulate}, threads);
    }
}

}  // namespace tilewise::kernel
