// One collective call for a whole set: over neighbours, in a graph that has an edge for every message, or over all
// ranks.
//
// Ranks keep their numbers (no reordering by MPI): who sits where was decided when they were placed, and their blocks
// are read from files by rank.
#include "tilewise/base/work.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/mpi.hpp"

namespace tilewise::mpi {
namespace {

class Neighbours final : public Exchange {
public:
    explicit Neighbours(const Setting& setting) : Exchange(setting, Memory::own) {
        if (is_simulated) {
            throw UsageError(
                "exchange 'collective' needs graphs of neighbours (MPI_Dist_graph_create_adjacent), which " +
                library_version() + " lacks; use persistent or nonblocking");
        }
        // Both lists are in the order of the tags, so that several edges between two ranks are told apart.
        const std::vector<int> from = peers(in()), to = peers(out());
        check(MPI_Dist_graph_create_adjacent(comm().get(), static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                             static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                             graph_.out()),
              "MPI_Dist_graph_create_adjacent");
        check(MPI_Comm_set_errhandler(graph_.get(), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }

protected:
    void move(const Arrived& arrived) override {
        const Lists to(out()), from(in());
        check(MPI_Neighbor_alltoallw(to.base, to.counts.data(), to.places.data(), to.types.data(), from.base,
                                     from.counts.data(), from.places.data(), from.types.data(), graph_.get()),
              "MPI_Neighbor_alltoallw");
        deliver_all(arrived);
    }

private:
    struct Lists {
        explicit Lists(const std::vector<Bound>& messages) {
            for (const Bound& m : messages) {
                base = counts.empty() ? m.data : base;
                counts.push_back(m.span.count());
                places.push_back(m.data - base);
                types.push_back(m.span.type());
            }
        }

        std::byte* base = nullptr;
        std::vector<int> counts;
        std::vector<MPI_Aint> places;
        std::vector<MPI_Datatype> types;
    };

    static std::vector<int> peers(const std::vector<Bound>& messages) {
        std::vector<int> ranks;
        for (const Bound& m : messages) {
            ranks.push_back(m.peer);
        }
        return ranks;
    }

    Comm graph_;
};

#if MPI_VERSION >= 4
using Count = MPI_Count;
using Displacement = MPI_Aint;
constexpr auto all_to_all = MPI_Alltoallv_c;
#else
using Count = int;
using Displacement = int;
constexpr auto all_to_all = MPI_Alltoallv;
#endif

/// At most one message from one rank to another; none has a place of its own.
class AllToAll final : public Exchange {
public:
    explicit AllToAll(const Setting& setting)
        : Exchange(setting, Memory::own),
          to_(out(), comm().size()),
          from_(in(), comm().size()) {}

protected:
    void move(const Arrived& arrived) override {
        std::byte* received = in().empty() ? nullptr : in().front().data;
        check(all_to_all(memory(), to_.counts.data(), to_.places.data(), type(), received, from_.counts.data(),
                         from_.places.data(), type(), comm().get()),
              "MPI_Alltoallv");
        deliver_all(arrived);
    }

private:
    struct Lists {
        Lists(const std::vector<Bound>& messages, int ranks)
            : counts(static_cast<std::size_t>(ranks)),
              places(static_cast<std::size_t>(ranks)) {
            std::int64_t before = 0;
            for (const Bound& m : messages) {
                counts[static_cast<std::size_t>(m.peer)] = static_cast<Count>(m.size());
                places[static_cast<std::size_t>(m.peer)] = static_cast<Displacement>(before);
                before += m.size();
            }
            if (before != static_cast<std::int64_t>(static_cast<Count>(before))) {
                throw UsageError(
                    "--exchange collective: this MPI's Alltoallv takes at most 2^31 numbers per rank; use nonblocking");
            }
        }

        std::vector<Count> counts;
        std::vector<Displacement> places;
    };

    Lists to_, from_;
};

}  // namespace

std::unique_ptr<Exchange> make_collective(ExchangeKind, const Setting& setting) {
    if (setting.all_to_all) {
        return std::make_unique<AllToAll>(setting);
    }
    return std::make_unique<Neighbours>(setting);
}

}  // namespace tilewise::mpi
