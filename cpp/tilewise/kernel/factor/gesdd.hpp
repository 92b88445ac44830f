// LAPACK's decomposition by divide and conquer, on one rank.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tilewise/kernel/scalar.hpp"

namespace tilewise::kernel {

/// LAPACK's divide and conquer, any shape, k = min(rows, columns); A (column-major, rows×columns, `stride` apart) is
/// destroyed. U is rows×k with stride `rows`, Vᵀ is k×columns with stride k; both null: singular values only. Throws
/// Error where LAPACK does not converge, and UsageError where its work space does not fit into 32-bit counts (with
/// vectors: from about 23000 on).
template <class T> void gesdd(std::int64_t rows, std::int64_t columns, T* a, std::int64_t stride, double* sigma,
                              std::type_identity_t<T>* u, std::type_identity_t<T>* vt, int threads);
extern template void gesdd(std::int64_t, std::int64_t, double*, std::int64_t, double*, double*, double*, int);
extern template void gesdd(std::int64_t, std::int64_t, Complex*, std::int64_t, double*, Complex*, Complex*, int);

}  // namespace tilewise::kernel
