// What precedes the sweeps of a Jacobi SVD, and what follows them, of columns that are spread over ranks; and one
// rank's decomposition, with sweeps of one pair that holds all columns.
//
//      A = Q1·(X·Vᵀ)·Q2·Pᵀ,  and at the end  X = Y·Σ,  so that  U = Q1·Y,  V' = P·Q2ᵀ·V.
//
// `eigen` start: G = Aᵀ·A = V0·Λ·V0ᵀ, X = A·V0, no Q1, Q2, P. The eigenvectors resolve half of the digits, so that the
// columns of X are nearly orthogonal, and one pass of Jacobi makes them so to the last digit. Only for condition
// numbers below the limits in `jacobi_ends.cpp`.
//
// Otherwise: A·P = Q1·R with columns pivoted (or sorted), R = L·Q2; X = L, V0 = I. Each row of L keeps its own relative
// accuracy, and with it each singular value of a matrix whose columns have any scale. L is also nearer to diagonal than
// A, which saves sweeps. Rows of very different scale are sorted first, the largest on top: then reflectors keep each
// row's own accuracy too (Cox and Higham 1998), and rows may have any scale as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewise/dist/column_qr.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::svd {

/// The orthogonal factors on both sides of what is swept, as reflectors that each rank has some of, and the
/// scale. Without reflectors both are I.
template <class T> struct FactorsOf {
    std::int64_t rows = 0, columns = 0;    ///< of A
    double scale = 1;                      ///< A was divided by this power of two
    kernel::MatrixOf<T> memory1, memory2;  ///< of this rank's columns of q1 and q2
    dist::ColumnQrOf<T> q1, q2;
    std::vector<int> permutation;  ///< column j of A·P is column permutation[j] of A
    std::vector<int> row_order;    ///< row i of what was factored is row row_order[i] of A; empty: as they are

    bool reflects() const { return !q1.tau.empty(); }
};
using Factors = FactorsOf<double>;

/// Where the sweeps begin; of X and V the columns of this rank.
template <class T> struct SweepStartOf {
    kernel::MatrixOf<T> x;  ///< rows×columns (eigen start) or columns×columns
    kernel::MatrixOf<T> v;  ///< columns×columns, V0; empty where it is I or not wanted
    FactorsOf<T> factors;
    bool eigen = false;    ///< whether X = A·V0 from eigenvectors
    std::string steps;     ///< what was done, for the record: "column-pivoted QR, LQ"
    std::string fallback;  ///< one sentence: why there was no eigen start although it was asked for
};
using SweepStart = SweepStartOf<double>;

/// Whether to try the start from eigenvectors, and who makes what is no product: rank 0, or all ranks.
enum class EigenStart { none, on_root, shared };

/// The columns, one after the other, that a rank is to have of X and V after the one start or the other.
using ColumnsOfRank = std::function<grid::Range(int rank, bool eigen)>;

/// A (rows ≥ columns; a rank's columns follow each other, those of rank 0 first) is read, and let go of: `a`
/// points into `memory`, or lasts longer where that is empty. O(rows·columns²) operations. `eigen`: on rank 0
/// it has AᵀA and what LAPACK needs, 3·columns² numbers. All else is a panel and a few times the columns of a rank.
template <class T>
SweepStartOf<T> start_sweeps(const dist::SpreadColumnsOf<T>& a, Buffer memory, EigenStart eigen, bool want_v,
                             const ColumnsOfRank& wanted, const dist::ColumnComm& comm, int threads);

/// After the sweeps, of some columns on each rank: σ = |x|·scale, U = Q1·[x/|x|; 0] (rows×count, x itself
/// where that has as many rows). u without data: not wanted. A σ of 0 (|x| below 1e-290) leaves a column of
/// zeros in U for `complete`.
template <class T> void finish_columns(const FactorsOf<T>& factors, kernel::ColumnsOf<T> x, bool with_u,
                                       kernel::ColumnsOf<T> u, double* sigma, const dist::ColumnComm& comm,
                                       int threads);

/// The same of V, in place: v becomes P·Q2ᵀ·v (columns×count).
template <class T> void turn_back(const FactorsOf<T>& factors, kernel::ColumnsOf<T> v, const dist::ColumnComm& comm,
                                  int threads);

/// Fills the columns of U at places `from` … so that all are orthonormal, given that those before are. Depends
/// on nothing but them. O(rows·count²).
template <class T> void complete(const dist::SpreadColumnsOf<T>& u, std::int64_t from, const dist::ColumnComm& comm,
                                 int threads);

#define TILEWISE_JACOBI_ENDS(form, T)                                                                                 \
    form template SweepStartOf<T> start_sweeps(const dist::SpreadColumnsOf<T>&, Buffer, EigenStart, bool,             \
                                               const ColumnsOfRank&, const dist::ColumnComm&, int);                   \
    form template void finish_columns(const FactorsOf<T>&, kernel::ColumnsOf<T>, bool, kernel::ColumnsOf<T>, double*, \
                                      const dist::ColumnComm&, int);                                                  \
    form template void turn_back(const FactorsOf<T>&, kernel::ColumnsOf<T>, const dist::ColumnComm&, int);            \
    form template void complete(const dist::SpreadColumnsOf<T>&, std::int64_t, const dist::ColumnComm&, int);
TILEWISE_JACOBI_ENDS(extern, double)
TILEWISE_JACOBI_ENDS(extern, kernel::Complex)

// One rank's decomposition by Jacobi, without MPI: the same start and finish as over many ranks, and sweeps of one pair
// that holds all columns.

struct JacobiOptions {
    kernel::Inner inner = kernel::Inner::blocks;
    bool eigen_start = true;
    int most_sweeps = 30;
    double tolerance = 0;  ///< 0: jacobi_tolerance
    int threads = 1;
};

struct JacobiFacts {
    std::vector<double> off;  ///< the largest cosine that each sweep found
    bool converged = false;
    kernel::PairTally tally;
    std::string start, fallback;
    double start_seconds = 0, sweep_seconds = 0, finish_seconds = 0;
};

/// A = U·Σ·Vᵀ, A rows×columns with rows ≥ columns; σ descending, U rows×columns, V columns×columns. u or v without
/// data: not wanted; where V is not wanted, it is not accumulated.
JacobiFacts jacobi_svd(kernel::Columns a, double* sigma, kernel::Columns u, kernel::Columns v,
                       const JacobiOptions& options);

}  // namespace tilewise::svd
