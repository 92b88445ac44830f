// Singular values and vectors of a bidiagonal matrix by divide and conquer, with threads and little memory.
//
//      [ B₁      ]   B₁ = U₁·[D₁ 0]·V₁ᵀ, B₂ alike, so that         [ z₁ z₂ z₃ … ]
//      [   α β   ]   B = U'·M·V'ᵀ with an arrow M of the old       [    d₂      ]  = M
//      [      B₂ ]   values, of which σ are roots of one           [       d₃   ]
//                    equation: 1 + Σ zᵢ²/(dᵢ² − σ²) = 0            [          … ]
//
// What has a z that is too small, and all but one of equal d, leave M unchanged. Vectors of M are those of a z that
// fits the roots exactly, which makes them orthogonal. Threads share what is independent, and products by blocks of
// fixed size: no number depends on how many they are.
//
// M. Gu, S. Eisenstat, "A divide-and-conquer algorithm for the bidiagonal SVD", 1995; as in LAPACK's bdsdc, whose small
// problems and roots these are.
#pragma once

#include <cstdint>

namespace tilewise::kernel {

/// B = U·diag(d)·Vᵀ, B upper bidiagonal with diagonal d (n) and e above it (n − 1; n numbers have to be there).
/// Descending. U and Vᵀ (n×n, column by column) have zeros at first, or no data: no vectors are wanted. Memory: theirs
/// and n² numbers more. e is destroyed.
void bidiagonal_svd(std::int64_t n, double* d, double* e, double* u, double* vt, int threads);

}  // namespace tilewise::kernel
