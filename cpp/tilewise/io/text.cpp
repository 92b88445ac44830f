// Texts are read where the page cache has them: mapped, cut at line ends, each range of lines parsed by whoever needs it.
#include "tilewise/io/text.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/text.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

kernel::TextStyle style_of(const Region& region) {
    return {
        .separator = region.text->separator, .line_numbers = region.text->line_numbers, .pairs = region.text->pairs};
}

/// The characters of a text and the places where its pieces begin.
class Characters {
public:
    explicit Characters(const Region& region)
        : mapping_(region, Mapping::Access::read),
          file_(reinterpret_cast<const char*>(mapping_.data())),
          begin_(file_ + region.offset),
          end_(file_ + region.file_bytes) {}

    const char* file() const { return file_; }
    std::int64_t bytes() const { return end_ - begin_; }

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

    /// The line that follows `lines` lines of numbers from `at` on, which begins a line.
    const char* skip(const char* at, std::int64_t lines) const {
        while (lines > 0 && at < end_) {
            const char* next = after_newline(at);
            lines -= kernel::count_lines(at, next);
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
          threads_(threads),
          characters_(transfer.region) {}

    Step step() const override { return Step::convert; }

    void read(Counters& count, grid::Range range, std::byte* out) const override {
        const std::int64_t line = region_.text->elements(), item = static_cast<std::int64_t>(size_of(region_.dtype));
        const grid::Range lines{range.begin / line, (range.end + line - 1) / line};
        Buffer whole;
        std::byte* place = out;
        if (lines.begin * line != range.begin ||
            lines.end * line != range.end) {  // parts of lines: by way of all of them
            whole = Buffer(static_cast<std::size_t>(lines.size() * line * item));
            place = whole.data();
        }
        const std::int64_t threads = range.size() < (1 << 14) ? 1 : threads_;
        std::vector<std::int64_t> bytes(static_cast<std::size_t>(threads));
        parallel_ranges(static_cast<int>(threads), lines.size(), [&](std::int64_t from, std::int64_t to, int thread) {
            bytes[static_cast<std::size_t>(thread)] =
                parse({lines.begin + from, lines.begin + to}, place + from * line * item);
        });
        for (const std::int64_t some : bytes) {
            count.read += some;
        }
        if (place != out) {
            std::memcpy(out, place + (range.begin - lines.begin * line) * item,
                        static_cast<std::size_t>(range.size() * item));
        }
    }

    void write(Counters&, grid::Range, const std::byte*) const override {
        throw Error(ErrorKind::internal, "a text is not written in pieces");
    }

private:
    /// Parses whole lines; returns the bytes of text.
    std::int64_t parse(grid::Range lines, std::byte* out) const {
        const char* begin = at_line(lines.begin);
        const char* end = at_line(lines.end);
        const std::int64_t expected = lines.size() * region_.text->elements();
        const auto run = [&](std::int64_t first_line) {
            return kernel::parse_text(begin, end, style_of(region_), region_.dtype, out, expected, first_line);
        };
        try {
            if (run(1) != expected) {
                throw UsageError("changed while it was read");
            }
        } catch (const UsageError&) {
            // Only now it matters which line of the file this is.
            try {
                run(1 + std::count(characters_.file(), begin, '\n'));
            } catch (const UsageError& error) {
                throw UsageError(region_.name + ": " + error.what());
            }
            throw UsageError(region_.name + ": changed while it was read");
        }
        return end - begin;
    }

    const char* at_line(std::int64_t line) const {
        const std::int64_t piece = index_.piece_of(line);
        return characters_.skip(characters_.piece(piece), line - index_.lines_before(piece));
    }

    const Region& region_;
    const TextIndex& index_;
    int threads_;
    Characters characters_;
};

}  // namespace

TextIndex::TextIndex(Context& context, const Region& region) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "count lines of " + region.name);
    const std::int64_t pieces =
        std::max<std::int64_t>(1, (region.file_bytes - region.offset + piece_bytes - 1) / piece_bytes);
    const grid::Partition share(pieces, context.comm.size());
    const grid::Range mine = share[context.comm.rank()];
    std::vector<std::int64_t> lines(static_cast<std::size_t>(mine.size()));
    mpi::together(context.comm, [&] {
        if (mine.size() > 0) {
            const Characters characters(region);
            parallel_ranges(mine.size() > 1 ? context.threads : 1, mine.size(),
                            [&](std::int64_t begin, std::int64_t end, int) {
                                for (std::int64_t piece = begin; piece < end; ++piece) {
                                    lines[static_cast<std::size_t>(piece)] = kernel::count_lines(
                                        characters.piece(mine.begin + piece), characters.piece(mine.begin + piece + 1));
                                }
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
            throw UsageError(region.name + ": has " + std::to_string(lines_before_.back()) +
                             " lines of numbers where " + std::to_string(expected) + " were expected");
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
