// The eigenvectors of AᵀA where the columns of A are spread over ranks: products by every rank for its columns, and
// what lies between them on rank 0, with all cores of its node, or by all ranks, which costs a message for each column.
//
//                   on rank 0                              shared
//     every rank    AᵀA, a panel after the other
//                   rank 0 gets the lower triangle         each rank keeps its columns
//     AᵀA=Q·T·Qᵀ    LAPACK; reflectors are given away      distributed_sytrd.cpp; reflectors stay
//     T=Z·Λ·Zᵀ      LAPACK; columns of Z are given away    distributed_stedc.cpp
//     every rank    V = Q·Z, X = A·V
//
// Design: docs/design/svd.md
#pragma once

#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/dist/column_comm.hpp"
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

// Eigenvectors of a symmetric tridiagonal matrix by divide and conquer, by all ranks: each has columns of the vectors
// of every level, and multiplies out those of the next.
//
//      leaves      each on one rank                 [ # # # #             ]
//                                                   [ # # # #             ]   a column has so many rows as the largest
//      a level     z: two rows of each pair, ──▶    [ 0 0 1 1 | 2 2 3 3   ]   part of the level, here on ranks 0 … 3
//                  gathered; roots and weights,
//                  each rank its share of them, gathered
//                  vectors of pairs in terms of halves, each rank its columns S
//                  Q·S, panels of Q gathered        [ Q₁    ] · [ S S S S ]    the next level's columns
//                                                   [    Q₂ ]   [ S S S S ]
//
// All ranks know all eigenvalues. F. Tisseur, J. Dongarra, "A parallel divide and conquer algorithm for the symmetric
// eigenvalue problem on distributed memory architectures", 1999.

/// Rows that LAPACK decomposes on one rank, at most.
inline constexpr std::int64_t shared_leaf = 256;

/// Columns `wanted` of all vectors, those of the smallest values first, n rows each without gaps; ranks' ranges may lie
/// in any sequence. Every rank has the same diagonal (n), and the same numbers beside it (n, the last one is nothing).
/// Memory of a rank, in numbers: three times its columns, and a panel of `gram_panel_columns` of them.
Array<double> distributed_stedc(std::vector<double> diagonal, std::vector<double> beside,
                                const std::function<grid::Range(int rank)>& wanted, const ColumnComm& comm, int threads,
                                std::int64_t leaf = shared_leaf);

// A symmetric matrix of which ranks have columns is made tridiagonal by all of them: one gathering for each column.
//
//     place   0 1 2 3 4 5 6 7     Columns are dealt out in turns, so that of what is left of the matrix every rank
//     rank    0 1 2 0 1 2 0 1     has its share to the end.
//
//     a panel     its columns as they are, on every rank, and beside it V and W of those that are done
//     a column    x ← x − V·Wᴴ − W·Vᴴ, and its reflector v, τ          every rank, the same numbers
//                 p = A·v, as Aᴴ = A is                                each element by the rank that has its column
//                                                                      ──▶ gathered: the one message
//                 w = τ·(p − V·(Wᴴ·v) − W·(Vᴴ·v)) − ½·τ·(wᴴ·v)·v       every rank, the same numbers
//     then        A ← A − V·Wᴴ − W·Vᴴ                                  each rank its columns
//
// What takes time is A·v, which reads what is left of A for each column: here each rank its share of it. The whole
// square is kept, not a triangle: half as much would be read of a triangle, but all of p would be sums over ranks.
//
// J. Dongarra, S. Hammarling, D. Sorensen, "Block reduction of matrices to condensed forms for eigenvalue
// computations", 1989; J. Choi, J. Dongarra, D. Walker, "The design of a parallel dense linear algebra software
// library: reduction to Hessenberg, tridiagonal, and bidiagonal form", 1995.

/// Columns of a panel: V and W of more would take all ranks longer than they save each of them.
inline constexpr std::int64_t reduced_columns = 32;

/// Reduces `gram`, which is every rank's, in its memory, where the reflectors stay. Besides: 2·reduced_columns numbers
/// for each column of the matrix. `reduce` on rank 0 alone is what it is compared with.
template <class T> Tridiagonal<T> distributed_sytrd(Gram<T> gram, const ColumnComm& comm, int threads);

extern template Tridiagonal<double> distributed_sytrd(Gram<double>, const ColumnComm&, int);
extern template Tridiagonal<kernel::Complex> distributed_sytrd(Gram<kernel::Complex>, const ColumnComm&, int);

}  // namespace tilewise::dist
