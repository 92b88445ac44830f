// Texts are read where the page cache has them: mapped, cut at line ends, each range of lines parsed by whoever needs
// it, then let go.
#include "tilewise/kernel/text/text.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/io/text.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;
using Kind = kernel::Losses::Kind;

/// The characters of a text and the places where its pieces begin.
class Characters {
public:
    explicit Characters(const Region& region)
        : mapping_(region, Direction::read),
          file_(reinterpret_cast<const char*>(mapping_.data())),
          begin_(file_ + region.offset),
          end_(file_ + text_end(region)) {}

    const char* file() const { return file_; }
    std::int64_t bytes() const { return end_ - begin_; }
    /// At least one, which may be empty.
    std::int64_t pieces() const {
        return std::max<std::int64_t>(1, (bytes() + TextIndex::piece_bytes - 1) / TextIndex::piece_bytes);
    }

    /// The first line that begins in a piece, or at its border; the end of the file for the piece after the last.
    const char* piece(std::int64_t index) const {
        if (index == 0) {
            return begin_;
        }
        if (index * TextIndex::piece_bytes >= bytes()) {
            return end_;
        }
        return after_newline(begin_ + index * TextIndex::piece_bytes - 1);
    }

    /// Gives the pages back from a piece's border to `end`, so that a long text does not fill the resident set;
    /// touching them again brings them back.
    void release(std::int64_t piece, const char* end) const {
        const char* border = begin_ + piece * TextIndex::piece_bytes;
        mapping_.release(piece == 0 ? border : border - 1, end);  // the byte before was looked at too
    }

    /// The line that follows `lines` lines of numbers from `at` on, which begins a line.
    const char* skip(const char* at, std::int64_t lines, const kernel::TextStyle& style) const {
        while (lines > 0 && at < end_) {
            const char* next = after_newline(at);
            lines -= kernel::count_lines(at, next, style);
            at = next;
        }
        return at;
    }

private:
    const char* after_newline(const char* at) const {
        const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end_ - at));
        return found == nullptr ? end_ : static_cast<const char*>(found) + 1;
    }

    Mapping mapping_;
    const char *file_, *begin_, *end_;
};

class TextElements final : public ElementFile {
public:
    TextElements(const Transfer& transfer, int threads)
        : region_(transfer.region),
          index_(*transfer.text),
          style_(style_of(transfer.region)),
          threads_(threads),
          characters_(transfer.region) {}

    Step step() const override { return Step::convert; }

    void read(Counters& count, grid::Range range, std::byte* out) const override {
        const std::int64_t line = region_.text->elements(), item = static_cast<std::int64_t>(size_of(region_.dtype));
        const grid::Range lines{range.begin / line, (range.end + line - 1) / line};
        if (lines.size() <= 0) {
            return;
        }
        Buffer whole;
        std::byte* place = out;
        if (lines.begin * line != range.begin ||
            lines.end * line != range.end) {  // parts of lines: by way of all of them
            whole = Buffer(static_cast<std::size_t>(lines.size() * line * item));
            place = whole.data();
        }
        const std::int64_t first = index_.piece_of(lines.begin), last = index_.piece_of(lines.end - 1);
        std::atomic<std::int64_t> bytes = 0;
        parallel_tasks(range.size() < (1 << 14) ? 1 : threads_, last + 1 - first, [&](std::int64_t task, int) {
            const std::int64_t piece = first + task;
            const grid::Range some = grid::common({index_.lines_before(piece), index_.lines_before(piece + 1)}, lines);
            if (some.size() > 0) {
                const char *begin = at_line(some.begin), *end = at_line(some.end);
                parse(begin, end, some.size() * line, place + (some.begin - lines.begin) * line * item);
                characters_.release(piece, end);
                bytes += end - begin;
            }
        });
        count.read += bytes;
        if (place != out) {
            std::memcpy(out, place + (range.begin - lines.begin * line) * item,
                        static_cast<std::size_t>(range.size() * item));
        }
    }

    void write(Counters&, grid::Range, const std::byte*) const override {
        throw InternalError("a text is not written in pieces");
    }

private:
    /// Parses whole lines.
    void parse(const char* begin, const char* end, std::int64_t expected, std::byte* out) const {
        kernel::Losses losses;
        const auto run = [&](std::int64_t first_line) {
            return kernel::parse_text(begin, end, style_, region_.dtype, out, expected, first_line, &losses);
        };
        try {
            if (run(1) != expected) {
                throw UsageError("");
            }
        } catch (const UsageError&) {
            // Only now it matters which line of the file this is.
            try {
                run(1 + std::count(characters_.file(), begin, '\n'));
            } catch (const UsageError& error) {
                throw region_.refusal(ErrorKind::usage, error.what(), error.advice());
            }
            throw region_.refusal(ErrorKind::usage, "changed while it was read");
        }
        if (losses.any() && !region_.proving) {
            index_.tell_loss();
        }
    }

    const char* at_line(std::int64_t line) const {
        const std::int64_t piece = index_.piece_of(line);
        return characters_.skip(characters_.piece(piece), line - index_.lines_before(piece), style_);
    }

    const Region& region_;
    const TextIndex& index_;
    kernel::TextStyle style_;
    int threads_;
    Characters characters_;
};

}  // namespace

