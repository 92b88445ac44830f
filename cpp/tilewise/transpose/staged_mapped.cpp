// From pages to pages: where both files fit the page cache, nothing is copied but the numbers themselves, once.
//
//     input, mapped                    result, mapped
//     [ . . . . . . . . ]  panel of    [ . # # . ]      a thread takes a strip: as many columns of a panel as make
//     [ # # # # # # # # ]  rows        [ . # # . ]      some lines of the cache, so that it writes runs of two
//     [ # # # # # # # # ]              [ . # # . ]      pages to each of as many rows of the result
//     [ . . . . . . . . ]              [ . # # . ]
//
// Pages are let go panel by panel, so that they do not count as the ranks' memory.
#include "tilewise/base/threads.hpp"
#include "tilewise/io/mapped.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"
#include "tilewise/transpose/staged.hpp"

namespace tilewise::transpose {
namespace {

constexpr std::int64_t run_bytes = 8 << 10;    // of a row of the result that one strip writes
constexpr std::int64_t strip_bytes = 2 << 10;  // of each row of the input that one strip reads

}  // namespace

void turn_mapped(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    const std::int64_t rows = from.stored_rows(), columns = from.stored_columns();
    const auto size = size_of(from.dtype);
    const auto item = static_cast<std::int64_t>(size);
    const std::int64_t panel = std::max<std::int64_t>(1, run_bytes / item),
                       strip = std::max<std::int64_t>(1, strip_bytes / item);
    // A window of the input has as many bytes as its turned pages; both are resident, and each fault brings neighbours.
    const std::int64_t window = std::max(strip, options.stage_bytes / 2 / (panel * item) / strip * strip);
    const grid::Range mine = grid::Partition((rows + panel - 1) / panel, context.comm.size())[context.comm.rank()];
    Counters& count = context.ledger.count();
    const Timed timed(context.ledger, Phase::compute, "transpose");
    mpi::together(context.comm, [&] {
        if (mine.size() == 0) {
            return;
        }
        const io::Mapping source(from, io::Mapping::Access::read), result(to, io::Mapping::Access::write);
        for (std::int64_t index = mine.begin; index < mine.end; ++index) {
            const grid::Range down{index * panel, std::min((index + 1) * panel, rows)};
            for (std::int64_t begin = 0; begin < columns; begin += window) {
                const std::int64_t end = std::min(begin + window, columns);
                parallel_tasks(context.threads, (end - begin + strip - 1) / strip, [&](std::int64_t task, int) {
                    const std::int64_t first = begin + task * strip, last = std::min(first + strip, end);
                    const std::byte* in = source.data() + (down.begin * columns + first) * item;
                    std::byte* out = result.data() + (first * rows + down.begin) * item;
                    turn_items(options, in, columns * item, down.size(), last - first, size, out, rows * item, 1);
                });
                source.release(source.data() + down.begin * columns * item, source.data() + down.end * columns * item);
                result.release(result.data() + begin * rows * item, result.data() + end * rows * item);
            }
            const std::int64_t bytes = down.size() * columns * item;
            count.read += bytes;
            count.useful += bytes;
            count.written += bytes;
            context.report(Phase::compute,
                           static_cast<double>(index + 1 - mine.begin) / static_cast<double>(mine.size()));
        }
        count.io_calls += 2;
    });
}

}  // namespace tilewise::transpose
