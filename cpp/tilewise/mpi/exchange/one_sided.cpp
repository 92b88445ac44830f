// Messages that stay in windows, from where those who want them get them.
//
//     sender   [ for 0 | for 2 | … ]        one_sided_fence   all open and close their windows together
//                     └─── Get ───▶         one_sided_pscw    only those who exchange wait for each other
//                                           one_sided_lock    a lock held all along, and barriers;
//                                                             each is delivered as soon as it is there
//
// Where sets come one by one, nobody knows beforehand where their messages lie: these are put into the receiver's
// window (see put.cpp).
#include "tilewise/mpi/exchange/put.hpp"
#include "tilewise/mpi/group.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

class Get final : public Exchange {
public:
    Get(ExchangeKind kind, const Setting& setting)
        : Exchange(setting, Memory::window),
          kind_(kind),
          to_(comm().get(), peers_of(out())),
          from_(comm().get(), peers_of(in())) {
        for (const BoundSet& set : sets()) {
            std::vector<There>& there = there_.emplace_back();
            for (const Source& source : sources(set)) {
                there.push_back(
                    {static_cast<MPI_Aint>(source.at), Span(source.rows, source.columns, source.stride, type())});
            }
        }
        if (kind_ == ExchangeKind::one_sided_lock) {
            check(MPI_Win_lock_all(0, window()), "MPI_Win_lock_all");
        }
        if (stays() && kind_ == ExchangeKind::one_sided_fence) {
            check(MPI_Win_fence(MPI_MODE_NOPRECEDE, window()), "MPI_Win_fence");
        } else if (stays()) {
            wait_for_senders();
        }
    }

    ~Get() override {
        if (kind_ == ExchangeKind::one_sided_lock && !must_not_free()) {
            MPI_Win_unlock_all(window());
        } else if (kind_ == ExchangeKind::one_sided_fence && stays() && !must_not_free()) {
            MPI_Win_fence(MPI_MODE_NOSUCCEED, window());
        }
    }

protected:
    void move(const Arrived& arrived) override {
        switch (kind_) {
            case ExchangeKind::one_sided_fence:
                if (!stays()) {
                    check(MPI_Win_fence(MPI_MODE_NOPRECEDE, window()), "MPI_Win_fence");
                }
                get_all();
                check(MPI_Win_fence(stays() ? 0 : MPI_MODE_NOSUCCEED, window()), "MPI_Win_fence");
                deliver_all(arrived);
                break;
            case ExchangeKind::one_sided_pscw:
                check(MPI_Win_post(to_.get(), 0, window()), "MPI_Win_post");
                check(MPI_Win_start(from_.get(), 0, window()), "MPI_Win_start");
                get_all();
                check(MPI_Win_complete(window()), "MPI_Win_complete");
                deliver_all(arrived);
                check(MPI_Win_wait(window()), "MPI_Win_wait");
                break;
            default:
                get_under_lock(arrived);
        }
    }

private:
    struct There {
        MPI_Aint at;
        Span span;
    };

    void get_all() const {
        for (std::size_t i = 0; i < in().size(); ++i) {
            const Bound& m = in()[i];
            const There& there = there_[current()][i];
            check(MPI_Get(m.data, m.span.count(), m.span.type(), m.peer, there.at, there.span.count(),
                          there.span.type(), window()),
                  "MPI_Get");
        }
    }

    void get_under_lock(const Arrived& arrived) {
        if (!stays()) {
            wait_for_senders();
        }
        requests_.assign(in().size(), MPI_REQUEST_NULL);
        for (std::size_t i = 0; i < in().size(); ++i) {
            const Bound& m = in()[i];
            const There& there = there_[current()][i];
            check(MPI_Rget(m.data, m.span.count(), m.span.type(), m.peer, there.at, there.span.count(),
                           there.span.type(), window(), &requests_[i]),
                  "MPI_Rget");
        }
        for (std::size_t left = in().size(); left > 0; --left) {
            int index = MPI_UNDEFINED;
            check(MPI_Waitany(static_cast<int>(requests_.size()), requests_.data(), &index, MPI_STATUS_IGNORE),
                  "MPI_Waitany");
            deliver(static_cast<std::size_t>(index), arrived);
        }
        if (!stays()) {
            comm().barrier();  // nobody writes new numbers where others still read
        }
    }

    /// From here on all messages are there to be fetched.
    void wait_for_senders() const {
        check(MPI_Win_sync(window()), "MPI_Win_sync");
        comm().barrier();
    }

    ExchangeKind kind_;
    Group to_, from_;
    std::vector<std::vector<There>> there_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting) {
    if (setting.sets.empty()) {
        return make_put(setting);
    }
    return std::make_unique<Get>(kind, setting);
}

}  // namespace tilewise::mpi
