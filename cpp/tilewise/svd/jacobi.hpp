// One-sided block Jacobi over all ranks, and its three parts: what precedes the sweeps, the sweeps, what follows them.
//
//     precondition.cpp     tall W, several ranks    each rank    its rows of W = Qr·R
//                                                   all ranks    [R0; R1; …] = Q'·R by a tree; rank 0 deals R out
//                          else                     all ranks    columns of W, from rows where the file has these
//
//                          A = W or R:  A·P = Q1·L·Q2, X = L, V = I,  or  X = A·V of AᵀA's eigenvectors V
//                          (see jacobi_ends.hpp)
//     sweeps.cpp           X and V in column blocks, which travel between the ranks until X's are orthogonal
//     back_transform.cpp   U and V of A out of them, sorted, and dealt out as they are to be written
//
// With the start `none`, X = W of any shape and V = I: columns only go where they are swept.
//
// Design: docs/design/svd.md
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/dist/column_comm.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/grid/ring.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/svd/jacobi_ends.hpp"
#include "tilewise/svd/source.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// What is swept: n columns of X, and as many of V.
struct Shape {
    std::int64_t rows = 0;    ///< of X
    std::int64_t v_rows = 0;  ///< of V; 0: V is not wanted

    std::int64_t height() const { return rows + v_rows; }
};

/// A rank holds two blocks at each of its positions.
///
///     a block's memory    [ X: rows × width, column by column | V: v_rows × width ]     one message takes both
template <class T> struct ColumnBlock {
    int index = 0;
    grid::Range columns;
    Array<T> memory;

    T* data() const { return memory.data(); }
    std::int64_t numbers(const Shape& shape) const { return columns.size() * shape.height(); }
    kernel::ColumnsOf<T> x(const Shape& shape) const { return {data(), shape.rows, columns.size(), shape.rows}; }
    kernel::ColumnsOf<T> v(const Shape& shape) const {
        return {data() + shape.rows * columns.size(), shape.v_rows, shape.v_rows > 0 ? columns.size() : 0,
                shape.v_rows};
    }
};

template <class T> class ColumnBlocks {
public:
    /// The first blocks of a rank, their numbers not set.
    ColumnBlocks(const grid::Ring& ring, const grid::Partition& cut, const Shape& shape, int rank);

    const Shape& shape() const { return shape_; }
    const grid::Partition& cut() const { return cut_; }
    /// Takes the columns of the blocks that the rank begins with, one beside the other; X is gone before V is
    /// touched, which is I where it is empty.
    void fill(kernel::MatrixOf<T> x, kernel::MatrixOf<T> v);
    /// Lets go of memory for blocks to come.
    void end_of_sweeps() { free_.clear(); }
    std::int64_t first_position() const { return positions_.begin; }
    int positions() const { return static_cast<int>(positions_.size()); }

    ColumnBlock<T>& at(grid::Seat seat) { return blocks_[slot(seat)]; }
    /// Memory for a block that arrives, from those that have left, if one of them is large enough.
    ColumnBlock<T> arriving(int index);
    /// Keeps a block's memory for those to come.
    void left(ColumnBlock<T>&& block) { free_.push_back(std::move(block.memory)); }

    std::vector<ColumnBlock<T>>& all() { return blocks_; }

private:
    std::size_t slot(grid::Seat seat) const {
        return static_cast<std::size_t>(2 * (seat.position - positions_.begin) +
                                        (seat.side == grid::Side::bottom ? 1 : 0));
    }

    grid::Partition cut_;
    Shape shape_;
    grid::Range positions_;
    std::vector<ColumnBlock<T>> blocks_;
    std::vector<Array<T>> free_;
};

template <class T> struct Preconditioned {
    SweepStartOf<T> sweeps;  ///< where they begin
    StartKind used = StartKind::none;
    std::unique_ptr<dist::TallQr<T>> rows_of_q;  ///< of a tall W whose vectors are wanted; else empty
};

/// Rows of W, in percent of its columns, from which it counts as tall.
inline constexpr std::int64_t tall_percent = 150;

/// Whether W's rows are factored by all ranks before anything else: it is so much taller than wide that this
/// saves more than it costs.
bool by_rows_first(const Work& work, int ranks, StartKind kind);

