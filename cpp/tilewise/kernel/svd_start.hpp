// What precedes the sweeps of a Jacobi SVD, and what follows them, on one rank with threads.
//
//      A = Q1·(X·Vᵀ)·Q2·Pᵀ,  and at the end  X = Y·Σ,  so that  U = Q1·Y,  V' = P·Q2ᵀ·V.
//
// `eigen` start: G = Aᵀ·A = V0·Λ·V0ᵀ, X = A·V0, no Q1, Q2, P. The eigenvectors resolve half of the digits, so that the columns of X are nearly
//   orthogonal and one pass of Jacobi makes them so to the last digit. Only for condition numbers below the limits in `svd_start.cpp`.
// Otherwise: A·P = Q1·R with columns pivoted (or sorted), R = L·Q2; X = L, V0 = I. Each row of L keeps its own relative accuracy, and with it each
//   singular value of a matrix whose columns have any scale; L is also nearer to diagonal than A, which saves sweeps. Rows of very different scale are
//   sorted first, the largest on top: then reflectors keep each row's own accuracy too (Cox and Higham 1998), and rows may have any scale as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewise/kernel/jacobi.hpp"

namespace tilewise::kernel {

/// The orthogonal factors on both sides of what is swept, as LAPACK's reflectors, and the scale. Without reflectors (q1.rows = 0) both are I.
struct Factors {
    std::int64_t rows = 0, columns = 0;  ///< of A
    double scale = 1;                    ///< A was divided by this power of two
    Matrix q1, q2;                       ///< rows×columns, columns×columns
    std::vector<double> tau1, tau2;
    std::vector<int> permutation;  ///< column j of A·P is column permutation[j] of A
    std::vector<int> row_order;    ///< row i of what was factored is row row_order[i] of A; empty: as they are
};

/// Where the sweeps begin.
struct SweepStart {
    Matrix x;  ///< rows×columns (eigen start) or columns×columns
    Matrix v;  ///< columns×columns, V0; empty where not wanted
    Factors factors;
    bool eigen = false;    ///< whether X = A·V0 from eigenvectors
    std::string steps;     ///< what was done, for the record: "column-pivoted QR, LQ"
    std::string fallback;  ///< one sentence: why there was no eigen start although it was asked for
};

/// A (rows ≥ columns) is read only. O(rows·columns²) operations, most of them on all `threads`. `eigen`: try the fast start.
SweepStart start_sweeps(Columns a, bool eigen, bool want_v, int threads);

/// After the sweeps, of some columns only, so that ranks share the work: σ = |x|·scale, U = Q1·[x/|x|; 0] (rows×count, x itself where that has as
/// many rows). u without data: not wanted. A σ of 0 (|x| below 1e-290) leaves a column of zeros in U for `complete`.
void finish_columns(const Factors& factors, Columns x, Columns u, double* sigma, int threads);

/// The same of V, in place: v becomes P·Q2ᵀ·v (columns×count).
void turn_back(const Factors& factors, Columns v, int threads);

/// Fills columns `from` … of U so that all are orthonormal, given that those before are. Depends on nothing but them. O(rows·count²).
void complete(Columns u, std::int64_t from, int threads);

}  // namespace tilewise::kernel
