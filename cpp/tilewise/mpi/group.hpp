// Some ranks of a communicator, as MPI's post and start want them.
#pragma once

#include <vector>

#include "tilewise/mpi/handle.hpp"

namespace tilewise::mpi {

class Group {
public:
    /// `ranks` of `comm`, each once. Not collective.
    Group(MPI_Comm comm, const std::vector<int>& ranks);
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group();

    MPI_Group get() const { return group_; }

private:
    MPI_Group group_ = MPI_GROUP_NULL;
};

/// The ranks that `pieces` go to or come from, each once.
template <class Pieces> std::vector<int> peers_of(const Pieces& pieces) {
    std::vector<int> ranks;
    for (const auto& piece : pieces) {
        bool known = false;
        for (const int rank : ranks) {
            known = known || rank == piece.peer;
        }
        if (!known) {
            ranks.push_back(piece.peer);
        }
    }
    return ranks;
}

}  // namespace tilewise::mpi
