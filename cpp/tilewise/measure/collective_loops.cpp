// Each operation twice: MPI's, and what somebody would write who did not know that MPI has it. Rank 0 is the root of
// all.
#include "tilewise/measure/collective_loops.hpp"

#include <algorithm>
#include <cstring>

#include "tilewise/mpi/datatype.hpp"

namespace tilewise::measure {
namespace {

using mpi::check;

constexpr int tag = 7;
constexpr int root = 0;

const std::byte* out_part(const Parts& p, int rank) { return p.out + rank * p.bytes; }
std::byte* in_part(const Parts& p, int rank) { return p.in + rank * p.bytes; }

void send(const Parts& p, const std::byte* data, int to) {
    check(MPI_Send(data, p.count, p.type, to, tag, p.comm->get()), "MPI_Send");
}
void receive(const Parts& p, std::byte* data, int from) {
    check(MPI_Recv(data, p.count, p.type, from, tag, p.comm->get(), MPI_STATUS_IGNORE), "MPI_Recv");
}
void copy(const Parts& p, std::byte* to, const std::byte* from) {
    std::memcpy(to, from, static_cast<std::size_t>(p.bytes));
}

/// The root's message is in `out` as with the others, so that `in` shows what arrived; its own copy is not needed.
void library_bcast(const Parts& p) {
    std::byte* data = p.comm->rank() == root ? const_cast<std::byte*>(p.out) : p.in;  // MPI does not write at the root
    check(MPI_Bcast(data, p.count, p.type, root, p.comm->get()), "MPI_Bcast");
}
void loop_bcast(const Parts& p) {
    if (p.comm->rank() != root) {
        receive(p, p.in, root);
        return;
    }
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        send(p, p.out, rank);
    }
}

void library_scatter(const Parts& p) {
    check(MPI_Scatter(p.out, p.count, p.type, p.in, p.count, p.type, root, p.comm->get()), "MPI_Scatter");
}
void loop_scatter(const Parts& p) {
    if (p.comm->rank() != root) {
        receive(p, p.in, root);
        return;
    }
    copy(p, p.in, out_part(p, root));
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        send(p, out_part(p, rank), rank);
    }
}

void library_gather(const Parts& p) {
    check(MPI_Gather(p.out, p.count, p.type, p.in, p.count, p.type, root, p.comm->get()), "MPI_Gather");
}
void loop_gather(const Parts& p) {
    if (p.comm->rank() != root) {
        send(p, p.out, root);
        return;
    }
    copy(p, in_part(p, root), p.out);
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        receive(p, in_part(p, rank), rank);
    }
}

void library_allreduce(const Parts& p) {
    const auto count = static_cast<int>(p.bytes / static_cast<std::int64_t>(sizeof(double)));
    check(MPI_Allreduce(p.out, p.in, count, MPI_DOUBLE, MPI_SUM, p.comm->get()), "MPI_Allreduce");
}
void loop_allreduce(const Parts& p) {
    if (p.comm->rank() != root) {
        send(p, p.out, root);
        receive(p, p.in, root);
        return;
    }
    copy(p, p.in, p.out);
    auto* sums = reinterpret_cast<double*>(p.in);
    const auto* more = reinterpret_cast<const double*>(p.spare);
    const std::int64_t count = p.bytes / static_cast<std::int64_t>(sizeof(double));
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        receive(p, p.spare, rank);
        for (std::int64_t i = 0; i < count; ++i) {
            sums[i] += more[i];
        }
    }
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        send(p, p.in, rank);
    }
}

void library_alltoallv(const Parts& p) {
    check(MPI_Alltoallv(p.out, p.counts.data(), p.places.data(), p.type, p.in, p.counts.data(), p.places.data(), p.type,
                        p.comm->get()),
          "MPI_Alltoallv");
}
/// In step s everybody sends to the rank s above and receives from the rank s below, so that nobody is asked by two.
void loop_alltoallv(const Parts& p) {
    const int ranks = p.comm->size(), me = p.comm->rank();
    copy(p, in_part(p, me), out_part(p, me));
    for (int step = 1; step < ranks; ++step) {
        const int to = (me + step) % ranks, from = (me + ranks - step) % ranks;
        check(MPI_Sendrecv(out_part(p, to), p.count, p.type, to, tag, in_part(p, from), p.count, p.type, from, tag,
                           p.comm->get(), MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
    }
}

}  // namespace

const std::array<CollectiveEntry, 5> collective_table{{
    {"bcast", library_bcast, loop_bcast, false, false, false},
    {"scatter", library_scatter, loop_scatter, false, true, false},
    {"gather", library_gather, loop_gather, false, false, true},
    {"allreduce", library_allreduce, loop_allreduce, true, false, false},
    {"alltoallv", library_alltoallv, loop_alltoallv, true, true, true},
}};

void count_parts(Parts& parts, const CollectiveEntry& entry, std::int64_t most) {
    const int ranks = parts.comm->size();
    parts.count = static_cast<int>(parts.bytes);
    parts.type = MPI_BYTE;
    if (parts.bytes * (entry.out_of_each || entry.in_of_each ? ranks : 1) > most) {
        if (parts.bytes <= INT32_MAX) {
            check(MPI_Type_contiguous(parts.count, MPI_BYTE, parts.long_part.out()), "MPI_Type_contiguous");
        } else {
            const mpi::Span part(parts.bytes, MPI_BYTE);
            check(MPI_Type_dup(part.type(), parts.long_part.out()), "MPI_Type_dup");
        }
        parts.type = parts.long_part.get();
        check(MPI_Type_commit(&parts.type), "MPI_Type_commit");
        parts.count = 1;
    }
    parts.counts.assign(static_cast<std::size_t>(ranks), parts.count);
    parts.places.clear();
    for (int rank = 0; rank < ranks; ++rank) {
        parts.places.push_back(rank * parts.count);
    }
}

const CollectiveEntry* find_collective(std::string_view name) {
    const auto* found = std::find_if(collective_table.begin(), collective_table.end(),
                                     [&](const CollectiveEntry& entry) { return entry.name == name; });
    return found == collective_table.end() ? nullptr : found;
}

}  // namespace tilewise::measure
