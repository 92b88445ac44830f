// Messages that stay in windows, from where those who want them get them.
//
//     sender   [ for 0 | for 2 | … ]        one_sided_fence   all open and close their windows together
//                     └─── Get ───▶         one_sided_pscw    only those who exchange wait for each other
//                                           one_sided_lock    a lock held all along, and barriers;
//                                                             each is delivered as soon as it is there
//
// Where sets come one by one, nobody knows beforehand where their messages lie: these are put into the receiver's
// window (see Put).
#include <cstring>
#include <vector>

#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

/// Some ranks of a communicator, as MPI's post and start want them.
class Group {
public:
    /// `ranks` of `comm`, each once. Made out of the communicator's own, which is freed at once. Not collective.
    Group(MPI_Comm comm, const std::vector<int>& ranks) {
        MPI_Group all = MPI_GROUP_NULL;
        check(MPI_Comm_group(comm, &all), "MPI_Comm_group");
        check(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &group_), "MPI_Group_incl");
        check(MPI_Group_free(&all), "MPI_Group_free");
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group() {
        if (group_ != MPI_GROUP_NULL && group_ != MPI_GROUP_EMPTY && !must_not_free()) {
            MPI_Group_free(&group_);
        }
    }

    MPI_Group get() const { return group_; }

private:
    MPI_Group group_ = MPI_GROUP_NULL;
};

/// The ranks that `pieces` go to or come from, each once.
template <class Pieces> std::vector<int> peers_of(const Pieces& pieces) {
    std::vector<int> ranks;
    for (const auto& piece : pieces) {
        bool known = false;
        for (const int rank : ranks) {
            known = known || rank == piece.peer;
        }
        if (!known) {
            ranks.push_back(piece.peer);
        }
    }
    return ranks;
}

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

// Messages put straight into the receiver's window, under a lock that is held all along: for sets that come one by one,
// between ranks that always exchange both ways.
//
//     window of a rank   [ tag 0, even set | tag 1, even | tag 0, odd | tag 1, odd ]
//
//     sender             Put, flush, then an empty message: it is there
//     receiver           waits for the empty message, and copies out
//
// Two places in turn are enough: who puts for set s + 2 has heard from that neighbour in set s + 1, which it began
// after it had copied set s out.
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

/// Memory of the node: messages are read where their senders have them, and nothing is sent.
///
/// A barrier tells that all messages are in their places. Where sets take turns that is enough: it also tells that all
/// have read the set before it, which is written again only behind the next barrier. Where there is one set, a second
/// barrier tells that all have read it.
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

std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting) {
    if (setting.sets.empty()) {
        return std::make_unique<Put>(setting);
    }
    return std::make_unique<Get>(kind, setting);
}

std::unique_ptr<Exchange> make_shared_memory(ExchangeKind, const Setting& setting) {
    return std::make_unique<SharedMemory>(setting);
}

}  // namespace tilewise::mpi