kernel::TextStyle style_of(const Region& region) {
    const TextLines& text = *region.text;
    return {.separator = text.separator,
            .line_numbers = text.line_numbers,
            .pairs = text.pairs,
            .decimal = text.decimal,
            .missing = text.missing,
            .hash_comments = text.hash_comments,
            .taken = text.taken};
}

TextIndex::TextIndex(Context& context, const Region& region) : ledger_(context.ledger) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "count lines of " + region.name);
    const std::int64_t pieces =
        std::max<std::int64_t>(1, (text_end(region) - region.offset + piece_bytes - 1) / piece_bytes);
    const grid::Partition share(pieces, context.comm.size());
    const grid::Range mine = share[context.comm.rank()];
    std::vector<std::int64_t> lines(static_cast<std::size_t>(mine.size()));
    mpi::together(context.comm, [&] {
        if (mine.size() > 0) {
            const Characters characters(region);
            const kernel::TextStyle style = style_of(region);
            parallel_tasks(context.threads, mine.size(), [&](std::int64_t task, int) {
                const char *begin = characters.piece(mine.begin + task), *end = characters.piece(mine.begin + task + 1);
                lines[static_cast<std::size_t>(task)] = kernel::count_lines(begin, end, style);
                characters.release(mine.begin + task, end);
            });
        }
    });
    std::vector<int> counts, places;
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        counts.push_back(static_cast<int>(share[rank].size()));
        places.push_back(static_cast<int>(share[rank].begin));
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(pieces));
    check(MPI_Allgatherv(lines.data(), static_cast<int>(lines.size()), MPI_INT64_T, all.data(), counts.data(),
                         places.data(), MPI_INT64_T, context.comm.get()),
          "MPI_Allgatherv");
    lines_before_.push_back(0);
    for (const std::int64_t some : all) {
        lines_before_.push_back(lines_before_.back() + some);
    }
    mpi::together(context.comm, [&] {
        const std::int64_t expected = region.rows * region.columns / std::max<std::int64_t>(1, region.text->elements());
        if (lines_before_.back() != expected) {
            throw region.refusal(ErrorKind::usage, "has " + std::to_string(lines_before_.back()) +
                                                       " lines of numbers where " + std::to_string(expected) +
                                                       " were expected");
        }
    });
}

std::int64_t TextIndex::piece_of(std::int64_t line) const {
    // The last piece that has no more than `line` lines before it: empty pieces inside a long line are passed over.
    const auto after = std::upper_bound(lines_before_.begin(), lines_before_.end(), line);
    return after - lines_before_.begin() - 1;
}

std::unique_ptr<ElementFile> open_text(const Transfer& transfer, int threads) {
    return std::make_unique<TextElements>(transfer, threads);
}

namespace {

void add(Kind& all, const Kind& some) {
    if (some.count > 0 && (all.count == 0 || some.first < all.first)) {
        all.first = some.first;
        all.column = some.column;
    }
    all.count += some.count;
}

/// The sum over ranks, and the place of the first of all. @note Collective.
TextLoss of_all(const mpi::Communicator& comm, const Kind& mine, const char* file) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const std::int64_t offset = mine.count > 0 ? mine.first - file : none;
    const std::int64_t first = mpi::least_of(comm, offset);
    TextLoss loss{.count = mine.count};
    if (offset != none && offset == first) {
        loss.line = 1 + std::count(file, mine.first, '\n');
        loss.column = mine.column;
    }
    std::array<std::int64_t, 3> own{loss.count, loss.line, loss.column}, sums{};
    check(MPI_Allreduce(own.data(), sums.data(), 3, MPI_INT64_T, MPI_SUM, comm.get()), "MPI_Allreduce");
    return {.count = sums[0], .line = sums[1], .column = sums[2]};
}

}  // namespace

// Losses are rare, and who met them depends on how the text was cut, and on how often it was read. So where there are
// any, all lines are looked at once more, each by one rank.
//
//     pieces    rank 0: 0 1 2 3    rank 1: 4 5 6 7     each piece counts; the first number has the least offset
TextLosses count_losses(Context& context, const Region& region) {
    const Timed timed(context.ledger, Phase::input, Step::convert, "count what was lost of " + region.name);
    const mpi::Communicator& comm = context.comm;
    kernel::Losses mine;
    std::optional<Characters> characters;
    mpi::together(comm, [&] {
        characters.emplace(region);
        const kernel::TextStyle style = style_of(region);
        const grid::Range share = grid::Partition(characters->pieces(), comm.size())[comm.rank()];
        std::mutex books;
        parallel_tasks(context.threads, share.size(), [&](std::int64_t task, int) {
            const std::int64_t piece = share.begin + task;
            const char *begin = characters->piece(piece), *end = characters->piece(piece + 1);
            kernel::Losses some;
            kernel::parse_text(begin, end, style, region.dtype, nullptr, std::numeric_limits<std::int64_t>::max() / 2,
                               1, &some);
            characters->release(piece, end);
            const std::lock_guard lock(books);
            add(mine.rounded, some.rounded);
            add(mine.overflow, some.overflow);
        });
    });
    TextLosses all;
    mpi::no_return(comm, [&] {
        const char* file = characters->file();
        all = {of_all(comm, mine.rounded, file), of_all(comm, mine.overflow, file)};
    });
    return all;
}

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
        char* start = reinterpret_cast<char*>(text.grow(room));
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
    RangeExchange exchange(context, transfer, shares);
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
                exchange.begin_gather(ranges, packed.data());
                exchange.finish_gather(rows.data());
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
