// Gives each rank of a node its own cores, whatever launcher started it.
#pragma once

#include <string>
#include <vector>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::worker {

struct Binding {
    std::vector<int> cpus;        ///< that this rank may use now
    int node = 0;                 ///< index of the node, in the order of its first rank
    int node_ranks = 1;           ///< how many ranks are on that node
    bool oversubscribed = false;  ///< more threads on this node than cores
};

/// Ranks that all may use the same cores get `threads` of them each: neighbours on neighbouring cores (`core`), or in
/// turn on each socket (`socket`). Ranks that the launcher has bound already, and ranks that are too many, stay as they
/// are.
/// @note Collective.
Binding bind(const mpi::Communicator& comm, int threads, bool wanted, const std::string& place);

}  // namespace tilewise::worker
