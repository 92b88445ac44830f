// Messages that are described once, and leave piece by piece as their pieces are ready: MPI_Psend_init, MPI_Pready.
//
//     begin()      MPI_Startall     both sides are described, and nothing leaves yet
//     ready(i)     MPI_Pready       message i may leave, while others are still being put in their places
//     complete()   MPI_Waitall
//
// ready() tells of whole messages, so each has one partition.
#include "tilewise/mpi/exchange/described.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {

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

}  // namespace tilewise::mpi
