// Matrices as text: where lines begin, reading any range of numbers in parallel, and writing lines whose length is not
// known before.
// Design: docs/design/formats.md
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "tilewise/base/ledger.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/io/read_back.hpp"
#include "tilewise/kernel/text/text.hpp"

namespace tilewise::io {

/// How the numbers of a text stand in its lines.
kernel::TextStyle style_of(const Region& region);

/// The byte where its lines end.
inline std::int64_t text_end(const Region& region) {
    return region.text->end < 0 ? region.file_bytes : std::min(region.text->end, region.file_bytes);
}

/// How many lines of numbers begin in each piece of the file: found once, by all ranks together, then known to all.
///
///     bytes    [ piece 0        | piece 1        | piece 2  … ]      pieces are equally long
///     lines      ^    ^     ^        ^      ^         ^              a line is of the piece in which it begins
///     before     0                   3                5              numbers in all pieces before
class TextIndex {
public:
    static constexpr std::int64_t piece_bytes = std::int64_t{1} << 18;

    /// Reads the whole text once. Throws UsageError when it has other lines than the region says. @note Collective.
    TextIndex(Context& context, const Region& region);

    std::int64_t pieces() const { return static_cast<std::int64_t>(lines_before_.size()) - 1; }
    /// Lines of numbers before a piece.
    std::int64_t lines_before(std::int64_t piece) const { return lines_before_[static_cast<std::size_t>(piece)]; }
    /// The piece in which a line of numbers begins.
    std::int64_t piece_of(std::int64_t line) const;
    /// Somebody met a number that the text's type cannot hold; any thread may say so.
    void tell_loss() const { ledger_.tell_loss(); }

private:
    Ledger& ledger_;
    std::vector<std::int64_t> lines_before_;
};

/// What a text has that its type cannot hold, in the whole of it: the same on any number of ranks, however it was read.
struct TextLoss {
    std::int64_t count = 0, line = 0, column = 0;  ///< how many numbers; where the first stands, from 1
};
struct TextLosses {
    TextLoss rounded, overflow;
};

/// Parses each line of the text once more, for a text that somebody met a loss in. @note Collective.
TextLosses count_losses(Context& context, const Region& region);

/// A text that is there to be read; several ranges can be read at once, each on its own thread.
std::unique_ptr<ElementFile> open_text(const Transfer& transfer, int threads);

/// Writes a text from its beginning to its end, in rows that follow each other.
class TextOutput {
public:
    /// Notes what it writes in `proof`.
    TextOutput(const Region& region, bool by_root, ReadBack& proof)
        : region_(region),
          by_root_(by_root),
          proof_(proof),
          end_(region.offset) {}

    /// Appends what the ranks' shares hold; together these are whole rows that follow what was written before. @note
    /// Collective; a failure aborts.
    void append(Context& context, const Transfer& transfer);
    /// Where the text ends now.
    std::int64_t end() const { return end_; }

private:
    const Region& region_;
    bool by_root_;  ///< rank 0 formats and writes everything
    ReadBack& proof_;
    std::int64_t end_;
};

}  // namespace tilewise::io
