// A message for every single cell: what the third report did with halos that are not contiguous, and what took its 27.65 s.
//
//     synchronous, blocking   side after side, cell after cell: receive posted, cell sent, receive awaited
//     nonblocking, overlap    all cells at once, then wait for all
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/exchange.hpp"

namespace tilewise::stencil {
namespace {

using mpi::check;

class Elementwise final : public Exchange {
public:
    Elementwise(ExchangeKind kind, const Setting& setting)
        : Exchange(setting),
          kind_(kind),
          type_(mpi::type_of(setting.fields.dtype())) {}

    void progress() override {
        int done = 0;
        check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    }

protected:
    void send(int which) override {
        if (in_turns()) {
            return;
        }
        requests_.clear();
        for (const Piece& piece : incoming()) {
            for (std::int64_t i = 0; i < piece.size(); ++i) {
                check(MPI_Irecv(cell(piece, i, which), 1, type_, piece.peer, piece.side, comm(), next_request()),
                      "MPI_Irecv");
            }
        }
        for (const Piece& piece : outgoing()) {
            for (std::int64_t i = 0; i < piece.size(); ++i) {
                check(MPI_Isend(cell(piece, i, which), 1, type_, piece.peer, piece.side, comm(), next_request()),
                      "MPI_Isend");
            }
        }
    }

    void receive(int which) override {
        if (!in_turns()) {
            check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
                  "MPI_Waitall");
            return;
        }
        for (int side = 0; side < 9; ++side) {
            const std::vector<std::byte*> to = cells(incoming(), side, which), from = cells(outgoing(), side, which);
            for (std::size_t i = 0; i < std::max(to.size(), from.size()); ++i) {
                MPI_Request request = MPI_REQUEST_NULL;
                if (i < to.size()) {
                    check(MPI_Irecv(to[i], 1, type_, peer(incoming(), side), side, comm(), &request), "MPI_Irecv");
                }
                if (i < from.size()) {
                    const bool synchronous = kind_ == ExchangeKind::synchronous;
                    check((synchronous ? MPI_Ssend : MPI_Send)(from[i], 1, type_, peer(outgoing(), side), side, comm()),
                          synchronous ? "MPI_Ssend" : "MPI_Send");
                }
                check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
            }
        }
    }

private:
    bool in_turns() const { return kind_ == ExchangeKind::synchronous || kind_ == ExchangeKind::blocking; }

    MPI_Request* next_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

    std::byte* cell(const Piece& piece, std::int64_t index, int which) const {
        const std::int64_t width = piece.here.columns.size();
        return setting_.fields.at(which, piece.here.rows.begin + index / width,
                                  piece.here.columns.begin + index % width);
    }

    std::vector<std::byte*> cells(const std::vector<Piece>& pieces, int side, int which) const {
        std::vector<std::byte*> found;
        for (const Piece& piece : pieces) {
            for (std::int64_t i = 0; piece.side == side && i < piece.size(); ++i) {
                found.push_back(cell(piece, i, which));
            }
        }
        return found;
    }

    /// All pieces of one side come from the same neighbour: no margin is deeper than a block.
    static int peer(const std::vector<Piece>& pieces, int side) {
        return std::find_if(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.side == side; })->peer;
    }

    ExchangeKind kind_;
    MPI_Datatype type_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_elementwise(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<Elementwise>(kind, setting);
}

}  // namespace tilewise::stencil
