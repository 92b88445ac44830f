// Which exchanges the tests can try with this MPI library.
#pragma once

#include <mpi.h>

#include "tilewise/mpi/exchange/kinds.hpp"

namespace tilewise::test {

/// Whether the library has the calls of this kind; where not, the exchange is refused.
inline bool is_in_library(mpi::ExchangeKind kind) { return kind != mpi::ExchangeKind::partitioned || MPI_VERSION >= 4; }

}  // namespace tilewise::test
