// What the ranks know at the end, gathered on rank 0: the `record` event.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/binding.hpp"
#include "tilewise/worker/job.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

/// The texts of all ranks. @note Collective; only rank 0 gets them.
std::vector<std::string> gather_texts(const mpi::Communicator& comm, const std::string& mine);

/// What a proof said, or null.
Json verification_of(const std::optional<Verification>& verification);

/// One rank's line in `ranks`: host, process and cores. @note Collective; only rank 0 gets the list.
std::vector<Json> gather_ranks(const mpi::Communicator& comm, const Binding& binding);

/// The whole `record` event, with the list of `gather_ranks`; only rank 0's result means anything. @note Collective.
Json gather_record(const Context& context, const Binding& binding, std::vector<Json> ranks, const Job& job,
                   const Outcome& outcome, double peak_flops);

}  // namespace tilewise::worker
