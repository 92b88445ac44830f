// Tiles through memory, for matrices that the page cache cannot hold or must not: three buffers, many requests in
// flight.
//
//     time      reading      | tile 1 | tile 2 | tile 3 |
//               transposing           | tile 1 | tile 2 | tile 3 |
//               writing               |   tile 1 | tile 2 | tile 3 |
//
// Of the two buffers for input, one is read into while the other is transposed.
//
// The fewer bytes in a piece, the more requests, and the more pages that two pieces share are read and written twice;
// so tiles lie dense in memory, which makes them larger. Where a piece does not begin at the same place within a page
// as in the file, it goes past the page cache through a buffer of its own. Tiles follow each other down a column of the
// input: then pieces that follow each other in the result are written one soon after the other, while the page that
// they share is still in memory.
#include <array>
#include <atomic>
#include <cstring>
#include <future>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/uncached.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/queue.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"
#include "tilewise/transpose/staged.hpp"

namespace tilewise::transpose {
namespace {

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

}  // namespace

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

}  // namespace tilewise::transpose
