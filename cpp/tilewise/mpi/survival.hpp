// What is left of a job when one of its ranks has died, where the MPI library can go on: Open MPI 5 with ULFM, the
// proposal for "user-level failure mitigation" (W. Bland et al., "Post-failure recovery of MPI communication
// capability", 2013).
//
//     rank 0   1   2   3          some calls of MPI fail     revoke: all calls fail, so that nobody waits
//          ok  ok  ††  ok    ─▶   on ranks 0, 1 and 3    ─▶  agree:  have all finished?
//                                                            shrink: a communicator of 0, 1 and 3, now 0, 1 and 2
#pragma once

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

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
