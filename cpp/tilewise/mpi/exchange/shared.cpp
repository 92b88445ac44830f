// Memory of the node: messages are read where their senders have them, and nothing is sent.
//
// A barrier tells that all messages are in their places. Where sets take turns that is enough: it also tells that all
// have read the set before it, which is written again only behind the next barrier. Where there is one set, a second
// barrier tells that all have read it.
#include "tilewise/mpi/exchange/exchange.hpp"

namespace tilewise::mpi {
namespace {

class SharedMemory final : public Exchange {
public:
    explicit SharedMemory(const Setting& setting) : Exchange(setting, Memory::node) {
        for (const BoundSet& set : sets()) {
            std::vector<From>& from = from_.emplace_back();
            const std::vector<Source> found = sources(set);
            for (std::size_t i = 0; i < found.size(); ++i) {
                from.push_back({shared_data(window(), set.in[i].peer) + found[i].at, found[i].stride});
            }
        }
        check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window()), "MPI_Win_lock_all");
        if (stays()) {
            wait_for_senders();
        }
    }

    ~SharedMemory() override {
        if (!must_not_free()) {
            MPI_Win_unlock_all(window());
        }
    }

protected:
    void move(const Arrived& arrived) override {
        if (!stays()) {
            wait_for_senders();
        }
        for (std::size_t i = 0; i < in().size(); ++i) {
            const Bound& m = in()[i];
            const From& from = from_[current()][i];
            if (m.data != nullptr) {
                copy_rows(from.data, from.stride * item(), m.data, m.stride * item(), m.rows, m.columns * item());
            }
            if (arrived) {
                arrived(i, m.data != nullptr ? m.data : from.data);
            }
        }
        if (sets().size() == 1 && !stays()) {
            comm().barrier();
        }
    }

private:
    void wait_for_senders() const {
        check(MPI_Win_sync(window()), "MPI_Win_sync");
        comm().barrier();
        check(MPI_Win_sync(window()), "MPI_Win_sync");
    }

    struct From {
        const std::byte* data;
        std::int64_t stride;
    };

    std::vector<std::vector<From>> from_;
};

}  // namespace

std::unique_ptr<Exchange> make_shared_memory(ExchangeKind, const Setting& setting) {
    return std::make_unique<SharedMemory>(setting);
}

}  // namespace tilewise::mpi
