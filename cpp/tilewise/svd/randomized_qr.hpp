// QR of a tall matrix that arrives in pieces of rows, each of which is factored while it is in the cache: sequential and parallel TSQR.
//
//     chunks of a rank      stack              over all ranks
//     [ Y0 ] = Q0·[ R0 ]    [ R0 ]                                 Y = diag(Q0, Q1, …)·diag(over ranks: Q')·Q''·R, and no factor is
//     [ Y1 ] = Q1·[ R1 ]    [ R1 ] = Q'·[ R' ]   [ R' ] = Q''·R    ever multiplied out: each is applied to what is wanted of Q.
//     [ Y2 ] = Q2·[ R2 ]    [ R2 ]               [ R' ]
//
// Householder's reflections all the way down: Q is orthonormal to rounding whatever Y is, zeros included.
//
// J. Demmel, L. Grigori, M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR and LU factorizations", 2012.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::svd {

/// One rank's rows of a matrix with `columns` columns. T is float or double.
template <class T> class TallQr {
public:
    /// `rows` may be 0; over all ranks there are `columns` at least. Memory: the matrix, and columns/chunk of that for the stack.
    TallQr(std::int64_t rows, std::int64_t columns, std::int64_t chunk);

    std::int64_t chunks() const { return static_cast<std::int64_t>((rows_ + chunk_ - 1) / chunk_); }
    std::int64_t rows_of(std::int64_t index) const { return std::min(chunk_, rows_ - index * chunk_); }
    /// A chunk's rows, column by column, `rows_of` apart: to be filled, then to be factored.
    T* chunk(std::int64_t index) const { return data() + index * chunk_ * columns_; }
    /// Several chunks may be factored at once, each on its own thread, with the BLAS on one.
    void factor(std::int64_t index);
    /// After all chunks: makes R. With `comm` null the matrix is this rank's alone. @note Collective over `comm`, if any.
    void combine(const mpi::Communicator* comm);
    /// columns × columns, column by column, upper triangle; the same on all ranks.
    const std::vector<T>& r() const { return r_; }
    /// This rank's rows of Q·b (b: columns × count, column by column), written row by row, without gaps, over what held the chunks. Can be called once; count ≤ columns. Not collective.
    T* apply(const T* b, std::int64_t count, int threads);

private:
    T* data() const { return reinterpret_cast<T*>(memory_.data()); }
    std::int64_t reflectors(std::int64_t index) const { return std::min(rows_of(index), columns_); }

    std::int64_t rows_, columns_, chunk_;
    Buffer memory_;
    std::vector<T> taus_, stack_, stack_tau_, top_, top_tau_, r_;
    std::int64_t stack_rows_ = 0, top_rows_ = 0, top_first_ = 0, top_mine_ = 0;
};

extern template class TallQr<float>;
extern template class TallQr<double>;

}  // namespace tilewise::svd
