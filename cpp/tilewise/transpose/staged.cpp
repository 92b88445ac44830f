// Algorithm `staged`: the matrix streams through a bounded amount of memory, whatever its size; ranks work on parts of
// their own and never wait for each other.
//
//     input   [ 0 | 1 | 2 ]      result   [ 0ᵀ | 3ᵀ ]      tile after tile; while tile 1 is turned and written,
//             [ 3 | 4 | 5 ]               [ 1ᵀ | 4ᵀ ]      tile 2 is being read
//                                         [ 2ᵀ | 5ᵀ ]
//
// Two engines for plain files (turn_mapped, turn_tiles). What they cannot do (texts, tiles, generated matrices, any
// other way to read or write) goes band after band as conversions do.
// Everything below is in the order in which the input's file stores its numbers.
//
// Design: docs/design/transposition.md
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>
#include <mutex>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/convert/convert.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/io/strategy/uncached.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/transpose/local.hpp"

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

/// From the page cache to the page cache: the input is read where it lies, and the result is written from its beginning
/// to its end.
///
///     input, mapped                 in memory                    result
///     [ . . . # # . . . ]           [ # # # # # # # # ]          [ . . . . . . . . ]
///     [ . . . # # . . . ]     ──▶   [ # # # # # # # # ]    ──▶   [ # # # # # # # # ]
///     [ . . . # # . . . ]                                        [ # # # # # # # # ]
///     [ . . . # # . . . ]                                        [ . . . . . . . . ]
///
/// A thread takes a strip: as many columns as fill a part of the cache. Transposed they are whole rows of the result:
/// one long write.
///
/// Whatever is written is complete: pages that were written in pieces were flushed, and made dirty again, many times.
///
/// Out of mapped pages, strip by strip, in whole rows of the result. Memory: a strip for each thread. @note Collective.
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
        const io::Mapping source(from, io::Direction::read);
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

/// Rows and columns of the input in one tile.
struct TileShape {
    std::int64_t rows = 1, columns = 1;
};

/// The tile that reads and writes in pieces as long as can be within `bytes` of memory; borders on pages where those of
/// the matrix are. Where the matrix is narrower than a square tile, the tile takes its whole width, and more of the
/// other side.
TileShape tile_shape(std::int64_t rows, std::int64_t columns, std::int64_t item, std::int64_t bytes) {
    const auto whole_pages = [&](std::int64_t count, std::int64_t most) {
        const std::int64_t unit = most * item % page == 0 ? std::max<std::int64_t>(1, page / item) : 1;
        return count >= most ? most : std::max<std::int64_t>(1, count > unit ? count / unit * unit : count);
    };
    const std::int64_t numbers = std::max<std::int64_t>(1, bytes / item);
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(numbers)));
    if (columns <= side) {
        return {whole_pages(numbers / std::max<std::int64_t>(1, columns), rows), std::max<std::int64_t>(1, columns)};
    }
    if (rows <= side) {
        return {std::max<std::int64_t>(1, rows), whole_pages(numbers / std::max<std::int64_t>(1, rows), columns)};
    }
    return {whole_pages(side, rows), whole_pages(side, columns)};
}

constexpr std::int64_t chunk = std::int64_t{1} << 20;  // of what lies in one piece, to be split over threads

/// A rectangle of a stored matrix, dense in memory.
class TileMemory {
public:
    TileMemory(std::int64_t offset, std::int64_t row_bytes, std::int64_t piece_bytes, std::int64_t rows)
        : row_bytes_(row_bytes),
          piece_bytes_(piece_bytes),
          rows_(rows),
          whole_(piece_bytes == row_bytes),
          aligned_(whole_ || (row_bytes % page == 0 && piece_bytes % page == 0 && offset % page == 0)),
          lead_(offset % page) {}

    std::int64_t stride() const { return piece_bytes_; }
    std::int64_t lead() const { return lead_; }
    /// Whether every piece begins at the same place within a page as in the file, and what is around it in its pages
    /// belongs to no other piece.
    bool is_aligned() const { return aligned_; }
    /// Bytes of memory, a page on either side included.
    std::int64_t bytes() const { return rows_ * piece_bytes_ + 3 * page; }

