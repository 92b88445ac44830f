// QR of a tall matrix that arrives in pieces of rows, each of which is factored while it is in the cache:
// sequential and parallel TSQR.
//
//     chunks of a rank      stack                          over the ranks, two triangles at a time
//     [ Y0 ] = Q0·[ R0 ]    [ R0 ]                         rank 0  1  2  3
//     [ Y1 ] = Q1·[ R1 ]    [ R1 ] = Q'·[ R' ]                  \  1  \  3      [ R' ]
//     [ Y2 ] = Q2·[ R2 ]    [ R2 ]                                  \ 2 /       [ R' ] = Q''·R''
//
// Each rank but rank 0 merges once: the one that has the first row of the lower half of what meets. R goes to rank 0.
// On the way back Q is applied, as far down as each rank's rows: no factor is ever multiplied out.
//
// Householder's reflections all the way down: Q is orthonormal to rounding whatever Y is, zeros included.
//
// J. Demmel, L. Grigori, M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR and LU
// factorizations", 2012.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/scalar.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::dist {

/// Rows of a chunk for each column: fewer make more of the work that goes into combining.
inline constexpr std::int64_t chunk_factor = 4;

/// One rank's rows of a matrix with n = `columns` columns. T is float, double or complex.
template <class T> class TallQr {
public:
    /// `rows` may be 0; over all ranks there are `columns` at least. Memory, in numbers: rows·n for the
    /// matrix, up to min(rows, n·⌈rows/chunk⌉)·n for the stack; after combine() 2·n² on ranks that merge, and
    /// n² on rank 0 for R.
    TallQr(std::int64_t rows, std::int64_t columns, std::int64_t chunk);

    std::int64_t chunks() const { return static_cast<std::int64_t>((rows_ + chunk_ - 1) / chunk_); }
    std::int64_t rows_of(std::int64_t index) const { return std::min(chunk_, rows_ - index * chunk_); }
    /// A chunk's rows, column by column, `rows_of` apart: to be filled, then to be factored.
    T* chunk(std::int64_t index) const { return data() + index * chunk_ * columns_; }
    /// Several chunks may be factored at once, each on its own thread, with the BLAS on one.
    void factor(std::int64_t index);
    /// After all chunks: makes R, in 10/3·n³ operations a merge, log₂(ranks) of them one after another. With
    /// `comm` null the matrix is this rank's alone, else `comm` must live as long as this. @note Collective
    /// over `comm`, if any: a rank that throws leaves others waiting.
    void combine(const mpi::Communicator* comm, int threads);
    /// n×n, column by column, upper triangle: on rank 0 alone, or where `comm` was null.
    const std::vector<T>& r() const { return r_; }
    /// The rank that hand_down() begins with.
    int root() const;
    /// Turns b (n×count, column by column; only read on `root`) into what each rank's chunks need of it, and
    /// lets go of the merges and the stack. Can be called once; count ≤ n. Memory: 2·n·count, and the stack's
    /// rows times count. @note Collective over `comm`, as combine().
    void hand_down(const T* b, std::int64_t count, int threads);
    /// After hand_down(): this rank's rows of Q·b, row by row, without gaps, over what held the chunks.
    /// Memory: `chunk`·count a thread. Not collective.
    T* apply(int threads);

private:
    /// Where two halves of the ranks [begin, end) meet.
    struct Node {
        int begin = 0, end = 0;

        int size() const { return end - begin; }
        int middle() const { return begin + size() / 2; }
        Node upper() const { return {begin, middle()}; }
        Node lower() const { return {middle(), end}; }
        /// Who has its triangle.
        int holder() const { return size() == 1 ? begin : middle(); }
    };
    /// What this rank merges: two triangles, one above the other, and where it goes from there.
    struct Merge {
        Node node;  ///< of no ranks: nothing
        int above = 0;
        std::int64_t high = 0, upper = 0;  ///< rows of both, and of the upper one
        std::vector<T> a, tau;
    };

    T* data() const { return memory_.data(); }
    std::int64_t reflectors(std::int64_t index) const { return std::min(rows_of(index), columns_); }
    std::int64_t triangle() const { return std::min(stack_rows_, columns_); }
    std::int64_t rows_under(const Node& node) const;
    void find_places();
    void merge();
    void split(const T* b);
    void send(const T* from, std::int64_t runs, std::int64_t length, std::int64_t stride, int to) const;
    void receive(T* to, std::int64_t runs, std::int64_t length, std::int64_t stride, int from) const;

    std::int64_t rows_, columns_, chunk_, count_ = 0;
    Array<T> memory_;
    std::vector<T> taus_, stack_, stack_tau_, pieces_, r_;
    std::int64_t stack_rows_ = 0;
    const mpi::Communicator* comm_ = nullptr;  ///< null: nobody else has rows
    std::vector<std::int64_t> before_;         ///< rows of the triangles of all ranks before each
    int above_ = 0;                            ///< who merges this rank's triangle
    Merge merge_;
};

extern template class TallQr<float>;
extern template class TallQr<double>;
extern template class TallQr<kernel::Complex>;

}  // namespace tilewise::dist
