// Messages that both sides know of: in turns, or all at once.
//
// Messages that all fly at once: what posts them is a detail, and other mechanisms post them in their own way.
//
//     nonblocking    Isend and Irecv, all at once when all are ready, then wait for all
//     overlap        each sent as soon as it is ready, and delivered as soon as it is there; MPI moves messages
//                    only while it is called, so progress() calls it
//     persistent     messages that are described once and started again at every exchange
//     partitioned    the same, and each leaves as soon as it is ready
#include <algorithm>
#include <numeric>

#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

/// Send and receive in turns: the receive of a turn is posted first, then its message is sent, so that nobody waits in
/// a circle.
///
///     turn (tag, and place among messages of that tag)     synchronous   Irecv, Ssend, Wait
///                                                          blocking      Irecv, Send, Wait
class Turns final : public Exchange {
public:
    Turns(ExchangeKind kind, const Setting& setting)
        : Exchange(setting, Memory::own),
          synchronous_(kind == ExchangeKind::synchronous) {}

protected:
    void move(const Arrived& arrived) override {
        const std::vector<std::size_t> from = by_tag(in()), to = by_tag(out());
        std::size_t i = 0, o = 0;
        while (i < from.size() || o < to.size()) {
            const bool receives = i < from.size() && (o == to.size() || in()[from[i]].tag <= out()[to[o]].tag);
            const bool sends = o < to.size() && (i == from.size() || out()[to[o]].tag <= in()[from[i]].tag);
            MPI_Request request = MPI_REQUEST_NULL;
            if (receives) {
                receive(in()[from[i]], &request);
            }
            if (sends) {
                const Bound& m = out()[to[o++]];
                check((synchronous_ ? MPI_Ssend : MPI_Send)(m.data, m.span.count(), m.span.type(), m.peer, m.tag,
                                                            comm().get()),
                      synchronous_ ? "MPI_Ssend" : "MPI_Send");
            }
            check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
            if (receives) {
                deliver(from[i++], arrived);
            }
        }
    }

private:
    static std::vector<std::size_t> by_tag(const std::vector<Bound>& messages) {
        std::vector<std::size_t> order(messages.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return messages[a].tag < messages[b].tag; });
        return order;
    }

    bool synchronous_;
};

class Nonblocking : public Exchange {
public:
    /// `early`: a message leaves as soon as it is ready, and one that came is delivered before others are there.
    Nonblocking(const Setting& setting, bool early) : Exchange(setting, Memory::own), early_(early) {}