    /// Calls move(file_offset, bytes, memory_offset, thread) for every piece of the tile whose first byte is at
    /// `offset`; several at once.
    template <class Move> void for_pieces(int threads, std::int64_t offset, const Move& move) const {
        if (whole_) {
            // Cut at whole pages of the file.
            const std::int64_t total = rows_ * piece_bytes_, first = chunk - offset % page;
            const std::int64_t count = total <= first ? 1 : 1 + (total - first + chunk - 1) / chunk;
            parallel_tasks(threads, count, [&](std::int64_t task, int thread) {
                const std::int64_t begin = task == 0 ? 0 : first + (task - 1) * chunk;
                const std::int64_t end = std::min(total, first + task * chunk);
                move(offset + begin, end - begin, begin, thread);
            });
            return;
        }
        parallel_tasks(threads, rows_, [&](std::int64_t row, int thread) {
            move(offset + row * row_bytes_, piece_bytes_, row * piece_bytes_, thread);
        });
    }

private:
    std::int64_t row_bytes_, piece_bytes_, rows_;
    bool whole_, aligned_;
    std::int64_t lead_;
};

/// What goes through a buffer on whole pages, one for each request in flight; it has memory once there was something.
class Bounces {
public:
    explicit Bounces(int count) : buffers_(static_cast<std::size_t>(count)) {}

    /// Calls move(begin, bytes, memory) for parts of a piece at `offset` in the file; memory begins at the same place
    /// within a page, and has room for all of the pages.
    template <class Move> void for_parts(int thread, std::int64_t offset, std::int64_t bytes, const Move& move) {
        Buffer& buffer = buffers_[static_cast<std::size_t>(thread)];
        if (buffer.bytes() == 0) {
            buffer = Buffer(static_cast<std::size_t>(bounce_bytes + 2 * page));
        }
        for (std::int64_t begin = 0; begin < bytes;) {
            const std::int64_t at = (offset + begin) % page, some = std::min(bytes - begin, bounce_bytes - at);
            move(begin, some, buffer.data() + at);
            begin += some;
        }
    }

private:
    std::vector<Buffer> buffers_;
};

class Tiles {
public:
    Tiles(Context& context, const io::Region& from, const io::Region& to, const Options& options, io::Output& result,
          io::Journal* journal)
        : context_(context),
          from_(from),
          to_(to),
          options_(options),
          checked_(result),
          journal_(journal),
          turn_(context.comm.rank()),
          item_(static_cast<std::int64_t>(size_of(from.dtype))),
          shape_(tile_shape(from.stored_rows(), from.stored_columns(), item_, options.stage_bytes)),
          down_((from.stored_rows() + shape_.rows - 1) / shape_.rows),
          count_((from.stored_columns() + shape_.columns - 1) / shape_.columns * down_),
          in_flight_(std::max(2, requests_in_flight / context.comm.size())),
          arriving_(in_flight_),
          leaving_(in_flight_) {}

    /// Whether it came to its end, and was not asked to stop before. Not collective, but for ranks that share a queue.
    bool operator()(mpi::Queue* queue) {
        std::int64_t index = next(queue);
        if (index >= count_) {
            return !stopped_;
        }
        open();
        std::future<void> reading = read(index, 0);
        for (int buffer = 0; index < count_; buffer = 1 - buffer) {
            {
                const Timed timed(context_.ledger, Phase::input, Step::file, "wait for tile of " + from_.name);
                reading.get();
            }
            const std::int64_t after = next(queue);
            if (after < count_) {
                reading = read(after, 1 - buffer);
            }
            turn(index, buffer);
            write(index);
            context_.report(Phase::output, static_cast<double>(index + 1) / static_cast<double>(count_));
            index = after;
        }
        if (direct_result_) {
            direct_result_->close();
        } else {
            result_->close();
        }
        Counters& count = context_.ledger.count();
        count.read += read_;
        count.io_calls += calls_;
        return !stopped_;
    }

private:
    /// The tile that is this rank's next, `count_` or more where none is left.
    std::int64_t next(mpi::Queue* queue) {
        for (;;) {
            if (journal_ != nullptr && journal_->stop_asked()) {
                stopped_ = true;
                return count_;
            }
            const std::int64_t index = queue != nullptr ? queue->next() : turn_;
            turn_ += context_.comm.size();
            if (index >= count_ || journal_ == nullptr || !journal_->holds(result(tile(index)))) {
                return index;
            }
        }
    }
    static grid::Block result(const grid::Block& tile) { return {tile.columns, tile.rows}; }

