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

/// A symmetric matrix (of complex numbers a Hermitian one) is Q·T·Qᵀ: T on rank 0 alone, of Q some reflectors on each
/// rank, which turn all rows but the first.
template <class T> struct Tridiagonal {
    std::vector<double> diagonal, beside;
    Array<T> memory;
    SpreadQrOf<T> q;
};

/// The lower triangle of AᵀA, on rank 0: each rank multiplies a panel of A with its own columns that do not
/// lie before it.
template <class T> MatrixOf<T> gram_on_root(const SpreadColumnsOf<T>& a, const Team& team, int threads);

/// Reduces a matrix of n columns, of which rank 0 has the lower triangle, and lets go of it.
template <class T> Tridiagonal<T> reduce(MatrixOf<T> g, std::int64_t n, const Team& team, int threads);

/// Those of T, ascending. On rank 0 alone.
template <class T> std::vector<double> eigenvalues(const Tridiagonal<T>& t);

/// Eigenvectors of what was reduced, those of the largest values first, of which each rank gets the columns
/// `wanted`. On rank 0 2·n² numbers.
template <class T> MatrixOf<T> eigenvectors(Tridiagonal<T> t, const std::function<grid::Range(int rank)>& wanted,
                                            const Team& team, int threads);

/// A·V, of each rank's columns of V.
template <class T>
MatrixOf<T> product(const SpreadColumnsOf<T>& a, const MatrixOf<T>& v, const Team& team, int threads);

#define TILEWISE_SPREAD_EIGEN(form, T)                                                                                \
    form template MatrixOf<T> gram_on_root(const SpreadColumnsOf<T>&, const Team&, int);                              \
    form template Tridiagonal<T> reduce(MatrixOf<T>, std::int64_t, const Team&, int);                                 \
    form template std::vector<double> eigenvalues(const Tridiagonal<T>&);                                             \
    form template MatrixOf<T> eigenvectors(Tridiagonal<T>, const std::function<grid::Range(int)>&, const Team&, int); \
    form template MatrixOf<T> product(const SpreadColumnsOf<T>&, const MatrixOf<T>&, const Team&, int);
TILEWISE_SPREAD_EIGEN(extern, double)
TILEWISE_SPREAD_EIGEN(extern, Complex)

}  // namespace tilewise::kernel
