// Send and receive in turns: the receive of a turn is posted first, then its message is sent, so that nobody waits in
// a circle.
//
//     turn (tag, and place among messages of that tag)     synchronous   Irecv, Ssend, Wait
//                                                          blocking      Irecv, Send, Wait
#include <algorithm>
#include <numeric>

#include "tilewise/mpi/exchange/exchange.hpp"

namespace tilewise::mpi {
namespace {

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

}  // namespace

std::unique_ptr<Exchange> make_turns(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<Turns>(kind, setting);
}

}  // namespace tilewise::mpi