    /// Rows and columns of the input.
    grid::Block tile(std::int64_t index) const {
        const std::int64_t row = index % down_ * shape_.rows, column = index / down_ * shape_.columns;
        return {{row, std::min(row + shape_.rows, from_.stored_rows())},
                {column, std::min(column + shape_.columns, from_.stored_columns())}};
    }
    std::int64_t input_offset(const grid::Block& tile) const {
        return from_.offset + (tile.rows.begin * from_.stored_columns() + tile.columns.begin) * item_;
    }
    std::int64_t output_offset(const grid::Block& tile) const {
        return to_.offset + (tile.columns.begin * from_.stored_rows() + tile.rows.begin) * item_;
    }
    TileMemory input_memory(const grid::Block& tile) const {
        return {input_offset(tile), from_.stored_columns() * item_, tile.columns.size() * item_, tile.rows.size()};
    }
    TileMemory output_memory(const grid::Block& tile) const {
        return {output_offset(tile), from_.stored_rows() * item_, tile.rows.size() * item_, tile.columns.size()};
    }

    void open() {
        const grid::Block largest{{0, shape_.rows}, {0, shape_.columns}};
        for (Buffer& buffer : input_) {
            buffer = Buffer(static_cast<std::size_t>(input_memory(largest).bytes()));
        }
        output_ = Buffer(static_cast<std::size_t>(output_memory(largest).bytes()));
        const bool past_cache = options_.read == io::StrategyKind::uncached;
        source_.emplace(from_.path, from_.name, io::PosixFile::Mode::read);
        if (past_cache) {
            direct_source_.emplace(from_.path, from_.name, io::PosixFile::Mode::read, io::PosixFile::Cache::bypassed);
        }
        source_bytes_ = source_->size();
        if (options_.write == io::StrategyKind::uncached) {
            direct_result_.emplace(to_.path, to_.name, io::PosixFile::Mode::write, page);
        } else {
            result_.emplace(to_.path, to_.name, io::PosixFile::Mode::write);
        }
    }

    std::future<void> read(std::int64_t index, int buffer) {
        return std::async(std::launch::async, [this, index, buffer] {
            const grid::Block part = tile(index);
            const TileMemory memory = input_memory(part);
            std::byte* data = input_[buffer].data() + page + memory.lead();
            memory.for_pieces(in_flight_, input_offset(part),
                              [&](std::int64_t offset, std::int64_t bytes, std::int64_t place, int thread) {
                                  if (!direct_source_ || memory.is_aligned()) {
                                      fetch(offset, bytes, data + place);
                                      return;
                                  }
                                  arriving_.for_parts(thread, offset, bytes,
                                                      [&](std::int64_t begin, std::int64_t some, std::byte* bounced) {
                                                          fetch(offset + begin, some, bounced);
                                                          std::memcpy(data + place + begin, bounced,
                                                                      static_cast<std::size_t>(some));
                                                      });
                              });
        });
    }

    /// Past the page cache whole pages are read; those at the ends bring bytes that others want, into the room around
    /// the piece.
    void fetch(std::int64_t offset, std::int64_t bytes, std::byte* data) {
        const std::int64_t begin = offset / page * page, end = (offset + bytes + page - 1) / page * page;
        if (direct_source_ && end <= source_bytes_) {
            calls_ += direct_source_->read(data - (offset - begin), end - begin, begin);
            read_ += end - begin;
        } else {
            calls_ += source_->read(data, bytes, offset);
            read_ += bytes;
        }
    }

