// Lines have the length that their numbers need, so where one begins is known when those before it are formatted.
//
//     one rank writes    thread 0: lines 0–7 | lines 16–23 | …
//                        thread 1: lines 8–15      | lines 24–31
//
// Each thread formats the next few lines, learns where they begin from whoever had those before, and writes while
// others format.
//
//     all ranks write    stage    rank 0: lines 0–7     rank 1: lines 8–15      formatted in memory
//                        lengths  812 bytes             790 bytes               a prefix sum says where each begins
//                        file     [ … | 812 bytes | 790 bytes | next stage …
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/text.hpp"
#include "tilewise/kernel/text/text.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

constexpr std::int64_t stage_bytes = std::int64_t{8} << 20;  // of binary numbers, on each rank
constexpr std::int64_t chunk_bytes = std::int64_t{128}
                                     << 10;  // so that what was formatted is still in the cache when it is written

/// Formats whole lines of one region, a chunk at a time.
struct Formatter {
    const Region& region;
    std::int64_t line = region.text->elements(), item = static_cast<std::int64_t>(size_of(region.dtype));
    std::int64_t chunk_lines = std::max<std::int64_t>(1, chunk_bytes / item / line);
    kernel::TextStyle style = style_of(region);

    std::int64_t chunks(std::int64_t lines) const { return (lines + chunk_lines - 1) / chunk_lines; }

    /// Formats chunk `index` of `lines` lines at `rows`; returns the length of the text.
    std::int64_t format(std::int64_t index, std::int64_t lines, const std::byte* rows, Buffer& text) const {
        const std::int64_t begin = index * chunk_lines, end = std::min(begin + chunk_lines, lines);
        const std::size_t room =
            static_cast<std::size_t>((end - begin) * (line + 1)) * kernel::text_width(region.dtype, style);
        if (text.bytes() < room) {
            text = Buffer(room);
        }
        char* start = reinterpret_cast<char*>(text.data());
        return kernel::format_text(rows + begin * line * item, region.dtype, end - begin, style, region.text->pairs,
                                   start) -
               start;
    }
};

/// A text file that several threads write to.
class TextFile {
public:
    TextFile(const Region& region, ReadBack& proof)
        : file_(region.path, region.name, PosixFile::Mode::write),
          proof_(proof) {}

    void write(const Buffer& text, std::int64_t length, std::int64_t offset) {
        const std::int64_t calls = file_.write(text.data(), length, offset);
        const std::lock_guard lock(books_);
        calls_ += calls;
        if (length > 0) {
            proof_.note(offset, text.data(), length);
        }
    }
    void close() { file_.close(); }

    /// Calls to the system since this was asked last.
    std::int64_t take_calls() { return std::exchange(calls_, 0); }

private:
    PosixFile file_;
    ReadBack& proof_;
    std::mutex books_;
    std::int64_t calls_ = 0;
};

/// Hands out places in the file, in the order of chunks, to threads that format them in any order.
class Turns {
public:
    explicit Turns(std::int64_t begin) : end_(begin) {}

    /// Waits until all chunks before `chunk` have their place; returns where this one begins.
    std::int64_t place(std::int64_t chunk, std::int64_t length) {
        std::unique_lock lock(mutex_);
        moved_.wait(lock, [&] { return chunk == next_ || failure_; });
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        next_ += 1;
        const std::int64_t begin = end_;
        end_ += length;
        moved_.notify_all();
        return begin;
    }
    /// Nobody is to wait for a chunk that never comes.
    void fail(std::exception_ptr failure) {
        const std::lock_guard lock(mutex_);
        failure_ = std::move(failure);
        moved_.notify_all();
    }
    std::int64_t end() const { return end_; }

private:
    std::mutex mutex_;
    std::condition_variable moved_;
    std::int64_t next_ = 0, end_;
    std::exception_ptr failure_;
};

constexpr std::int64_t worth_threads = 1 << 13;  // numbers

class LineWriter {
public:
    LineWriter(Context& context, const Region& region, ReadBack& proof)
        : context_(context),
          region_(region),
          formatter_{region},
          file_(region, proof) {}

    /// Formats and writes `lines` lines from `offset` on, both at once; returns where they end.
    std::int64_t write(std::int64_t lines, const std::byte* rows, std::int64_t offset) {
        Turns turns(offset);
        texts_.resize(static_cast<std::size_t>(context_.threads));
        parallel_tasks(threads(lines), formatter_.chunks(lines), [&](std::int64_t chunk, int thread) {
            try {
                Buffer& text = texts_[static_cast<std::size_t>(thread)];
                const std::int64_t length = timed(thread, Step::convert, "format ",
                                                  [&] { return formatter_.format(chunk, lines, rows, text); });
                const std::int64_t place = turns.place(chunk, length);
                timed(thread, Step::file, "write ", [&] {
                    file_.write(text, length, place);
                    return 0;
                });
            } catch (...) {
                turns.fail(std::current_exception());
                throw;
            }
        });
        book(turns.end() - offset);
        return turns.end();
    }

