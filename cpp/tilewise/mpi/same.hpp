// What must be alike wherever ranks are.
#pragma once

#include <string>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// Throws UsageError alike on every rank, with both hosts and versions, unless `what` has the version of rank 0's
/// everywhere. @note Collective.
void require_same(const Communicator& comm, const std::string& what, const std::string& version,
                  const std::string& advice);

/// Whether all ranks have the same text. @note Collective; the same on every rank.
bool is_same(const Communicator& comm, const std::string& text);

}  // namespace tilewise::mpi
