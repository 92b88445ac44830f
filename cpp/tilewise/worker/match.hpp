// Which send belongs to which receive: by source, destination, communicator, tag, and the order of the calls.
//
//     rank 0 sent to 1:      (c, t) at 3    (c, u) at 4    (c, t) at 6
//     rank 1 took from 0:    (c, t) at 5    (c, t) at 7    (c, u) at 8         gives 3→5, 6→7, 4→8
#pragma once

#include <vector>

#include "tilewise/worker/message_trace.hpp"

namespace tilewise::worker {

/// A line between two ranks, in seconds on one clock.
struct Line {
    int from, to, tag;  ///< `tag` is -1 for a one-sided message
    double left, arrived;
    std::int64_t bytes;
};

struct Matched {
    std::vector<Line> lines;     ///< each in the list of one rank only: its receiver's, or its origin's
    std::int64_t unmatched = 0;  ///< messages of which the other end is not known
    std::int64_t hasty = 0;      ///< lines that arrived before they left, and were set right
};

/// `shift` is what this rank's ledger lacks to the common clock. @note Collective; each pair of ranks exchanges what
/// one sent the other.
Matched match(const mpi::Communicator& comm, const MessageTrace& messages, double shift);

}  // namespace tilewise::worker
