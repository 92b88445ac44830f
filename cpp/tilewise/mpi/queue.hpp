// Work that ranks take piece by piece, each when it is done with its last: who is slow takes less.
//
//     rank 0   [ next = 5 ]      rank 2: fetch and add ──▶ piece 5 is its own, next = 6
#pragma once

#include <cstdint>

#include "tilewise/mpi/window.hpp"

namespace tilewise::mpi {

class Queue {
public:
    /// Begins with piece 0. @note Collective, as its end is.
    explicit Queue(const Communicator& comm);
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue();

    /// The next piece that nobody has, without an end. Not collective; waits for no rank, but for rank 0 across nodes
    /// where the library makes no progress of its own.
    std::int64_t next();

private:
    int ranks_;
    std::int64_t here_ = 0;  ///< of one rank
    Exposed exposed_;
};

}  // namespace tilewise::mpi
