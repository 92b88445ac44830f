// Texts are read where the page cache has them: mapped, cut at line ends, each range of lines parsed by whoever needs
// it, then let go.
#include "tilewise/io/text.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/text_characters.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

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

}  // namespace tilewise::io
