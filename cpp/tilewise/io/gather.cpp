// What a rank has in a range is consecutive in its memory, so it is sent from where it is; it is put in the file's
// order on arrival.
#include "tilewise/io/gather.hpp"

#include "tilewise/mpi/datatype.hpp"

namespace tilewise::io {

void gather(const Context& context, const Transfer& transfer, const Shares& shares,
            const std::vector<grid::Range>& ranges, std::byte* packed, std::byte* rows) {
    using mpi::check;
    const int me = context.comm.rank();
    const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
    const grid::Range mine = ranges[static_cast<std::size_t>(me)];
    std::vector<MPI_Request> requests;
    const auto next_request = [&] {
        requests.push_back(MPI_REQUEST_NULL);
        return &requests.back();
    };
    std::byte* place = packed;
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const std::int64_t count = rank == me ? 0 : shares.count(rank, mine);
        if (count > 0) {
            check(MPI_Irecv(place, static_cast<int>(count), item, rank, 0, context.comm.get(), next_request()),
                  "MPI_Irecv");
            place += count * shares.item;
        }
    }
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const grid::Range its = ranges[static_cast<std::size_t>(rank)];
        const std::int64_t count = rank == me ? 0 : shares.count(me, its);
        if (count > 0) {
            check(MPI_Isend(transfer.data + shares.local(me, its) * shares.item, static_cast<int>(count), item, rank, 0,
                            context.comm.get(), next_request()),
                  "MPI_Isend");
        }
    }
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    place = packed;
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        unpack(shares, rank, mine, rank == me ? transfer.data + shares.local(me, mine) * shares.item : place, rows);
        place += rank == me ? 0 : shares.count(rank, mine) * shares.item;
    }
}

void scatter(const Context& context, const Transfer& transfer, const Shares& shares,
             const std::vector<grid::Range>& ranges, const std::byte* rows, std::byte* packed) {
    using mpi::check;
    const int me = context.comm.rank();
    const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
    const grid::Range mine = ranges[static_cast<std::size_t>(me)];
    const auto place = [&](grid::Range within) { return transfer.data + shares.local(me, within) * shares.item; };
    std::vector<MPI_Request> requests;
    const auto next_request = [&] {
        requests.push_back(MPI_REQUEST_NULL);
        return &requests.back();
    };
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const grid::Range its = ranges[static_cast<std::size_t>(rank)];
        const std::int64_t count = rank == me ? 0 : shares.count(me, its);
        if (count > 0) {
            check(MPI_Irecv(place(its), static_cast<int>(count), item, rank, 0, context.comm.get(), next_request()),
                  "MPI_Irecv");
        }
    }
    pack(shares, me, mine, rows, place(mine));
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const std::int64_t count = rank == me ? 0 : shares.count(rank, mine);
        if (count > 0) {
            pack(shares, rank, mine, rows, packed);
            check(MPI_Isend(packed, static_cast<int>(count), item, rank, 0, context.comm.get(), next_request()),
                  "MPI_Isend");
            packed += count * shares.item;
        }
    }
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace tilewise::io
