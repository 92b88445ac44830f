// The eigenvectors of AᵀA where the columns of A are spread over ranks: products by every rank for its columns, and
// what lies between them on rank 0, with all cores of its node, or by all ranks, which costs a message for each column.
//
//                   on rank 0                              shared
//     every rank    AᵀA, a panel after the other
//                   rank 0 gets the lower triangle         each rank keeps its columns
//     AᵀA=Q·T·Qᵀ    LAPACK; reflectors are given away      distributed_sytrd.hpp; reflectors stay
//     T=Z·Λ·Zᵀ      LAPACK; columns of Z are given away    distributed_stedc.hpp
//     every rank    V = Q·Z, X = A·V
#pragma once

#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/dist/column_qr.hpp"

namespace tilewise::dist {

/// Columns of A that all ranks have at once for a product with their own.
inline constexpr std::int64_t gram_panel_columns = 256;

/// AᵀA, of complex numbers AᴴA: each rank has the columns at its places.
template <class T> struct Gram {
    kernel::MatrixOf<T> mine;
    std::vector<int> owners;          ///< of each place
    std::vector<std::int64_t> order;  ///< the column of A at each place, and row too; empty: as they are
    bool shared = false;              ///< every rank's; else rank 0 has the lower triangle
};

/// A symmetric matrix (of complex numbers a Hermitian one) is Q·T·Qᵀ: T on every rank, or on rank 0 alone; of Q some
/// reflectors on each rank, which turn all rows but the first.
template <class T> struct Tridiagonal {
    std::vector<double> diagonal, beside;
    Array<T> memory;
    ColumnQrOf<T> q;
    std::vector<std::int64_t> order;  ///< of the rows of Q, as in Gram
    bool shared = false;              ///< whether every rank has T
};

/// Each rank multiplies panels of A with its own columns. On rank 0: with those that do not lie before the panel, and
/// rank 0 gets the products. Shared: all of them, which stay where they are; places take turns over the ranks.
template <class T> Gram<T> gram(const SpreadColumnsOf<T>& a, bool shared, const ColumnComm& comm, int threads);

/// Lets go of what is reduced.
template <class T> Tridiagonal<T> reduce(Gram<T> g, const ColumnComm& comm, int threads);

/// Those of T, ascending. On rank 0 alone.
template <class T> std::vector<double> eigenvalues(const Tridiagonal<T>& t);

/// Eigenvectors of what was reduced, those of the largest values first, of which each rank gets the columns
/// `wanted`. On rank 0 2·n² numbers, where T is there alone.
template <class T> kernel::MatrixOf<T> eigenvectors(Tridiagonal<T> t,
                                                    const std::function<grid::Range(int rank)>& wanted,
                                                    const ColumnComm& comm, int threads);

/// A·V, of each rank's columns of V.
template <class T>
kernel::MatrixOf<T> product(const SpreadColumnsOf<T>& a, const kernel::MatrixOf<T>& v, const ColumnComm& comm,
                            int threads);

#define TILEWISE_GRAM_EIGEN(form, T)                                                                       \
    form template Gram<T> gram(const SpreadColumnsOf<T>&, bool, const ColumnComm&, int);                   \
    form template Tridiagonal<T> reduce(Gram<T>, const ColumnComm&, int);                                  \
    form template std::vector<double> eigenvalues(const Tridiagonal<T>&);                                  \
    form template kernel::MatrixOf<T> eigenvectors(Tridiagonal<T>, const std::function<grid::Range(int)>&, \
                                                   const ColumnComm&, int);                                \
    form template kernel::MatrixOf<T> product(const SpreadColumnsOf<T>&, const kernel::MatrixOf<T>&,       \
                                              const ColumnComm&, int);
TILEWISE_GRAM_EIGEN(extern, double)
TILEWISE_GRAM_EIGEN(extern, kernel::Complex)

}  // namespace tilewise::dist
