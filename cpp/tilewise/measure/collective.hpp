// The collective operations that jobs use, by MPI's own call and by a plain loop of messages that does the same.
//
//      bcast      rank 0's part on all              out of 0 ─▶ in of all
//      scatter    part r of rank 0's goes to r      out of 0, part r ─▶ in of r
//      gather     the way back                      out of r ─▶ in of 0, part r
//      allreduce  sums of float64 on all            Σ out ─▶ in of all
//      alltoallv  part d of rank s goes to d        out of s, part d ─▶ in of d, part s
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// One rank's memory for an operation: `bytes` for each part; `out` and `in` hold as many parts as the entry's
/// out_of_each and in_of_each say. `spare` is one part more, for the sums of the loop.
struct Parts {
    const mpi::Communicator* comm = nullptr;
    std::int64_t bytes = 0;
    const std::byte* out = nullptr;
    std::byte* in = nullptr;
    std::byte* spare = nullptr;
    int count = 0;  ///< of `type` in a part; count_parts sets them
    MPI_Datatype type = MPI_BYTE;
    std::vector<int> counts = {}, places = {};  ///< of alltoallv: of `type`, to each rank and from each rank

    mpi::Datatype long_part = {};  ///< owns `type` where that is not MPI_BYTE
};

struct CollectiveEntry {
    std::string_view name;
    void (*library)(const Parts& parts);
    void (*loop)(const Parts& parts);
    /// A rank leaves it only when all have entered, so that doing it again needs no barrier in between.
    bool synchronises;
    bool out_of_each, in_of_each;  ///< a part for each rank (in `out`, in `in`), and not one alone
};

extern const std::array<CollectiveEntry, 5> collective_table;

/// Has MPI count the parts of `entry`: in bytes, or, where all parts of a rank have more than `most`, by a type that is
/// as long as one part, so that 32 bits do for every size. `comm` and `bytes` are set. Not collective.
void count_parts(Parts& parts, const CollectiveEntry& entry, std::int64_t most = INT32_MAX);

/// The entry of the table, or null.
const CollectiveEntry* find_collective(std::string_view name);

}  // namespace tilewise::measure
