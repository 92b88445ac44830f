// One message a piece, sent and received.
//
//     synchronous, blocking   side after side of the margin: every rank receives what fills that side and sends what fills it elsewhere; the receive is
//                             posted first, so that nobody waits in a circle
//     nonblocking             all at once, then wait for all
//     overlap                 the same, with work between: MPI moves messages only while it is called, so progress() calls it
#include <optional>

#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/parcels.hpp"

namespace tilewise::stencil {
namespace {

using mpi::check;

class TwoSided final : public Exchange {
public:
    TwoSided(ExchangeKind kind, const Setting& setting) : Exchange(setting), kind_(kind) {
        mpi::together(setting_.context.comm, [&] {
            sent_ = Buffer(Parcels::bytes_of(setting_, outgoing()));
            received_ = Buffer(Parcels::bytes_of(setting_, incoming()));
            out_.emplace(setting_, outgoing(), sent_.data());
            in_.emplace(setting_, incoming(), received_.data());
            requests_.assign(in().size() + out().size(), MPI_REQUEST_NULL);
            done_.resize(requests_.size());
        });
    }

    void progress() override {
        int count = 0;
        check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(),
                           MPI_STATUSES_IGNORE),
              "MPI_Testsome");
    }

protected:
    void send(int which) override {
        out().pack(which);
        if (in_turns()) {
            return;
        }
        for (std::size_t i = 0; i < in().size(); ++i) {
            post(i, which);
        }
        for (std::size_t i = 0; i < out().size(); ++i) {
            const Message m = out().message(i, which);
            check(MPI_Isend(m.address, m.count, m.type, out().piece(i).peer, out().piece(i).side, comm(),
                            &requests_[in().size() + i]),
                  "MPI_Isend");
        }
    }

    void receive(int which) override {
        if (in_turns()) {
            for (int side = 0; side < 9; ++side) {
                take_turn(side, which);
            }
        }
        check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        in().unpack(which);
    }

private:
    const Parcels& in() const { return *in_; }
    const Parcels& out() const { return *out_; }
    bool in_turns() const { return kind_ == ExchangeKind::synchronous || kind_ == ExchangeKind::blocking; }

    void post(std::size_t index, int which) {
        const Message m = in().message(index, which);
        check(MPI_Irecv(m.address, m.count, m.type, in().piece(index).peer, in().piece(index).side, comm(),
                        &requests_[index]),
              "MPI_Irecv");
    }

    void take_turn(int side, int which) {
        for (std::size_t i = 0; i < in().size(); ++i) {
            if (in().piece(i).side == side) {
                post(i, which);
            }
        }
        for (std::size_t i = 0; i < out().size(); ++i) {
            if (out().piece(i).side != side) {
                continue;
            }
            const Message m = out().message(i, which);
            const bool synchronous = kind_ == ExchangeKind::synchronous;
            check((synchronous ? MPI_Ssend : MPI_Send)(m.address, m.count, m.type, out().piece(i).peer, side, comm()),
                  synchronous ? "MPI_Ssend" : "MPI_Send");
        }
        check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    ExchangeKind kind_;
    Buffer sent_, received_;
    std::optional<Parcels> out_, in_;
    std::vector<MPI_Request> requests_;
    std::vector<int> done_;
};

}  // namespace

std::unique_ptr<Exchange> make_two_sided(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<TwoSided>(kind, setting);
}

}  // namespace tilewise::stencil
