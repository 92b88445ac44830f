// Algorithm `swap`: ranks read blocks of the input, turn them, and exchange them, so that each writes the block of the
// result that lies where its own lay.
//
//     input        turned by         exchanged, and
//                  their ranks       written
//     [ 0 | 1 ]    [ 0ᵀ | 2ᵀ ]       rank 1 has block (1, 0) of the result and wants block (0, 1), which rank 2 has:
//     [ 2 | 3 ]    [ 1ᵀ | 3ᵀ ]       on a square grid they are partners, on others a rank has several
//
// The collective scheme of the second report (section V), for any shape and any number of ranks.
#include "tilewise/transpose/redistribute.hpp"

namespace tilewise::transpose {

Outcome run_swap(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    const grid::Partition rows(to.stored_rows(), options.grid.rows, options.remainder),
        columns(to.stored_columns(), options.grid.columns, options.remainder);
    std::vector<grid::Block> wanted;
    for (int rank = 0; rank < options.grid.size(); ++rank) {
        const grid::Place place = options.grid.place(rank);
        wanted.push_back({rows[place.row], columns[place.column]});
    }
    const Pieces pieces(held_blocks(from, to, options), std::move(wanted));
    Outcome outcome;
    std::optional<Assembled> result;
    {
        const Loaded loaded(context, from, to, options, [&](int rank) { return pieces.held(rank); });
        outcome.working = loaded.block().size() > 0;
        result.emplace(context, to, pieces.wanted(context.comm.rank()));
        outcome.samples = redistribute(context, to, options, pieces, loaded, *result);
    }
    const Timed writing(context.ledger, Phase::output, "output");
    io::Output output(context, to, options.write, options.hints, false);
    output.store(context, as_wanted(to, [&](int rank) { return pieces.wanted(rank); }), result->data());
    output.finish(context, options.sync);
    return outcome;
}

}  // namespace tilewise::transpose
