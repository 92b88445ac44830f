// The ranks of a communicator, as algorithms see them that have the columns of one matrix spread over ranks.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::dist {

/// Which rank has each of some columns; a rank has its own in their sequence, one beside the other.
using Owners = std::vector<int>;

/// Of columns that follow each other, those of rank 0 first.
Owners owners_of(const grid::Partition& columns);

/// Columns of one matrix, each of them on one rank.
template <class T> struct SpreadColumnsOf {
    kernel::ColumnsOf<T> mine;  ///< this rank's, in the sequence of their places
    Owners owners;              ///< which rank has each place

    std::int64_t count() const { return static_cast<std::int64_t>(owners.size()); }
    /// How many of the places [begin, end) a rank has.
    std::int64_t of_rank(int rank, std::int64_t begin, std::int64_t end) const {
        return std::count(owners.begin() + begin, owners.begin() + end, rank);
    }
};
using SpreadColumns = SpreadColumnsOf<double>;

/// What a rank is to get: rows × columns by their places.
using Wanted = std::function<grid::Block(int rank)>;

/// The same part of columns of `parts` times as many rows.
inline Wanted with_rows(Wanted wanted, std::int64_t parts) {
    if (parts == 1) {
        return wanted;
    }
    return [wanted = std::move(wanted), parts](int rank) {
        const grid::Block block = wanted(rank);
        return grid::Block{{parts * block.rows.begin, parts * block.rows.end}, block.columns};
    };
}

/// Columns that are spread over the ranks in any order, dealt out anew: sorted, and cut by columns or by rows.
///
///     before    rank 0 [ 3 0 ]  rank 1 [ 2 1 ]      places among the sorted columns
///
///     by columns          rank 0 [ 0 1 ]            by rows    rank 0 [ 0 1 2 3 ] upper rows
///                         rank 1 [ 2 3 ]                       rank 1 [ 0 1 2 3 ] lower rows
///
/// Returns the rank's part, column by column without gaps. Memory: twice what the rank sends and receives.
/// @note Collective. A rank that throws leaves others waiting: call it where that aborts the job.
Array<double> redistribute_columns(Context& context, const kernel::Columns& mine, const Owners& owners,
                                   const Wanted& wanted);
inline Array<kernel::Complex> redistribute_columns(Context& context, const kernel::ColumnsOf<kernel::Complex>& mine,
                                                   const Owners& owners, const Wanted& wanted) {
    return Array<kernel::Complex>(redistribute_columns(context, kernel::as_reals(mine), owners, with_rows(wanted, 2)));
}

/// Waiting ranks look now and then whether rank 0 is done, and leave it their cores in between: MPI's own
/// waiting would keep those busy.
class RootTask {
public:
    /// @note Collective.
    explicit RootTask(Context& context);

    /// Runs `work` on rank 0 alone, free to use every core that a rank of its node is bound to. If it throws,
    /// every rank throws the same Error. `work` must not communicate. @note Collective.
    void run(const std::function<void(int threads)>& work) const;

private:
    Context& context_;
    int threads_ = 1;                   ///< those of the node's ranks together
    std::vector<unsigned char> cores_;  ///< a cpu_set_t: those of the node's ranks together; empty: nobody knows them
};

/// Collectives on columns. Every function but the first two is to be called by all ranks; one that throws leaves others
/// waiting: use it where that aborts the job. What travels is counted in the ledger. Complex numbers travel as the
/// reals that they are made of.
class ColumnComm {
public:
    /// A rank alone, without MPI.
    ColumnComm() = default;
    ColumnComm(Context& context, const RootTask& root_task) : context_(&context), root_task_(&root_task) {}

    int rank() const { return context_ == nullptr ? 0 : context_->comm.rank(); }
    int size() const { return context_ == nullptr ? 1 : context_->comm.size(); }
    /// Element by element the largest of all ranks.
    void largest(std::vector<double>& values) const;
    template <class T> void broadcast(T* values, std::int64_t count, int root) const {
        broadcast_reals(kernel::reals_of(values), kernel::parts_of<T> * count, root);
    }
    /// Columns [begin, end) from row `top` on, on every rank: column by column without gaps.
    template <class T> void gather(const SpreadColumnsOf<T>& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                                   T* to) const {
        gather_reals({kernel::as_reals(a.mine), a.owners}, begin, end, kernel::parts_of<T> * top, kernel::reals_of(to));
    }
    /// This rank's wanted block, column by column without gaps.
    template <class T> Array<T> redistribute(const SpreadColumnsOf<T>& a, const Wanted& wanted) const {
        return Array<T>(
            redistribute_reals({kernel::as_reals(a.mine), a.owners}, with_rows(wanted, kernel::parts_of<T>)));
    }
    /// Runs `work` on rank 0, with all cores that there are for it; elsewhere nothing.
    void on_root(const std::function<void(int threads)>& work, int threads) const;

private:
    void broadcast_reals(double* values, std::int64_t count, int root) const;
    void gather_reals(const SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top, double* to) const;
    Array<double> redistribute_reals(const SpreadColumns& a, const Wanted& wanted) const;

    Context* context_ = nullptr;
    const RootTask* root_task_ = nullptr;
};

}  // namespace tilewise::dist
