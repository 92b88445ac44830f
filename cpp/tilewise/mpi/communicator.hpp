// A group of ranks that talk without being overheard, and whose errors come back as codes.
#pragma once

#include <functional>
#include <memory>

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

/// Calls `visit` with each communicator that this process has. Not collective.
void for_all_communicators(const std::function<void(MPI_Comm comm)>& visit);

}  // namespace tilewise::mpi
