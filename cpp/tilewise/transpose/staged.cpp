// Algorithm `staged`: the matrix streams through a bounded amount of memory, whatever its size; ranks work on parts of
// their own and never wait for each other.
//
//     input   [ 0 | 1 | 2 ]      result   [ 0ᵀ | 3ᵀ ]      tile after tile; while tile 1 is turned and written,
//             [ 3 | 4 | 5 ]               [ 1ᵀ | 4ᵀ ]      tile 2 is being read
//                                         [ 2ᵀ | 5ᵀ ]
//
// Two engines for plain files (turn_mapped, turn_tiles). What they cannot do (texts, tiles, generated matrices, any
// other way to read or write) goes band after band as conversions do.
#include "tilewise/transpose/staged.hpp"

#include "tilewise/convert/convert.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::transpose {
namespace {

using Kind = io::StrategyKind;

bool in_tiles(Kind strategy) { return strategy == Kind::positioned || strategy == Kind::uncached; }

void in_bands(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    convert::convert(context, from, to,
                     {.read = options.read,
                      .write = options.write,
                      .hints = options.hints,
                      .grid = {context.comm.size(), 1},
                      .band_bytes = options.stage_bytes,
                      .sync = options.sync,
                      .read_back = false});
}

}  // namespace

bool is_plain_turn(const io::Region& from, const io::Region& to) {
    return from.is_one_file() && to.is_one_file() && is_transposed(from, to) && from.bytes() > 0;
}

Outcome run_staged(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    const bool mapped =
        options.read == Kind::mapped && options.write == Kind::positioned && from.swap_bytes == to.swap_bytes;
    const bool tiles = in_tiles(options.read) && in_tiles(options.write);
    if (!is_plain_turn(from, to) || (!mapped && !tiles)) {
        in_bands(context, from, to, options);
        return {};
    }
    {
        const Timed timed(context.ledger, Phase::input, "open");
        io::check_file(context, from);
    }
    io::Output output = [&] {
        const Timed timed(context.ledger, Phase::output, "output");
        return io::Output(context, to, options.write, options.hints, false);
    }();
    Outcome outcome;
    if (mapped) {
        turn_mapped(context, from, to, options, output);
    } else {
        outcome.resumed = turn_tiles(context, from, to, options, output);
    }
    {
        const Timed timed(context.ledger, Phase::input, "check size");
        io::check_file(context, from);
    }
    const Timed timed(context.ledger, Phase::output, "output");
    output.finish(context, options.sync);
    return outcome;
}

}  // namespace tilewise::transpose
