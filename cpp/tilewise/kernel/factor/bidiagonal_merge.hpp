// One step of divide and conquer: the singular value decompositions of two halves become that of the whole.
#pragma once

#include <cstdint>

namespace tilewise::kernel {

/// Some rows of an upper bidiagonal matrix, and where their values and vectors are or will be.
struct BidiagonalPart {
    std::int64_t n;  ///< rows
    double *d, *e;   ///< the diagonal, which becomes the values in no order, and what is above it
    double *u, *vt;  ///< U and Vᵀ of these rows, columns `stride` apart
    std::int64_t stride;
};

/// `part` has the values and vectors of its first `left` rows, with a column more, and of those after the row that
/// follows, with `sqre` columns more. `q`: n² numbers.
void merge_halves(const BidiagonalPart& part, std::int64_t left, std::int64_t sqre, double* q, int threads);

}  // namespace tilewise::kernel
