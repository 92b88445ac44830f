// From the page cache to the page cache: the input is read where it lies, and the result is written from its beginning
// to its end.
//
//     input, mapped                 in memory                    result
//     [ . . . # # . . . ]           [ # # # # # # # # ]          [ . . . . . . . . ]
//     [ . . . # # . . . ]     ──▶   [ # # # # # # # # ]    ──▶   [ # # # # # # # # ]
//     [ . . . # # . . . ]                                        [ # # # # # # # # ]
//     [ . . . # # . . . ]                                        [ . . . . . . . . ]
//
// A thread takes a strip: as many columns as fill a part of the cache. Transposed they are whole rows of the result:
// one long write.
//
// Whatever is written is complete: pages that were written in pieces were flushed, and made dirty again, many times.
#include <algorithm>
#include <mutex>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/mapped.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"
#include "tilewise/transpose/staged.hpp"

namespace tilewise::transpose {
namespace {

constexpr std::int64_t cache_line = 64;
constexpr std::int64_t worth_threads = std::int64_t{4} << 20;  // bytes
// A longer call makes the page cache look for longer runs of free pages, which may first have to be put together or
// come fresh from the host: between 0.2 and 3.4 s for 2 GiB where calls of 128 KiB always took 0.3 to 0.5.
constexpr std::int64_t write_bytes = std::int64_t{128} << 10;

std::int64_t write_in_calls(const io::PosixFile& file, const std::byte* data, std::int64_t bytes, std::int64_t offset) {
    std::int64_t calls = 0;
    for (std::int64_t at = 0; at < bytes; at += write_bytes) {
        calls += file.write(data + at, std::min(write_bytes, bytes - at), offset + at);
    }
    return calls;
}

}  // namespace

void turn_mapped(Context& context, const io::Region& from, const io::Region& to, const Options& options,
                 io::Output& output) {
    const std::int64_t rows = from.stored_rows(), columns = from.stored_columns();
    const auto size = size_of(from.dtype);
    const auto item = static_cast<std::int64_t>(size);
    const std::int64_t line = std::max<std::int64_t>(1, cache_line / item);
    const std::int64_t width =
        std::clamp(mapped_strip_bytes / (rows * item) / line * line, std::min(line, columns), columns);
    const grid::Range mine = grid::Partition((columns + width - 1) / width, context.comm.size())[context.comm.rank()];
    const Timed timed(context.ledger, Phase::output, Step::file, "turn and write " + to.name);
    mpi::together(context.comm, [&] {
        if (mine.size() == 0) {
            return;
        }
        const io::Mapping source(from, io::Mapping::Access::read);
        io::PosixFile result(to.path, to.name, io::PosixFile::Mode::write);
        const int threads = from.bytes() < worth_threads ? 1 : context.threads;
        std::vector<Buffer> strips(static_cast<std::size_t>(threads));
        std::int64_t calls = 0;
        std::mutex
            // the file system lets one thread write at a time; the other shall turn meanwhile, not wait at every call
            writing;
        parallel_tasks(threads, mine.size(), [&](std::int64_t task, int thread) {
            Buffer& strip = strips[static_cast<std::size_t>(thread)];
            if (strip.bytes() == 0) {
                strip = Buffer(static_cast<std::size_t>(width * rows * item));
            }
            const std::int64_t j = (mine.begin + task) * width, some = std::min(width, columns - j);
            turn_items(options, source.data() + j * item, columns * item, rows, some, size, strip.data(), rows * item,
                       1);
            const std::lock_guard lock(writing);
            calls += write_in_calls(result, strip.data(), some * rows * item, to.offset + j * rows * item);
            output.note(grid::Block{{j, j + some}, {0, rows}}, strip.data());
            if (thread == 0) {
                context.report(Phase::output, static_cast<double>(task + 1) / static_cast<double>(mine.size()));
            }
        });
        result.close();
        Counters& count = context.ledger.count();
        const std::int64_t bytes = (std::min(mine.end * width, columns) - mine.begin * width) * rows * item;
        count.read += bytes;
        count.useful += bytes;
        count.written += bytes;
        count.io_calls += calls + 1;
    });
}

}  // namespace tilewise::transpose
