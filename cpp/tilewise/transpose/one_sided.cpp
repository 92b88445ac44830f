// Pieces stay in windows where they were turned, and whoever wants one gets it.
//
//     sender   [ piece for 0 | piece for 2 | … ]        one_sided_fence   all open and close their windows together; pieces land at the end
//                       └──── Get ────▶ wanted          one_sided_pscw    only those who exchange wait for each other
//                                                       one_sided_lock    Rget: each piece is used as soon as it is there
#include <array>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/group.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/transpose/exchange.hpp"

namespace tilewise::transpose {
namespace {

using mpi::check;

class OneSided final : public Exchange {
public:
    OneSided(ExchangeKind kind, const Setting& setting)
        : Exchange(setting),
          kind_(kind),
          exposed_(mpi::allocate_window(setting.context.comm, bytes(outgoing_))) {
        mpi::together(setting_.context.comm, [&] { received_ = Buffer(bytes(incoming_)); });
    }

    void finish(const Landed& landed) override {
        switch (kind_) {
            case ExchangeKind::one_sided_fence:
                check(MPI_Win_fence(MPI_MODE_NOPRECEDE, window()), "MPI_Win_fence");
                get_all();
                check(MPI_Win_fence(MPI_MODE_NOSUCCEED, window()), "MPI_Win_fence");
                land_all(received_.data(), landed);
                return;
            case ExchangeKind::one_sided_pscw:
                post_and_start(landed);
                return;
            default:
                get_under_lock(landed);
        }
    }

private:
    std::byte* memory() override { return exposed_.data; }
    MPI_Win window() const { return exposed_.window.get(); }

    void get_all() {
        std::byte* place = received_.data();
        for (const Piece& piece : incoming_) {
            const mpi::Span all(piece.block.size(), mpi::type_of(setting_.dtype));
            check(MPI_Get(place, all.count(), all.type(), piece.peer, piece.at * setting_.item(), all.count(),
                          all.type(), window()),
                  "MPI_Get");
            place += size(piece);
        }
    }

    void post_and_start(const Landed& landed) {
        const MPI_Comm comm = setting_.context.comm.get();
        const mpi::Group to(comm, mpi::peers_of(outgoing_)), from(comm, mpi::peers_of(incoming_));
        check(MPI_Win_post(to.get(), 0, window()), "MPI_Win_post");
        check(MPI_Win_start(from.get(), 0, window()), "MPI_Win_start");
        get_all();
        check(MPI_Win_complete(window()), "MPI_Win_complete");
        land_all(received_.data(), landed);
        check(MPI_Win_wait(window()), "MPI_Win_wait");
    }

    void get_under_lock(const Landed& landed) {
        check(MPI_Win_lock_all(0, window()), "MPI_Win_lock_all");
        check(MPI_Win_sync(window()), "MPI_Win_sync");
        setting_.context.comm.barrier();  // from here on all pieces are there to be fetched
        std::vector<MPI_Request> requests(incoming_.size(), MPI_REQUEST_NULL);
        std::byte* place = received_.data();
        for (std::size_t i = 0; i < incoming_.size(); ++i) {
            const Piece& piece = incoming_[i];
            const mpi::Span all(piece.block.size(), mpi::type_of(setting_.dtype));
            check(MPI_Rget(place, all.count(), all.type(), piece.peer, piece.at * setting_.item(), all.count(),
                           all.type(), window(), &requests[i]),
                  "MPI_Rget");
            place += size(piece);
        }
        land_as_they_come(received_.data(), requests, landed);
        check(MPI_Win_unlock_all(window()), "MPI_Win_unlock_all");
        setting_.context.comm.barrier();  // nobody turns new numbers into a window that others still read
    }

    ExchangeKind kind_;
    mpi::Exposed exposed_;
    Buffer received_;
};

/// Within a node pieces are read straight from the memory of whoever turned them: nothing is received.
class SharedMemory final : public Exchange {
public:
    explicit SharedMemory(const Setting& setting) : Exchange(setting) {
        const mpi::Communicator& comm = setting_.context.comm;
        const mpi::Communicator node = comm.node();
        mpi::together(comm, [&] {
            if (node.size() != comm.size()) {
                throw UsageError("exchange 'shared' needs all ranks on one node; use overlap");
            }
        });
        exposed_ = mpi::allocate_shared(comm, bytes(outgoing_));
    }

    void finish(const Landed& landed) override {
        const MPI_Win window = exposed_.window.get();
        check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window), "MPI_Win_lock_all");
        check(MPI_Win_sync(window), "MPI_Win_sync");
        setting_.context.comm.barrier();
        check(MPI_Win_sync(window), "MPI_Win_sync");
        for (const Piece& piece : incoming_) {
            setting_.context.ledger.count().copied_in_node += piece.block.size() * setting_.item();
            landed(piece, mpi::shared_data(exposed_, piece.peer) + piece.at * setting_.item());
        }
        setting_.context.comm.barrier();
        check(MPI_Win_unlock_all(window), "MPI_Win_unlock_all");
    }

private:
    std::byte* memory() override { return exposed_.data; }

    mpi::Exposed exposed_;
};

}  // namespace

std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<OneSided>(kind, setting);
}

std::unique_ptr<Exchange> make_shared(const Setting& setting) { return std::make_unique<SharedMemory>(setting); }

}  // namespace tilewise::transpose
