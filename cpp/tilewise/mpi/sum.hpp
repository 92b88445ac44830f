// Sums, and the largest, over ranks of as many numbers as there are, though MPI counts in 32 bits.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// Joins `count` numbers at `data` over the ranks by `operation`, in place and piece by piece; how many calls that took, none on one rank.
/// @note Collective.
template <class V>
std::int64_t join_over_ranks(const Communicator& comm, V* data, std::int64_t count, MPI_Op operation) {
    static_assert(std::is_same_v<V, double> || std::is_same_v<V, std::uint64_t> || std::is_same_v<V, std::int64_t> ||
                  std::is_same_v<V, std::complex<double>>);
    const auto type = std::is_same_v<V, double>          ? MPI_DOUBLE
                      : std::is_same_v<V, std::uint64_t> ? MPI_UINT64_T
                      : std::is_same_v<V, std::int64_t>  ? MPI_INT64_T
                                                         : MPI_C_DOUBLE_COMPLEX;
    constexpr std::int64_t most = std::int64_t{1} << 24;
    std::int64_t calls = 0;
    for (std::int64_t at = 0; comm.size() > 1 && at < count; at += most) {
        check(MPI_Allreduce(MPI_IN_PLACE, data + at, static_cast<int>(std::min(most, count - at)), type, operation,
                            comm.get()),
              "MPI_Allreduce");
        ++calls;
    }
    return calls;
}

/// Adds them up. @note Collective.
template <class V> std::int64_t sum_over_ranks(const Communicator& comm, V* data, std::int64_t count) {
    return join_over_ranks(comm, data, count, MPI_SUM);
}

}  // namespace tilewise::mpi
