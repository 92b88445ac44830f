// What ranks tell each other of one number each, and sums over ranks of as many numbers as there are, though MPI counts
// in 32 bits.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

template <class V> MPI_Datatype number_type() {
    static_assert(std::is_same_v<V, double> || std::is_same_v<V, std::uint64_t> || std::is_same_v<V, std::int64_t> ||
                  std::is_same_v<V, int> || std::is_same_v<V, std::complex<double>>);
    return std::is_same_v<V, double>          ? MPI_DOUBLE
           : std::is_same_v<V, std::uint64_t> ? MPI_UINT64_T
           : std::is_same_v<V, std::int64_t>  ? MPI_INT64_T
           : std::is_same_v<V, int>           ? MPI_INT
                                              : MPI_C_DOUBLE_COMPLEX;
}

/// Rank 0's value, on every rank. @note Collective.
template <class V> V of_root(const Communicator& comm, V value) {
    static_assert(std::is_trivially_copyable_v<V>);
    check(MPI_Bcast(&value, sizeof value, MPI_BYTE, 0, comm.get()), "MPI_Bcast");
    return value;
}

/// The numbers of all ranks joined by `operation`, on every rank. @note Collective.
template <class V> V joined(const Communicator& comm, V mine, MPI_Op operation) {
    check(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, number_type<V>(), operation, comm.get()), "MPI_Allreduce");
    return mine;
}
template <class V> V sum_of(const Communicator& comm, V mine) { return joined(comm, mine, MPI_SUM); }
template <class V> V most_of(const Communicator& comm, V mine) { return joined(comm, mine, MPI_MAX); }
template <class V> V least_of(const Communicator& comm, V mine) { return joined(comm, mine, MPI_MIN); }
inline bool any_of(const Communicator& comm, bool mine) { return most_of(comm, mine ? 1 : 0) != 0; }

/// Joins `count` numbers at `data` over the ranks by `operation`, in place and piece by piece; how many calls that
/// took, none on one rank.
/// @note Collective.
template <class V>
std::int64_t join_over_ranks(const Communicator& comm, V* data, std::int64_t count, MPI_Op operation) {
    constexpr std::int64_t most = std::int64_t{1} << 24;
    std::int64_t calls = 0;
    for (std::int64_t at = 0; comm.size() > 1 && at < count; at += most) {
        check(MPI_Allreduce(MPI_IN_PLACE, data + at, static_cast<int>(std::min(most, count - at)), number_type<V>(),
                            operation, comm.get()),
              "MPI_Allreduce");
        ++calls;
    }
    return calls;
}

/// Numbers that `sum_in_order` adds up at a time; a rank receives as many beside them.
inline constexpr std::int64_t summed_numbers = std::int64_t{1} << 18;

/// Adds up floating numbers in the order of ranks: MPI's own sums depend on which ranks share a node.
///
///     rank 0   a0 b0 c0        a0 a1 a2        a            a b c      each rank adds its part of a piece,
///     rank 1   a1 b1 c1  ───▶  b0 b1 b2  ───▶  b      ───▶  a b c      and all get all parts
///     rank 2   a2 b2 c2        c0 c1 c2        c            a b c
///
/// @note Collective.
template <class V> std::int64_t sum_in_order(const Communicator& comm, V* data, std::int64_t count) {
    const int ranks = comm.size();
    const auto many = static_cast<std::size_t>(ranks), me = static_cast<std::size_t>(comm.rank());
    if (ranks == 1 || count == 0) {
        return 0;
    }
    const MPI_Datatype type = number_type<V>();
    std::vector<int> counts(many), places(many), alike(many), beside(many);
    std::vector<V> parts;
    std::int64_t calls = 0;
    for (std::int64_t at = 0; at < count; at += summed_numbers) {
        const std::int64_t piece = std::min(summed_numbers, count - at);
        for (int rank = 0; rank < ranks; ++rank) {
            const auto r = static_cast<std::size_t>(rank);
            places[r] = static_cast<int>(piece * rank / ranks);
            counts[r] = static_cast<int>(piece * (rank + 1) / ranks) - places[r];
        }
        const int mine = counts[me];
        for (int rank = 0; rank < ranks; ++rank) {
            alike[static_cast<std::size_t>(rank)] = mine;
            beside[static_cast<std::size_t>(rank)] = mine * rank;
        }
        parts.resize(static_cast<std::size_t>(mine) * many);
        check(MPI_Alltoallv(data + at, counts.data(), places.data(), type, parts.data(), alike.data(), beside.data(),
                            type, comm.get()),
              "MPI_Alltoallv");
        V* const sum = data + at + places[me];
        std::copy_n(parts.data(), mine, sum);
        for (std::size_t from = 1; from < many; ++from) {
            const V* const other = parts.data() + from * static_cast<std::size_t>(mine);
            for (int i = 0; i < mine; ++i) {
                sum[i] += other[i];
            }
        }
        check(MPI_Allgatherv(MPI_IN_PLACE, 0, type, data + at, counts.data(), places.data(), type, comm.get()),
              "MPI_Allgatherv");
        calls += 2;
    }
    return calls;
}

/// Adds them up; the bits do not depend on where ranks are. @note Collective.
template <class V> std::int64_t sum_over_ranks(const Communicator& comm, V* data, std::int64_t count) {
    if constexpr (std::is_integral_v<V>) {
        return join_over_ranks(comm, data, count, MPI_SUM);
    } else {
        return sum_in_order(comm, data, count);
    }
}

}  // namespace tilewise::mpi
