// One message a block, sent and received.
//
//     blocking               the tops' way, then the bottoms' way: every rank receives what comes and sends what goes; the receive is posted first, so
//                            that nobody waits in a circle
//     nonblocking            both ways at once, then wait for all
//     overlap                the same, with work between: MPI moves messages only while it is called, so progress() calls it
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/svd/exchange.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

class TwoSided final : public Exchange {
public:
    TwoSided(ExchangeKind kind, Context& context)
        : Exchange(context),
          in_turns_(kind == ExchangeKind::blocking || kind == ExchangeKind::none) {}

    void progress() override {
        if (requests_.empty()) {
            return;
        }
        int count = 0;
        done_.resize(requests_.size());
        check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(),
                           MPI_STATUSES_IGNORE),
              "MPI_Testsome");
    }

    void finish() override {
        if (in_turns_) {
            take_turn(grid::Side::top);
            take_turn(grid::Side::bottom);
        }
        wait();
    }

protected:
    void start() override {
        if (in_turns_) {
            return;
        }
        for (const Parcel& parcel : in_) {
            post(parcel);
        }
        for (const Parcel& parcel : out_) {
            const mpi::Span span(parcel.count, MPI_DOUBLE);
            check(MPI_Isend(parcel.data, span.count(), span.type(), parcel.peer, tag(parcel), comm(),
                            &requests_.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Isend");
        }
    }

private:
    static int tag(const Parcel& parcel) { return parcel.side == grid::Side::top ? 1 : 2; }

    void post(const Parcel& parcel) {
        const mpi::Span span(parcel.count, MPI_DOUBLE);
        check(MPI_Irecv(parcel.data, span.count(), span.type(), parcel.peer, tag(parcel), comm(),
                        &requests_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv");
    }

    void take_turn(grid::Side side) {
        for (const Parcel& parcel : in_) {
            if (parcel.side == side) {
                post(parcel);
            }
        }
        for (const Parcel& parcel : out_) {
            if (parcel.side == side) {
                const mpi::Span span(parcel.count, MPI_DOUBLE);
                check(MPI_Send(parcel.data, span.count(), span.type(), parcel.peer, tag(parcel), comm()), "MPI_Send");
            }
        }
        wait();
    }

    void wait() {
        check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        requests_.clear();
    }

    bool in_turns_;
    std::vector<MPI_Request> requests_;
    std::vector<int> done_;
};

}  // namespace

std::unique_ptr<Exchange> make_two_sided(ExchangeKind kind, Context& context) {
    return std::make_unique<TwoSided>(kind, context);
}

}  // namespace tilewise::svd
