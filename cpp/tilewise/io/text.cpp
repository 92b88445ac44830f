// Texts are read where the page cache has them: mapped, cut at line ends, each range of lines parsed by whoever needs
// it, then let go.
#include "tilewise/io/text.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/mapped.hpp"
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
            .hash_comments = text.hash_comments};
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

}  // namespace tilewise::io
