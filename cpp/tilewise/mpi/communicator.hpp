// A group of ranks that talk without being overheard, and whose errors come back as codes.
#pragma once

#include <memory>
#include <vector>

#include "tilewise/grid/grid.hpp"
#include "tilewise/mpi/handle.hpp"

namespace tilewise::mpi {

/// Copies share one duplicated MPI communicator, which is freed with the last of them.
class Communicator {
public:
    /// @note Collective over `parent`, which it duplicates.
    explicit Communicator(MPI_Comm parent);

    int rank() const { return rank_; }
    int size() const { return size_; }
    MPI_Comm get() const { return comm_->get(); }

    /// The ranks with the same `color`, in the order of `key`. @note Collective.
    Communicator split(int color, int key) const;
    /// The ranks that can share memory with this one. @note Collective.
    Communicator node() const;
    void barrier() const;

private:
    struct Adopt {};
    Communicator(Adopt, MPI_Comm comm);

    std::shared_ptr<Comm> comm_;
    int rank_ = 0;
    int size_ = 1;
};

/// The place, counted row by row, that MPI_Cart_create with `reorder` gives to each rank, by rank: 0, 1, 2 … where it
/// leaves them as they are. Throws UsageError where the grid has more or fewer places than there are
/// ranks, and MpiError. @note Collective.
std::vector<int> cartesian_order(const Communicator& comm, grid::Grid grid, bool periodic);

/// What is left of a job when one of its ranks has died, where the MPI library can go on: Open MPI 5 with ULFM, the
/// proposal for "user-level failure mitigation" (W. Bland et al., "Post-failure recovery of MPI communication
/// capability", 2013).
///
///     rank 0   1   2   3          some calls of MPI fail     revoke: all calls fail, so that nobody waits
///          ok  ok  ††  ok    ─▶   on ranks 0, 1 and 3    ─▶  agree:  have all finished?
///                                                            shrink: a communicator of 0, 1 and 3, now 0, 1 and 2
///
/// Whether this MPI library has what is needed: looked up where it is loaded, not linked.
bool can_survive();

/// With `yes` an MpiError passes no_return() instead of ending the job: it may be the consequence of a death.
void survive_losses(bool yes);
bool losses_are_survived();

/// Makes every call over a communicator of ours fail, on every rank. Not collective.
void revoke_all();

/// Whether all ranks of `comm` that live have finished. Works after deaths, and on what is revoked. @note Collective.
bool all_finished(const Communicator& comm, bool mine);

/// The ranks of `comm` that live, in the same order. Throws MpiError. @note Collective.
Communicator survivors(const Communicator& comm);

}  // namespace tilewise::mpi