/// `wanted`: the columns that a rank begins with (after `none` as after `eigen`). Memory, in numbers: that of TallQr
/// for a tall W; else its columns of W. Beside that, on a rank: with eigenvectors its columns of X and V, and on rank 0
/// 3·n² for AᵀA and LAPACK, or, with `share_eigen`, on every rank its columns of AᵀA and twice those of V; with a QR
/// its columns of both factors, of X, and of what is sent and received meanwhile; with `none` its columns of X, and of
/// what is sent and received. @note Collective; throws the same Error on every rank, or aborts the job where ranks
/// already wait.
template <class T> Preconditioned<T> precondition(Context& context, const dist::ColumnComm& comm, Source<T>& source,
                                                  const Work& work, StartKind kind, bool share_eigen, bool want_v,
                                                  const ColumnsOfRank& wanted, bool again);

using mpi::ExchangeKind;

/// The exchanges that blocks may travel by.
inline constexpr auto exchange_names =
    mpi::exchange_names_without(mpi::DescribedOnce{}, ExchangeKind::synchronous, ExchangeKind::collective,
                                ExchangeKind::one_sided_fence, ExchangeKind::one_sided_pscw, ExchangeKind::shared);
/// Throws UsageError for an unknown name.
inline ExchangeKind exchange_named(std::string_view name) { return mpi::exchange_named(name, exchange_names); }

/// For blocks of at most `largest` reals. @note Collective; throws the same Error on every rank.
std::unique_ptr<mpi::Exchange> make_exchange(ExchangeKind kind, const Context& context, std::int64_t largest);

/// What sweeps have found, and when they are done.
struct Found {
    std::vector<double> off_norm;     ///< the largest cosine that each sweep found, over all ranks
    std::vector<double> off_squares;  ///< and off(XᵀX), of each two columns as they met first in it
};

struct SweepSetting {
    ExchangeKind exchange = ExchangeKind::none;
    kernel::Inner inner = kernel::Inner::blocks;
    double tolerance = 0;    ///< the largest cosine that counts as orthogonal
    double off_squares = 0;  ///< off(XᵀX) below which no sweep is made either; 0: as the tolerance says
    int most = 30;           ///< sweeps
    Found before = {};       ///< in sweeps that were made already, which count
    /// Called after each sweep but the last, when all blocks are at their first places.
    std::function<void(const Found& found)> between = {};
};

struct Swept : Found {
    bool converged = false;
    kernel::PairTally tally;  ///< of this rank
    double flops =
        /// of this rank: for a pair of w columns w²·rows for its Gram matrix and, where it was rotated, 2·w²·(rows +
        /// v_rows); complex numbers take four times as many
        0;
    std::int64_t sweep_bytes = 0, sweep_messages = 0;  ///< that this rank received in one sweep
};

/// Sweeps over the rank's `blocks`, which are again at their first places when it returns. A sweep meets every pair of
/// blocks once, in blocks − 1 steps. At its end all ranks learn in one step what each of them found: they are done when
/// the largest cosine is below the tolerance, or when the angles were so small that it certainly is now. The numbers
/// are the same for every exchange; other cuts, ranks or threads give others, by rounding. A rank with fewer positions
/// than threads has all its threads in one pair after the other, else each thread has its own pairs. Cost of a sweep:
/// up to 2·n²·(3·rows + 2·v_rows) over all ranks (half of it with two blocks), and per rank 2·(blocks − 1) blocks
/// received. @note Collective. A rank that throws leaves others waiting: call it where that aborts the job.
template <class T> Swept sweep(Context& context, const grid::Ring& ring, ColumnBlocks<T>& blocks,
                               mpi::Exchange& exchange, const SweepSetting& setting);

/// The same of all columns on one rank, by one thread in two loops over all pairs of them: what a program does that
/// knows of no ranks.
template <class T>
Swept sweep_serially(const Context& context, ColumnBlocks<T>& blocks, const SweepSetting& setting);

template <class T> struct SvdFactors {
    std::vector<double> s;  ///< the K largest, descending, the same on all ranks
    std::int64_t rank = 0;  ///< how many of all σ > σ₁·max(M,N)·ε
    double left = 0;        ///< what the others are, in the Frobenius norm, relative to all
    Array<T> u, vt;         ///< this rank's parts, row by row, in float64; of complex numbers Vᴴ
    grid::Share u_share, vt_share;
};

/// K largest of what the swept blocks hold, or the fewest with `energy` of the squares where that is above 0;
/// `values_only`: no vectors. `start` has served when it returns. Memory, in numbers per rank: twice its
/// columns of X and V, and its parts of U and V. @note Collective; throws the same Error on every rank, or
/// aborts the job where ranks already wait.
template <class T> SvdFactors<T> back_transform(Context& context, const dist::ColumnComm& comm, const Work& work,
                                                ColumnBlocks<T>& blocks, Preconditioned<T>& start,
                                                const std::function<grid::Range(int rank)>& columns_of,
                                                std::int64_t components, double energy, bool values_only, double scale);

}  // namespace tilewise::svd
