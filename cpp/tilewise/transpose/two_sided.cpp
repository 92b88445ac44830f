// Pieces as messages: each sent from where it lies, and received into memory of its own.
//
//     synchronous, blocking    in turns: in turn k rank r sends to r+k and receives from r−k, so that nobody waits in a circle
//     nonblocking              all at once, then wait for all
//     overlap                  each sent as soon as it is turned, and placed as soon as it is there
//     collective               Alltoallv
#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/exchange.hpp"

namespace tilewise::transpose {
namespace {

using mpi::check;

class TwoSided final : public Exchange {
public:
    TwoSided(ExchangeKind kind, const Setting& setting) : Exchange(setting), kind_(kind) {
        mpi::together(setting_.context.comm, [&] {
            sent_ = Buffer(bytes(outgoing_));
            received_ = Buffer(bytes(incoming_));
        });
    }

    void begin() override {
        if (kind_ == ExchangeKind::nonblocking || kind_ == ExchangeKind::overlap) {
            receives_.assign(incoming_.size(), MPI_REQUEST_NULL);
            sends_.assign(outgoing_.size(), MPI_REQUEST_NULL);
            std::byte* place = received_.data();
            for (std::size_t i = 0; i < incoming_.size(); ++i) {
                receive(incoming_[i], place, &receives_[i]);
                place += size(incoming_[i]);
            }
        }
    }

    void ready(std::size_t index) override {
        if (kind_ != ExchangeKind::overlap) {
            return;
        }
        send(outgoing_[index], &sends_[index]);
        int flag = 0;  // MPI moves messages only while it is called
        check(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &flag, MPI_STATUSES_IGNORE), "MPI_Testall");
    }

    void finish(const Landed& landed) override {
        switch (kind_) {
            case ExchangeKind::nonblocking:
                for (std::size_t i = 0; i < outgoing_.size(); ++i) {
                    send(outgoing_[i], &sends_[i]);
                }
                wait(receives_);
                land_all(received_.data(), landed);
                wait(sends_);
                return;
            case ExchangeKind::overlap:
                land_as_they_come(received_.data(), receives_, landed);
                wait(sends_);
                return;
            case ExchangeKind::collective:
                all_to_all();
                land_all(received_.data(), landed);
                return;
            default:
                take_turns(landed);
        }
    }

private:
    std::byte* memory() override { return sent_.data(); }
    MPI_Comm comm() const { return setting_.context.comm.get(); }
    mpi::Span span(const Piece& piece) const { return {piece.block.size(), mpi::type_of(setting_.dtype)}; }

    void receive(const Piece& piece, std::byte* place, MPI_Request* request) {
        const mpi::Span all = span(piece);
        check(MPI_Irecv(place, all.count(), all.type(), piece.peer, 0, comm(), request), "MPI_Irecv");
    }
    void send(const Piece& piece, MPI_Request* request) {
        const mpi::Span all = span(piece);
        check(MPI_Isend(place_of(piece), all.count(), all.type(), piece.peer, 0, comm(), request), "MPI_Isend");
    }
    static void wait(std::vector<MPI_Request>& requests) {
        check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    void take_turns(const Landed& landed) {
        const int me = setting_.context.comm.rank(), ranks = setting_.context.comm.size();
        for (int turn = 1; turn < ranks; ++turn) {
            const int to = (me + turn) % ranks, from = (me + ranks - turn) % ranks;
            MPI_Request request = MPI_REQUEST_NULL;
            std::byte* place = received_.data();
            const Piece* expected = nullptr;
            for (const Piece& piece : incoming_) {
                if (piece.peer == from) {
                    expected = &piece;
                    receive(piece, place, &request);
                    break;
                }
                place += size(piece);
            }
            for (const Piece& piece : outgoing_) {
                if (piece.peer == to) {
                    const mpi::Span all = span(piece);
                    const auto call = kind_ == ExchangeKind::synchronous ? MPI_Ssend : MPI_Send;
                    check(call(place_of(piece), all.count(), all.type(), to, 0, comm()),
                          kind_ == ExchangeKind::synchronous ? "MPI_Ssend" : "MPI_Send");
                }
            }
            check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
            if (expected != nullptr) {
                land(*expected, place, landed);
            }
        }
    }

#if MPI_VERSION >= 4
    using Count = MPI_Count;
    using Displacement = MPI_Aint;
#else
    using Count = int;
    using Displacement = int;
#endif

    struct Lists {
        std::vector<Count> counts;
        std::vector<Displacement> places;
    };

    Lists lists(const std::vector<Piece>& pieces) const {
        const auto ranks = static_cast<std::size_t>(setting_.context.comm.size());
        if (elements(pieces) != static_cast<std::int64_t>(static_cast<Count>(elements(pieces)))) {
            throw UsageError(
                "--exchange collective: this MPI's Alltoallv takes at most 2^31 numbers a rank; use nonblocking");
        }
        Lists lists{std::vector<Count>(ranks), std::vector<Displacement>(ranks)};
        std::int64_t before = 0;
        for (const Piece& piece : pieces) {
            lists.counts[static_cast<std::size_t>(piece.peer)] = static_cast<Count>(piece.block.size());
            lists.places[static_cast<std::size_t>(piece.peer)] = static_cast<Displacement>(before);
            before += piece.block.size();
        }
        return lists;
    }

    void all_to_all() {
        const Lists out = lists(outgoing_), in = lists(incoming_);
        const MPI_Datatype item = mpi::type_of(setting_.dtype);
#if MPI_VERSION >= 4
        const auto call = MPI_Alltoallv_c;
#else
        const auto call = MPI_Alltoallv;
#endif
        check(call(sent_.data(), out.counts.data(), out.places.data(), item, received_.data(), in.counts.data(),
                   in.places.data(), item, comm()),
              "MPI_Alltoallv");
    }

    ExchangeKind kind_;
    Buffer sent_, received_;
    std::vector<MPI_Request> sends_, receives_;
};

}  // namespace

std::unique_ptr<Exchange> make_two_sided(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<TwoSided>(kind, setting);
}

}  // namespace tilewise::transpose