    void turn(std::int64_t index, int buffer) {
        const Timed timed(context_.ledger, Phase::compute, "transpose");
        const grid::Block part = tile(index);
        const TileMemory in = input_memory(part), out = output_memory(part);
        const std::byte* from = input_[buffer].data() + page + in.lead();
        std::byte* to = output_.data() + page + out.lead();
        const auto size = static_cast<std::size_t>(item_);
        turn_items(options_, from, in.stride(), part.rows.size(), part.columns.size(), size, to, out.stride(),
                   context_.threads);
        if (from_.swap_bytes != to_.swap_bytes) {
            const std::size_t width = facts(from_.dtype).component;
            const std::int64_t components = part.rows.size() * item_ / static_cast<std::int64_t>(width);
            parallel_ranges(context_.threads, part.columns.size(), [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t row = begin; row < end; ++row) {
                    kernel::swap_bytes(to + row * out.stride(), to + row * out.stride(), components, width);
                }
            });
        }
        context_.ledger.count().useful += part.size() * item_;
    }

    void write(std::int64_t index) {
        const Timed timed(context_.ledger, Phase::output, Step::file, "write tile of " + to_.name);
        const grid::Block part = tile(index);
        const TileMemory memory = output_memory(part);
        const std::byte* data = output_.data() + page + memory.lead();
        memory.for_pieces(in_flight_, output_offset(part),
                          [&](std::int64_t offset, std::int64_t bytes, std::int64_t place, int thread) {
                              if (!direct_result_ || memory.is_aligned()) {
                                  calls_ += direct_result_ ? direct_result_->write(data + place, bytes, offset)
                                                           : result_->write(data + place, bytes, offset);
                                  return;
                              }
                              leaving_.for_parts(thread, offset, bytes,
                                                 [&](std::int64_t begin, std::int64_t some, std::byte* bounced) {
                                                     std::memcpy(bounced, data + place + begin,
                                                                 static_cast<std::size_t>(some));
                                                     calls_ += direct_result_->write(bounced, some, offset + begin);
                                                 });
                          });
        checked_.note(result(part), output_.data() + page + memory.lead());
        if (journal_ != nullptr) {
            journal_->wrote(result(part), data);
        }
        context_.ledger.count().written += part.size() * item_;
    }

    Context& context_;
    const io::Region &from_, &to_;
    const Options& options_;
    io::Output& checked_;
    io::Journal* journal_;
    std::int64_t turn_;  ///< without a queue: the next tile of this rank
    bool stopped_ = false;
    std::int64_t item_;
    TileShape shape_;
    std::int64_t down_, count_;
    int in_flight_;
    Bounces arriving_, leaving_;
    std::array<Buffer, 2> input_;
    Buffer output_;
    std::optional<io::PosixFile> source_, direct_source_, result_;
    std::optional<io::UncachedFile> direct_result_;
    std::int64_t source_bytes_ = 0;
    std::atomic<std::int64_t> calls_ = 0, read_ = 0;
};

/// Tiles through memory, for matrices that the page cache cannot hold or must not: three buffers, many requests in
/// flight.
///
///     time      reading      | tile 1 | tile 2 | tile 3 |
///               transposing           | tile 1 | tile 2 | tile 3 |
///               writing               |   tile 1 | tile 2 | tile 3 |
///
/// Of the two buffers for input, one is read into while the other is transposed.
///
/// The fewer bytes in a piece, the more requests, and the more pages that two pieces share are read and written twice;
/// so tiles lie dense in memory, which makes them larger. Where a piece does not begin at the same place within a page
/// as in the file, it goes past the page cache through a buffer of its own. Tiles follow each other down a column of
/// the input: then pieces that follow each other in the result are written one soon after the other, while the page
/// that they share is still in memory.
///
/// Tiles through memory: one is read while another is transposed and written. What a journal holds is left as it is,
/// and told. @note Collective.
std::optional<io::Resumed> turn_tiles(Context& context, const io::Region& from, const io::Region& to,
                                      const Options& options, io::Output& output) {
    const std::unique_ptr<io::Journal> journal = io::make_journal(context, &to, options.journal);
    std::optional<mpi::Queue> queue;
    if (options.queue) {
        queue.emplace(context.comm);
    }
    mpi::together(context.comm, [&] {
        if (!Tiles(context, from, to, options, output, journal.get())(queue ? &*queue : nullptr)) {
            throw io::stopped();
        }
    });
    return journal ? std::optional(journal->resumed()) : std::nullopt;
}

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

/// Whether both are single binary files that differ in their order of storage: what the engines above are for.
bool is_plain_turn(const io::Region& from, const io::Region& to) {
    return from.is_one_file() && to.is_one_file() && is_transposed(from, to) && from.bytes() > 0;
}

}  // namespace

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
