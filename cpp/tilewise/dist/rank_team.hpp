// The ranks as one team: columns that are spread over them are dealt out anew, rank 0 works with all cores of its node,
// and kernels know the ranks of a communicator as theirs.
#pragma once

#include <functional>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/factor/team.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::dist {

/// Columns that are spread over the ranks in any order, dealt out anew: sorted, and cut by columns or by rows.
///
///     before    rank 0 [ 3 0 ]  rank 1 [ 2 1 ]      places among the sorted columns
///
///     by columns          rank 0 [ 0 1 ]            by rows    rank 0 [ 0 1 2 3 ] upper rows
///                         rank 1 [ 2 3 ]                       rank 1 [ 0 1 2 3 ] lower rows
///
/// Which rank has each of the sorted columns; a rank has its own in their order, one beside the other.
using Owners = std::vector<int>;

/// Of columns that follow each other, those of rank 0 first.
Owners owners_of(const grid::Partition& columns);

/// What a rank is to get: rows × sorted columns.
using Wanted = std::function<grid::Block(int rank)>;

/// `mine` are this rank's columns. Returns the rank's part, column by column without gaps. Memory: twice what
/// the rank sends and receives.
/// @note Collective. A rank that throws leaves others waiting: call it where that aborts the job.
Array<double> redistribute_columns(Context& context, const kernel::Columns& mine, const Owners& owners,
                                   const Wanted& wanted);
inline Array<kernel::Complex> redistribute_columns(Context& context, const kernel::ColumnsOf<kernel::Complex>& mine,
                                                   const Owners& owners, const Wanted& wanted) {
    return Array<kernel::Complex>(
        redistribute_columns(context, kernel::as_reals(mine), owners, kernel::with_rows(wanted, 2)));
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

/// Every function is collective, and a rank that throws leaves others waiting: use it where that aborts the
/// job. What travels is counted in the ledger.
class RankTeam : public kernel::Team {
public:
    RankTeam(Context& context, const RootTask& root_task) : context_(context), root_task_(root_task) {}

    int rank() const override { return context_.comm.rank(); }
    int size() const override { return context_.comm.size(); }
    void largest(std::vector<double>& values) const override;
    void on_root(const std::function<void(int threads)>& work, int threads) const override;

private:
    void broadcast_reals(double* values, std::int64_t count, int root) const override;
    void gather_reals(const kernel::SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                      double* to) const override;
    Buffer redistribute_reals(const kernel::SpreadColumns& a, const kernel::WantedBlock& wanted) const override;

    Context& context_;
    const RootTask& root_task_;
};

}  // namespace tilewise::dist
