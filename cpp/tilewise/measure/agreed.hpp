// What ranks tell each other around a measurement: rank 0's word on all of them, and everybody's figure or text on rank
// 0.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// Rank 0's value, on every rank. @note Collective.
template <class T> T agreed(const mpi::Communicator& comm, T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    mpi::check(MPI_Bcast(&value, sizeof value, MPI_BYTE, 0, comm.get()), "MPI_Bcast");
    return value;
}

/// Every rank's value on rank 0, in the order of ranks; nothing elsewhere. @note Collective.
std::vector<double> gathered(const mpi::Communicator& comm, double mine);
/// The same of texts, of which 159 bytes are kept. @note Collective.
std::vector<std::string> gathered(const mpi::Communicator& comm, const std::string& mine);

}  // namespace tilewise::measure
