// Messages that are described once and started again at every exchange.
#include "tilewise/mpi/exchange/described.hpp"
#include "tilewise/mpi/exchange/nonblocking.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

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

std::unique_ptr<Exchange> make_persistent(ExchangeKind, const Setting& setting) {
    return std::make_unique<Persistent>(setting);
}

}  // namespace tilewise::mpi
