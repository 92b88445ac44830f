// The decomposition of the triangle that is left of a tall matrix, on one rank.
#pragma once

#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/scalar.hpp"

namespace tilewise::svd {

template <class T> struct TriangleSvd {
    std::vector<double> s;  ///< descending
    Array<T> u, vh;         ///< n×n, column by column; nothing where they are not wanted
};

/// R = U·diag(s)·Vᴴ, R n×n, column by column, which is destroyed. By gesdd, or by rotations where real columns differ
/// so much in scale that gesdd would lose small singular values. Memory, in numbers: 9·n² beside R. Not collective.
template <class T> TriangleSvd<T> decompose_triangle(std::int64_t n, T* r, bool vectors, int threads);

extern template TriangleSvd<double> decompose_triangle(std::int64_t, double*, bool, int);
extern template TriangleSvd<kernel::Complex> decompose_triangle(std::int64_t, kernel::Complex*, bool, int);

}  // namespace tilewise::svd
