// Reduces each rank's share of rows to it, in pieces that bound what MPI buffers and keep its counts small.
#include "tilewise/multiply/layers.hpp"

#include <algorithm>

#include "tilewise/mpi/datatype.hpp"

namespace tilewise::multiply {

void add_layers(Context& context, const grid::Layout& layout, Dtype dtype, std::byte* c) {
    if (layout.copies() == 1) {
        return;
    }
    const Timed timed(context.ledger, Phase::exchange, "add layers");
    const int rank = context.comm.rank();
    const bool adds = layout.has_place(rank);
    const mpi::Communicator stack =
        context.comm.split(adds ? layout.in_layer(rank) : layout.grid().size(), layout.layer(rank));
    if (!adds) {  // it had to take part in the split
        return;
    }
    const auto item = static_cast<std::int64_t>(size_of(dtype));
    const grid::Block whole = layout.c(rank);
    const MPI_Datatype type =
        mpi::type_of(dtype == Dtype::int64 ? Dtype::uint64 : dtype);  // the same bits, and it may wrap
    const std::int64_t piece = layer_piece_bytes / item;
    for (int layer = 0; layer < layout.copies(); ++layer) {
        const grid::Block share = layout.c_owned(layer * layout.grid().size() + layout.in_layer(rank));
        std::byte* data = c + (share.rows.begin - whole.rows.begin) * whole.columns.size() * item;
        for (std::int64_t begin = 0; begin < share.size(); begin += piece) {
            const auto count = static_cast<int>(std::min(piece, share.size() - begin));
            std::byte* place = data + begin * item;
            const bool mine = layer == stack.rank();
            mpi::check(MPI_Reduce(mine ? MPI_IN_PLACE : place, place, count, type, MPI_SUM, layer, stack.get()),
                       "MPI_Reduce");
            if (mine) {
                context.ledger.count().exchanged += count * item * (layout.copies() - 1);
                context.ledger.count().messages += layout.copies() - 1;
            }
        }
    }
}

}  // namespace tilewise::multiply
