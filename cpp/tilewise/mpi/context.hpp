// What every step of a job needs to know: who takes part, where time is booked, how many threads a rank has.
#pragma once

#include <functional>

#include "tilewise/base/ledger.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise {

/// Told how far the current phase is (0 … 1), as often as is convenient; shows nothing on ranks other than 0.
using Progress = std::function<void(Phase phase, double done)>;

struct Context {
    mpi::Communicator comm;
    Ledger& ledger;
    int threads = 1;
    Progress progress = {};

    void report(Phase phase, double done) const {
        if (progress) {
            progress(phase, done);
        }
    }
};

}  // namespace tilewise
