// Isend and Irecv.
//
//     nonblocking    all at once when all are ready, then wait for all
//     overlap        each sent as soon as it is ready, and delivered as soon as it is there; MPI moves messages
//                    only while it is called, so progress() calls it
#include "tilewise/mpi/exchange/nonblocking.hpp"

#include <algorithm>

namespace tilewise::mpi {

void Nonblocking::post() {
    requests_.resize(in().size() + out().size(), MPI_REQUEST_NULL);
    done_.resize(requests_.size());
    arrivals_.clear();
    for (std::size_t index = 0; index < in().size(); ++index) {
        begin_receive(index, requests()[index]);
    }
}

void Nonblocking::ready(std::size_t index) {
    if (early_) {
        begin_send(index, requests()[in().size() + index]);
    }
}

void Nonblocking::progress() {
    if (!early_) {
        return;
    }
    int count = 0;
    check(
        MPI_Testsome(static_cast<int>(requests().size()), requests().data(), &count, done_.data(), MPI_STATUSES_IGNORE),
        "MPI_Testsome");
    note_arrivals(count);
}

void Nonblocking::move(const Arrived& arrived) {
    const std::size_t incoming = in().size();
    for (std::size_t index = 0; !early_ && index < out().size(); ++index) {
        begin_send(index, requests()[incoming + index]);
    }
    for (std::size_t next = 0; early_ && arrived && next < incoming; ++next) {
        if (next == arrivals_.size()) {
            progress();
        }
        if (next == arrivals_.size()) {
            // For one of them: MPICH's MPI_Waitsome leaves its processor to nobody, and so takes it from the sender.
            const auto missing =
                static_cast<std::size_t>(std::find_if(requests().begin(), requests().end(),
                                                      [](MPI_Request r) { return r != MPI_REQUEST_NULL; }) -
                                         requests().begin());
            check(MPI_Wait(&requests()[missing], MPI_STATUS_IGNORE), "MPI_Wait");
            arrivals_.push_back(missing);
        }
        deliver(arrivals_[next], arrived);
    }
    check(MPI_Waitall(static_cast<int>(requests().size()), requests().data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    if (!early_) {
        deliver_all(arrived);
    }
}

/// Those of the requests in `done_` that are receives have arrived.
void Nonblocking::note_arrivals(int count) {
    for (int i = 0; i < count; ++i) {  // MPI_UNDEFINED is negative
        if (const auto index = static_cast<std::size_t>(done_[static_cast<std::size_t>(i)]); index < in().size()) {
            arrivals_.push_back(index);
        }
    }
}

std::unique_ptr<Exchange> make_nonblocking(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<Nonblocking>(setting, kind == ExchangeKind::overlap);
}

}  // namespace tilewise::mpi
