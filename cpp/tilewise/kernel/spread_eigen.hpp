// The eigenvectors of AᵀA where the columns of A are spread over ranks. What is serial is done on rank 0, all
// else by every rank for its columns:
//
//     every rank    AᵀA, a panel after the other
//     rank 0        Q·T·Qᵀ = AᵀA, whose reflectors it gives away; T = Z·Λ·Zᵀ
//     every rank    takes columns of Z; V = Q·Z, X = A·V
#pragma once

#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/spread_qr.hpp"

namespace tilewise::kernel {

/// Columns of A that all ranks have at once for a product with their own.
inline constexpr std::int64_t gram_panel_columns = 256;

/// A symmetric matrix is Q·T·Qᵀ: T on rank 0 alone, of Q some reflectors on each rank, which turn all rows but
/// the first.
struct Tridiagonal {
    std::vector<double> diagonal, beside;
    Array<double> memory;
    SpreadQr q;
};

/// The lower triangle of AᵀA, on rank 0: each rank multiplies a panel of A with its own columns that do not
/// lie before it.
Matrix gram_on_root(const SpreadColumns& a, const Team& team, int threads);

/// Reduces a matrix of n columns, of which rank 0 has the lower triangle, and lets go of it.
Tridiagonal reduce(Matrix g, std::int64_t n, const Team& team, int threads);

/// Those of T, ascending. On rank 0 alone.
std::vector<double> eigenvalues(const Tridiagonal& t);

/// Eigenvectors of what was reduced, those of the largest values first, of which each rank gets the columns
/// `wanted`. On rank 0 2·n² numbers.
Matrix eigenvectors(Tridiagonal t, const std::function<grid::Range(int rank)>& wanted, const Team& team, int threads);

/// A·V, of each rank's columns of V.
Matrix product(const SpreadColumns& a, const Matrix& v, const Team& team, int threads);

}  // namespace tilewise::kernel