    /// Formats lines whose place is not known yet; returns the length of their text.
    std::int64_t format(std::int64_t lines, const std::byte* rows) {
        const Timed timed(context_.ledger, context_.ledger.phase(), Step::convert, "format " + region_.name);
        lengths_.assign(static_cast<std::size_t>(formatter_.chunks(lines)), 0);
        texts_.resize(std::max(texts_.size(), lengths_.size()));
        parallel_tasks(threads(lines), formatter_.chunks(lines), [&](std::int64_t chunk, int) {
            const auto index = static_cast<std::size_t>(chunk);
            lengths_[index] = formatter_.format(chunk, lines, rows, texts_[index]);
        });
        return std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    }

    /// Writes what was formatted last.
    void write_formatted(std::int64_t offset) {
        const Timed timed(context_.ledger, context_.ledger.phase(), Step::file, "write " + region_.name);
        const std::int64_t begin = offset;
        for (std::size_t chunk = 0; chunk < lengths_.size(); ++chunk) {
            file_.write(texts_[chunk], lengths_[chunk], offset);
            offset += lengths_[chunk];
        }
        book(offset - begin);
    }

    void close() { file_.close(); }

private:
    int threads(std::int64_t lines) const { return lines * formatter_.line < worth_threads ? 1 : context_.threads; }

    /// The books are the first thread's: what it does stands for the others.
    template <class Call> std::int64_t timed(int thread, Step step, const char* what, Call call) {
        if (thread > 0) {
            return call();
        }
        const Timed timed(context_.ledger, context_.ledger.phase(), step, what + region_.name);
        return call();
    }

    void book(std::int64_t bytes) {
        context_.ledger.count().written += bytes;
        context_.ledger.count().io_calls += file_.take_calls();
    }

    Context& context_;
    const Region& region_;
    Formatter formatter_;
    TextFile file_;
    std::vector<Buffer> texts_;
    std::vector<std::int64_t> lengths_;
};

}  // namespace

void TextOutput::append(Context& context, const Transfer& transfer) {
    const Timed moving(context.ledger, context.ledger.phase(), Step::move, "gather lines");
    const Shares shares(context, transfer);
    const std::int64_t line = region_.text->elements();
    const int ranks = context.comm.size(), me = context.comm.rank(), writers = by_root_ ? 1 : ranks;
    std::optional<LineWriter> writer;
    mpi::together(context.comm, [&] {
        if (shares.span.size() > 0 && (shares.owned(shares.span) != shares.span.size() ||
                                       shares.span.begin % line != 0 || shares.span.end % line != 0)) {
            throw InternalError("a text can only be written in whole lines, one after the other");
        }
        if (me < writers) {
            writer.emplace(context, region_, proof_);
        }
    });
    const std::int64_t each = std::max<std::int64_t>(1, stage_bytes / shares.item / line);  // lines a rank and stage
    const bool alone = ranks == 1 && shares.contiguous();                                   // nothing to gather
    mpi::no_return(context.comm, [&] {
        Buffer packed, rows;
        if (writer && !alone) {
            const std::int64_t most = std::min(each * line, shares.span.size());
            packed = Buffer(static_cast<std::size_t>(most * shares.item));
            rows = Buffer(static_cast<std::size_t>(most * shares.item));
        }
        for (std::int64_t begin = shares.span.begin; begin < shares.span.end; begin += each * line * writers) {
            const std::int64_t end = std::min(begin + each * line * writers, shares.span.end);
            const grid::Partition cut((end - begin) / line, writers);
            std::vector<grid::Range> ranges;
            for (int rank = 0; rank < ranks; ++rank) {
                const grid::Range part = rank < writers ? cut[rank] : grid::Range{};
                ranges.push_back({begin + part.begin * line, begin + part.end * line});
            }
            const std::byte* in_order = transfer.data + (begin - shares.span.begin) * shares.item;
            if (!alone) {
                gather(context, transfer, shares, ranges, packed.data(), rows.data());
                in_order = rows.data();
            }
            const std::int64_t lines = ranges[static_cast<std::size_t>(me)].size() / line;
            if (writers == 1) {
                end_ = writer ? writer->write(lines, in_order, end_) : end_;
                end_ = mpi::of_root(context.comm, end_);
            } else {
                std::int64_t mine = writer->format(lines, in_order), before = 0;
                check(MPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, context.comm.get()), "MPI_Exscan");
                writer->write_formatted(end_ + (me == 0 ? 0 : before));
                end_ += mpi::sum_of(context.comm, mine);
            }
            context.report(context.ledger.phase(),
                           static_cast<double>(end - shares.span.begin) / static_cast<double>(shares.span.size()));
        }
    });
    mpi::together(context.comm, [&] {
        if (writer) {
            writer->close();
        }
    });
}

}  // namespace tilewise::io
