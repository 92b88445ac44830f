// Reading a block and turning parts of it; the algorithm `reread` needs nothing else.
#include "tilewise/transpose/local.hpp"

#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::transpose {

Loaded::Loaded(Context& context, const io::Region& from, const io::Region& to, const Options& options,
               const std::function<grid::Block(int rank)>& block_of)
    : options_(options),
      threads_(context.threads),
      transposed_(is_transposed(from, to)),
      item_(size_of(from.dtype)),
      block_(block_of(context.comm.rank())) {
    const Timed timed(context.ledger, Phase::input, "input");
    const io::Input input(context, from, options.read, options.hints);
    const std::int64_t size = block_.size();
    mpi::together(context.comm, [&] { data_ = Buffer(static_cast<std::size_t>(size) * item_); });
    input.load_raw(context, as_wanted(to, block_of), data_.data());
    if (from.swap_bytes != to.swap_bytes) {
        const Timed converting(context.ledger, Phase::input, Step::convert, "swap bytes");
        const std::size_t width = facts(from.dtype).component;
        kernel::swap_bytes(data_.data(), data_.data(), size * static_cast<std::int64_t>(item_ / width), width);
    }
}

void Loaded::turn(const grid::Block& part, std::byte* out, std::int64_t stride) const {
    const auto item = static_cast<std::int64_t>(item_);
    const std::int64_t down = part.rows.begin - block_.rows.begin, right = part.columns.begin - block_.columns.begin;
    if (!transposed_) {
        const std::int64_t from_stride = block_.columns.size() * item, row_bytes = part.columns.size() * item;
        const std::byte* from = data_.data() + down * from_stride + right * item;
        mpi::copy_rows(from, from_stride, out, stride, part.rows.size(), row_bytes);
        return;
    }
    const std::int64_t from_stride = block_.rows.size() * item;
    const std::byte* from = data_.data() + right * from_stride + down * item;
    turn_items(options_, from, from_stride, part.columns.size(), part.rows.size(), item_, out, stride, threads_);
}

void turn_items(const Options& options, const std::byte* from, std::int64_t from_stride, std::int64_t rows,
                std::int64_t columns, std::size_t item, std::byte* to, std::int64_t to_stride, int threads) {
    constexpr std::int64_t large = std::int64_t{16} << 20;  // the measured tile is one for what no cache holds
    if (options.plain) {
        kernel::plain_transpose(from, from_stride, rows, columns, item, to, to_stride);
    } else if (options.tile && rows * columns * static_cast<std::int64_t>(item) >= large) {
        kernel::transpose(from, from_stride, rows, columns, item, to, to_stride, threads, *options.tile);
    } else {
        kernel::transpose(from, from_stride, rows, columns, item, to, to_stride, threads);
    }
}

// Algorithm `reread`: nothing travels between ranks; each reads the part of the input whose transpose it writes.
//
//     input   [ · 1 · · ]        result   [ · · · · ]      rank 1 on 2×2 ranks: one view of the input,
//             [ · 1 · · ]                 [ 1 1 · · ]      another of the result; the file system does
//             [ · · · · ]                 [ · · · · ]      what messages do in `swap`
//             [ · · · · ]                 [ · · · · ]
//
// What the second report's critique proposes (section VIII.E).
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
