// Blocks put straight into the neighbour's window, under a lock that is held all along.
//
//     window of a rank   [ top, even step | bottom, even | top, odd | bottom, odd ]
//
//     sender             Put, flush, then an empty message: it is there          receiver   waits for the empty message, and copies the block out
//
// Two windows in turn are enough: who puts for step s + 2 has heard from that neighbour in step s + 1, which it began after it had copied step s out.
#include <cstring>

#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/svd/exchange.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

class OneSided final : public Exchange {
public:
    OneSided(Context& context, std::int64_t largest) : Exchange(context), largest_(largest) {
        exposed_ = mpi::allocate_window(context.comm, static_cast<std::size_t>(4 * largest_) * sizeof(double));
        check(MPI_Win_lock_all(0, window()), "MPI_Win_lock_all");
    }

    ~OneSided() override {
        if (!mpi::must_not_free()) {
            MPI_Win_unlock_all(window());
        }
    }
    OneSided(const OneSided&) = delete;
    OneSided& operator=(const OneSided&) = delete;

    void finish() override {
        for (const Parcel& parcel : in_) {
            check(MPI_Recv(nullptr, 0, MPI_BYTE, parcel.peer, tag(parcel), comm(), MPI_STATUS_IGNORE), "MPI_Recv");
            check(MPI_Win_sync(window()), "MPI_Win_sync");
            std::memcpy(parcel.data, exposed_.data + place(parcel.side),
                        static_cast<std::size_t>(parcel.count) * sizeof(double));
        }
        check(MPI_Waitall(static_cast<int>(notices_.size()), notices_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        notices_.clear();
        parity_ = 1 - parity_;
    }

protected:
    void start() override {
        for (const Parcel& parcel : out_) {
            const mpi::Span span(parcel.count, MPI_DOUBLE);
            check(MPI_Put(parcel.data, span.count(), span.type(), parcel.peer, place(parcel.side), span.count(),
                          span.type(), window()),
                  "MPI_Put");
        }
        for (const Parcel& parcel : out_) {
            check(MPI_Win_flush(parcel.peer, window()), "MPI_Win_flush");
            check(MPI_Isend(nullptr, 0, MPI_BYTE, parcel.peer, tag(parcel), comm(),
                            &notices_.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Isend");
        }
    }

private:
    MPI_Win window() const { return exposed_.window.get(); }
    static int tag(const Parcel& parcel) { return parcel.side == grid::Side::top ? 1 : 2; }
    /// Bytes from the window's start.
    MPI_Aint place(grid::Side side) const {
        const std::int64_t part = 2 * parity_ + (side == grid::Side::top ? 0 : 1);
        return static_cast<MPI_Aint>(part * largest_ * static_cast<std::int64_t>(sizeof(double)));
    }

    std::int64_t largest_;
    int parity_ = 0;
    mpi::Exposed exposed_;
    std::vector<MPI_Request> notices_;
};

}  // namespace

std::unique_ptr<Exchange> make_one_sided(Context& context, std::int64_t largest) {
    return std::make_unique<OneSided>(context, largest);
}

}  // namespace tilewise::svd
