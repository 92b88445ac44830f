// Messages put straight into the receiver's window, under a lock that is held all along.
//
//     window of a rank   [ tag 0, even set | tag 1, even | tag 0, odd | tag 1, odd ]
//
//     sender             Put, flush, then an empty message: it is there
//     receiver           waits for the empty message, and copies out
//
// Two places in turn are enough: who puts for set s + 2 has heard from that neighbour in set s + 1, which it began
// after it had copied set s out.
#include "tilewise/mpi/exchange/put.hpp"

#include <cstring>

namespace tilewise::mpi {
namespace {

class Put final : public Exchange {
public:
    explicit Put(const Setting& setting)
        : Exchange(setting, Memory::own),
          tags_(setting.tags),
          largest_(setting.largest * item()),
          exposed_(allocate_window(comm(), static_cast<std::size_t>(2 * tags_ * largest_))) {
        check(MPI_Win_lock_all(0, exposed_.window.get()), "MPI_Win_lock_all");
    }

    ~Put() override {
        if (!must_not_free()) {
            MPI_Win_unlock_all(exposed_.window.get());
        }
    }

    void ready(std::size_t index) override {
        const Bound& m = out()[index];
        check(MPI_Put(m.data, m.span.count(), m.span.type(), m.peer, place_of(m), m.span.count(), m.span.type(),
                      exposed_.window.get()),
              "MPI_Put");
        if (index + 1 == out().size()) {
            say_so();
        }
    }

protected:
    void move(const Arrived& arrived) override {
        for (std::size_t index = 0; index < in().size(); ++index) {
            const Bound& m = in()[index];
            check(MPI_Recv(nullptr, 0, MPI_BYTE, m.peer, m.tag, comm().get(), MPI_STATUS_IGNORE), "MPI_Recv");
            check(MPI_Win_sync(exposed_.window.get()), "MPI_Win_sync");
            std::memcpy(m.data, exposed_.data + place_of(m), static_cast<std::size_t>(m.size() * item()));
            deliver(index, arrived);
        }
        check(MPI_Waitall(static_cast<int>(notices_.size()), notices_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        notices_.clear();
        parity_ = 1 - parity_;
    }

private:
    void say_so() {
        for (const Bound& m : out()) {
            check(MPI_Win_flush(m.peer, exposed_.window.get()), "MPI_Win_flush");
            check(
                MPI_Isend(nullptr, 0, MPI_BYTE, m.peer, m.tag, comm().get(), &notices_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend");
        }
    }

    /// Bytes from the window's beginning.
    MPI_Aint place_of(const Message& message) const {
        return static_cast<MPI_Aint>((parity_ * tags_ + message.tag) * largest_);
    }

    std::int64_t tags_, largest_, parity_ = 0;
    Exposed exposed_;
    std::vector<MPI_Request> notices_;
};

}  // namespace

std::unique_ptr<Exchange> make_put(const Setting& setting) { return std::make_unique<Put>(setting); }

}  // namespace tilewise::mpi
