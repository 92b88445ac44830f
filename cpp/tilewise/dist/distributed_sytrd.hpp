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
#pragma once

#include "tilewise/dist/gram_eigen.hpp"

namespace tilewise::dist {

/// Columns of a panel: V and W of more would take all ranks longer than they save each of them.
inline constexpr std::int64_t reduced_columns = 32;

/// Reduces `gram`, which is every rank's, in its memory, where the reflectors stay. Besides: 2·reduced_columns numbers
/// for each column of the matrix. `reduce` on rank 0 alone is what it is compared with.
template <class T> Tridiagonal<T> distributed_sytrd(Gram<T> gram, const ColumnComm& comm, int threads);

extern template Tridiagonal<double> distributed_sytrd(Gram<double>, const ColumnComm&, int);
extern template Tridiagonal<kernel::Complex> distributed_sytrd(Gram<kernel::Complex>, const ColumnComm&, int);

}  // namespace tilewise::dist
