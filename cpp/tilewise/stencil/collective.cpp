// One neighbourhood collective for the whole margin: the ranks and their neighbours are a graph, with an edge for every piece.
//
// Ranks keep their numbers (no reordering by MPI): who sits where was decided when they were placed, and their blocks are read from files by rank.
#include <optional>

#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/parcels.hpp"

namespace tilewise::stencil {
namespace {

using mpi::check;

class Collective final : public Exchange {
public:
    explicit Collective(const Setting& setting) : Exchange(setting) {
        mpi::together(setting_.context.comm, [&] {
            sent_ = Buffer(Parcels::bytes_of(setting_, outgoing()));
            received_ = Buffer(Parcels::bytes_of(setting_, incoming()));
            out_.emplace(setting_, outgoing(), sent_.data());
            in_.emplace(setting_, incoming(), received_.data());
        });
        // Both lists ascend in the side of the receiver's margin, so that several edges between two ranks are told apart.
        const std::vector<int> from = peers(incoming()), to = peers(outgoing());
        check(MPI_Dist_graph_create_adjacent(comm(), static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                             static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                             graph_.out()),
              "MPI_Dist_graph_create_adjacent");
        check(MPI_Comm_set_errhandler(graph_.get(), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }

protected:
    void receive(int which) override {
        out_->pack(which);
        const Lists out(*out_, which), in(*in_, which);
        check(MPI_Neighbor_alltoallw(out.base, out.counts.data(), out.places.data(), out.types.data(), in.base,
                                     in.counts.data(), in.places.data(), in.types.data(), graph_.get()),
              "MPI_Neighbor_alltoallw");
        in_->unpack(which);
    }

private:
    struct Lists {
        Lists(const Parcels& parcels, int which) {
            for (std::size_t i = 0; i < parcels.size(); ++i) {
                const Message m = parcels.message(i, which);
                base = i == 0 ? m.address : base;
                counts.push_back(m.count);
                places.push_back(m.address - base);
                types.push_back(m.type);
            }
        }

        std::byte* base = nullptr;
        std::vector<int> counts;
        std::vector<MPI_Aint> places;
        std::vector<MPI_Datatype> types;
    };

    static std::vector<int> peers(const std::vector<Piece>& pieces) {
        std::vector<int> ranks;
        for (const Piece& piece : pieces) {
            ranks.push_back(piece.peer);
        }
        return ranks;
    }

    Buffer sent_, received_;
    std::optional<Parcels> out_, in_;
    mpi::Comm graph_;
};

}  // namespace

std::unique_ptr<Exchange> make_collective(const Setting& setting) { return std::make_unique<Collective>(setting); }

}  // namespace tilewise::stencil
