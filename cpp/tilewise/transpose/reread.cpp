// Algorithm `reread`: nothing travels between ranks; each reads the part of the input whose transpose it writes.
//
//     input   [ · 1 · · ]        result   [ · · · · ]      rank 1 on 2×2 ranks: one view of the input,
//             [ · 1 · · ]                 [ 1 1 · · ]      another of the result; the file system does
//             [ · · · · ]                 [ · · · · ]      what messages do in `swap`
//             [ · · · · ]                 [ · · · · ]
//
// What the second report's critique proposes (section VIII.E).
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"

namespace tilewise::transpose {

Outcome run_reread(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    const bool transposed = is_transposed(from, to);
    // The grid lies over the input; over the result it is transposed with it.
    const grid::Partition rows(to.stored_rows(), transposed ? options.grid.columns : options.grid.rows,
                               options.remainder),
        columns(to.stored_columns(), transposed ? options.grid.rows : options.grid.columns, options.remainder);
    const auto block_of = [&](int rank) -> grid::Block {
        const grid::Place place = options.grid.place(rank);
        return {rows[transposed ? place.column : place.row], columns[transposed ? place.row : place.column]};
    };
    const Loaded loaded(context, from, to, options, block_of);
    const std::int64_t item = static_cast<std::int64_t>(size_of(to.dtype));
    const grid::Block mine = loaded.block();
    Buffer result;
    mpi::together(context.comm, [&] { result = Buffer(static_cast<std::size_t>(mine.size() * item)); });
    Outcome outcome;
    outcome.samples = mpi::repeat(context, options.warmup, options.repeat, [&](bool) {
        const Timed timed(context.ledger, Phase::compute, "transpose");
        mpi::together(context.comm, [&] { loaded.turn(mine, result.data(), mine.columns.size() * item); });
    });
    const Timed writing(context.ledger, Phase::output, "output");
    io::Output output(context, to, options.write, options.hints, false);
    output.store(context, as_wanted(to, block_of), result.data());
    output.finish(context, options.sync);
    outcome.working = mine.size() > 0;
    return outcome;
}

}  // namespace tilewise::transpose