    void ready(std::size_t index) override {
        if (early_) {
            begin_send(index, requests()[in().size() + index]);
        }
    }
    void progress() override {
        if (!early_) {
            return;
        }
        int count = 0;
        check(MPI_Testsome(static_cast<int>(requests().size()), requests().data(), &count, done_.data(),
                           MPI_STATUSES_IGNORE),
              "MPI_Testsome");
        note_arrivals(count);
    }

protected:
    void post() override {
        requests_.resize(in().size() + out().size(), MPI_REQUEST_NULL);
        done_.resize(requests_.size());
        arrivals_.clear();
        for (std::size_t index = 0; index < in().size(); ++index) {
            begin_receive(index, requests()[index]);
        }
    }
    void move(const Arrived& arrived) override {
        const std::size_t incoming = in().size();
        for (std::size_t index = 0; !early_ && index < out().size(); ++index) {
            begin_send(index, requests()[incoming + index]);
        }
        for (std::size_t next = 0; early_ && arrived && next < incoming; ++next) {
            if (next == arrivals_.size()) {
                progress();
            }
            if (next == arrivals_.size()) {
                // For one of them: MPICH's MPI_Waitsome leaves its processor to nobody, and so takes it from the
                // sender.
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

    /// Lets the receive, or the message, with this index begin; `request` is that of the last set's, or null.
    virtual void begin_receive(std::size_t index, MPI_Request& request) { receive(in()[index], &request); }
    virtual void begin_send(std::size_t index, MPI_Request& request) { send(out()[index], &request); }
    /// Receives, then messages that are sent.
    virtual std::vector<MPI_Request>& requests() { return requests_; }

private:
    /// Those of the requests in `done_` that are receives have arrived.
    void note_arrivals(int count) {
        for (int i = 0; i < count; ++i) {  // MPI_UNDEFINED is negative
            if (const auto index = static_cast<std::size_t>(done_[static_cast<std::size_t>(i)]); index < in().size()) {
                arrivals_.push_back(index);
            }
        }
    }

    bool early_;
    std::vector<MPI_Request> requests_;
    std::vector<int> done_;
    std::vector<std::size_t> arrivals_;
};

/// Requests that are described once and started again and again: made in their sequence, freed with their owner.
class DescribedRequests {
public:
    explicit DescribedRequests(std::size_t sets) : requests_(sets) {}
    DescribedRequests(const DescribedRequests&) = delete;
    DescribedRequests& operator=(const DescribedRequests&) = delete;
    ~DescribedRequests() {
        for (auto& requests : requests_) {
            for (MPI_Request& request : requests) {
                if (request != MPI_REQUEST_NULL && !must_not_free()) {
                    MPI_Request_free(&request);
                }
            }
        }
    }

    /// Where the call that describes the next message of a set puts its request.
    MPI_Request* next(std::size_t set) { return &requests_[set].emplace_back(MPI_REQUEST_NULL); }
    std::vector<MPI_Request>& operator[](std::size_t set) { return requests_[set]; }

private:
    std::vector<std::vector<MPI_Request>> requests_;
};

class Persistent final : public Nonblocking {
public:
    explicit Persistent(const Setting& setting) : Nonblocking(setting, false), described_(sets().size()) {
        together(comm(), [&] {
            for (std::size_t set = 0; set < sets().size(); ++set) {
                describe(set);
            }
        });
    }

protected:
    void begin_receive(std::size_t, MPI_Request& request) override { check(MPI_Start(&request), "MPI_Start"); }
    void begin_send(std::size_t, MPI_Request& request) override { check(MPI_Start(&request), "MPI_Start"); }
    std::vector<MPI_Request>& requests() override { return described_[current()]; }

private:
    void describe(std::size_t set) {
        for (const Bound& m : sets()[set].in) {
            check(
                MPI_Recv_init(m.data, m.span.count(), m.span.type(), m.peer, m.tag, comm().get(), described_.next(set)),
                "MPI_Recv_init");
        }
        for (const Bound& m : sets()[set].out) {
            check(
                MPI_Send_init(m.data, m.span.count(), m.span.type(), m.peer, m.tag, comm().get(), described_.next(set)),
                "MPI_Send_init");
        }
    }

    DescribedRequests described_;
};

}  // namespace

std::unique_ptr<Exchange> make_nonblocking(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<Nonblocking>(setting, kind == ExchangeKind::overlap);
}

std::unique_ptr<Exchange> make_persistent(ExchangeKind, const Setting& setting) {
    return std::make_unique<Persistent>(setting);
}

// Messages that are described once, and leave piece by piece as their pieces are ready: MPI_Psend_init, MPI_Pready.
//
//     begin()      MPI_Startall     both sides are described, and nothing leaves yet
//     ready(i)     MPI_Pready       message i may leave, while others are still being put in their places
//     complete()   MPI_Waitall
//
// ready() tells of whole messages, so each has one partition.

#if MPI_VERSION >= 4
namespace {

class Partitioned final : public Exchange {
public:
    explicit Partitioned(const Setting& setting) : Exchange(setting, Memory::own), described_(sets().size()) {
        together(comm(), [&] {
            for (std::size_t set = 0; set < sets().size(); ++set) {
                describe(set, sets()[set].in, MPI_Precv_init, "MPI_Precv_init");
                describe(set, sets()[set].out, MPI_Psend_init, "MPI_Psend_init");
            }
        });
    }

    void ready(std::size_t index) override {
        check(MPI_Pready(0, described_[current()][in().size() + index]), "MPI_Pready");
    }

protected:
    void post() override {
        auto& requests = described_[current()];
        check(MPI_Startall(static_cast<int>(requests.size()), requests.data()), "MPI_Startall");
    }

    void move(const Arrived& arrived) override {
        auto& requests = described_[current()];
        check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        deliver_all(arrived);
    }

private:
    template <class Init>
    void describe(std::size_t set, const std::vector<Bound>& messages, Init init, const char* call) {
        for (const Bound& m : messages) {
            check(init(m.data, 1, m.span.count(), m.span.type(), m.peer, m.tag, comm().get(), MPI_INFO_NULL,
                       described_.next(set)),
                  call);
        }
    }

    DescribedRequests described_;  ///< of each set: receives, then messages that are sent
};

}  // namespace

std::unique_ptr<Exchange> make_partitioned(ExchangeKind, const Setting& setting) {
    return std::make_unique<Partitioned>(setting);
}

#else

std::unique_ptr<Exchange> make_partitioned(ExchangeKind, const Setting& setting) {
    together(setting.comm, [] {
        throw UsageError("exchange 'partitioned' needs MPI 4, but this is " + library_version() +
                         "; use persistent or nonblocking");
    });
    return nullptr;
}

#endif

std::unique_ptr<Exchange> make_turns(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<Turns>(kind, setting);
}

}  // namespace tilewise::mpi
