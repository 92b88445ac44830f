// What a rank says when a signal ends it or asks for it, and how words of any rank reach the front of rank 0.
#pragma once

#include <string_view>

#include "tilewise/base/error.hpp"
#include "tilewise/base/ledger.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::worker {

/// From now on this rank tells which signal ends it, in an event, unless its parent sent it: that is how launchers end
/// the others when one has died. SIGUSR2 ends nothing: it asks where the rank is. Call it before MPI starts, and again
/// when the rank is known.
void tell_of_signals(int rank);

/// For its lifetime, such events name the phase of a ledger.
class PhaseTold {
public:
    explicit PhaseTold(const Ledger& ledger);
    PhaseTold(const PhaseTold&) = delete;
    PhaseTold& operator=(const PhaseTold&) = delete;
    ~PhaseTold();
};

struct Whereabouts {
    int rank = 0;
    std::string_view phase;  ///< of the ledger that is told of; empty outside of a job
};

/// The same for other threads; not for signal handlers.
Whereabouts whereabouts();

/// Makes sure that every rank holds a line to the front, wherever it is. Ranks that somebody else's launcher started
/// (`joined`), whose output reaches a terminal, write to rank 0's front from now on: on its host into rank 0's pipe,
/// elsewhere into their line; those that have none say what they must in plain words. @note Collective.
void join_output(const mpi::Communicator& comm, bool joined);

/// Ends what `join_output` began: nobody need wait for ranks that leave MPI later, and what MPI has to say of an abort
/// is not for a terminal.
void leave_output();

/// What `mpi::set_last_words` wants. In a joined job it returns once the front has said why: the launcher kills that at
/// once when a job is aborted.
void speak_and_abort(const Error& error, int rank);

/// What `io::set_bus_error_message` wants: called in a signal handler.
void tell_of_bus_error(const char* name, bool writing);

}  // namespace tilewise::worker
