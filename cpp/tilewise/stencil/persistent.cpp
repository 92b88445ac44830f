// Messages that are described once and started again at every exchange: one set of them for each field.
#include <array>
#include <optional>

#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/parcels.hpp"

namespace tilewise::stencil {
namespace {

using mpi::check;

class Persistent final : public Exchange {
public:
    explicit Persistent(const Setting& setting) : Exchange(setting) {
        mpi::together(setting_.context.comm, [&] {
            sent_ = Buffer(Parcels::bytes_of(setting_, outgoing()));
            received_ = Buffer(Parcels::bytes_of(setting_, incoming()));
            out_.emplace(setting_, outgoing(), sent_.data());
            in_.emplace(setting_, incoming(), received_.data());
            for (int which = 0; which < 2; ++which) {
                describe(which);
            }
        });
    }

    ~Persistent() override {
        for (auto& requests : requests_) {
            for (MPI_Request& request : requests) {
                if (request != MPI_REQUEST_NULL && !mpi::must_not_free()) {
                    MPI_Request_free(&request);
                }
            }
        }
    }

protected:
    void send(int which) override {
        out_->pack(which);
        auto& requests = set(which);
        if (!requests.empty()) {  // Open MPI refuses to start none
            check(MPI_Startall(static_cast<int>(requests.size()), requests.data()), "MPI_Startall");
        }
    }

    void receive(int which) override {
        auto& requests = set(which);
        check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        in_->unpack(which);
    }

private:
    std::vector<MPI_Request>& set(int which) { return requests_[static_cast<std::size_t>(which)]; }

    void describe(int which) {
        auto& requests = set(which);
        for (std::size_t i = 0; i < in_->size(); ++i) {
            const Message m = in_->message(i, which);
            check(MPI_Recv_init(m.address, m.count, m.type, in_->piece(i).peer, in_->piece(i).side, comm(),
                                &requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Recv_init");
        }
        for (std::size_t i = 0; i < out_->size(); ++i) {
            const Message m = out_->message(i, which);
            check(MPI_Send_init(m.address, m.count, m.type, out_->piece(i).peer, out_->piece(i).side, comm(),
                                &requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Send_init");
        }
    }

    Buffer sent_, received_;
    std::optional<Parcels> out_, in_;
    std::array<std::vector<MPI_Request>, 2> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_persistent(const Setting& setting) { return std::make_unique<Persistent>(setting); }

}  // namespace tilewise::stencil
