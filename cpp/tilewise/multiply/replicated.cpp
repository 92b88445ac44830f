// `replicated`: `copies` layers of a grid; layer l multiplies its own share of k, and the layers' results are added at
// the end.
//
//     copies = 2, k = [ k0 | k1 ]
//
//        layer 0:  C' = A(:, k0)·B(k0, :)   ┐
//        layer 1:  C" = A(:, k1)·B(k1, :)   ┘  C = C' + C"
//
// Each rank of a stack of layers ends up with its share of the rows of the sum, and writes that.
//
// The textbook's layer 0 owns A and B and sends copies to the others; here each layer reads its own share from the
// file.
//
// The sum is reduced in pieces that bound what MPI buffers and keep its counts small.
#include <algorithm>
#include <string>

#include "tilewise/mpi/datatype.hpp"
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {

std::optional<std::string> Replicated::refuses(const Arrangement& arrangement) {
    if (arrangement.copies < 2) {
        return "replicated needs at least 2 copies of its grid, and so at least 2 ranks; summa takes one";
    }
    if (arrangement.grid.size() * arrangement.copies > arrangement.ranks) {
        return "replicated needs as many ranks as grid × copies or more, not " + std::to_string(arrangement.ranks) +
               " for " + std::to_string(arrangement.grid.rows) + "x" + std::to_string(arrangement.grid.columns) +
               " × " + std::to_string(arrangement.copies);
    }
    return std::nullopt;
}

grid::Layout Replicated::layout(const Arrangement& arrangement) { return Summa::layout(arrangement); }

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
