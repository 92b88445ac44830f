// Where a matrix's numbers lie: the noun that the front makes from a file's header, and that all strategies read and
// write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/grid/share.hpp"
#include "tilewise/kernel/codec/unpack.hpp"

namespace tilewise::io {

/// A rectangle of the stored matrix that has a file of its own, or is the same number all over.
///
///     file    [ offset | a b c . | d e f . | . . . . ]     2×3 numbers with a `line` of 4, `step` 1
struct Tile {
    std::string path;  ///< empty: there is no file, and each number is the region's `fill`
    std::int64_t offset = 0;
    grid::Block block;
    std::int64_t line = 0;  ///< numbers from one stored row to the next; 0: as many as the block is wide
    std::int64_t step = 1;  ///< numbers from one of a row to the next; of an output 1

    /// Numbers from one stored row to the next.
    std::int64_t down() const { return line > 0 ? line : block.columns.size(); }
    /// Where in its file the number in that row and column of the stored matrix lies, in numbers from `offset`.
    std::int64_t place(std::int64_t row, std::int64_t column) const {
        return (row - block.rows.begin) * down() + (column - block.columns.begin) * step;
    }
    /// Numbers from `offset` to behind the last one.
    std::int64_t extent() const { return block.size() == 0 ? 0 : place(block.rows.end - 1, block.columns.end - 1) + 1; }
};

/// Numbers as text: `line_numbers` of them on each line, between separators; a blank stands for any run of blanks.
struct TextLines {
    char separator = ' ';
    std::int64_t line_numbers = 1;
    bool pairs = false;  ///< complex numbers as two numbers side by side
    char decimal = '.';
    std::vector<std::string> missing = {};  ///< words for NaN; with any, an empty field is one too
    std::int64_t end = -1;                  ///< the byte where the lines end; −1: where the file does
    bool hash_comments = true;              ///< '#' begins a comment
    std::vector<std::int64_t> taken = {};   ///< fields that are the matrix's, ascending; none: all of them

    bool takes_own_fields() const {
        return std::adjacent_find(taken.begin(), taken.end(), std::greater_equal<>()) == taken.end() &&
               (taken.empty() || (taken.front() >= 0 && taken.back() < line_numbers));
    }
    /// Numbers of the matrix on each line.
    std::int64_t elements() const {
        return taken.empty() ? (pairs ? line_numbers / 2 : line_numbers) : static_cast<std::int64_t>(taken.size());
    }
};

/// A matrix in packed pieces that lie in the order of a regular grid over the stored rows and columns. Those at the
/// edges are as large as all others, and reach beyond the matrix.
///
///     chunks   [ 0 | 1 | 2 ]      of an array of more dimensions, a chunk is a block: the matrix's part of it begins
///              [ 3 | 4 | 5 ]      with number `start`, and has numbers `down` and `across` from each other
struct Chunks {
    std::int64_t rows = 1, columns = 1;  ///< of the matrix in each
    std::int64_t start = 0, down = 1, across = 1;
    bool clipped = false;  ///< those at the lower edge hold only the rows that there are
    kernel::Packing packing;
    std::vector<std::string> paths;            ///< of each; empty: all are in the region's file
    std::vector<std::int64_t> offsets, bytes;  ///< where each lies; 0 bytes: nowhere, and all numbers are `fill`
    std::vector<std::uint32_t> skipped;        ///< bit i: its filter i is not to be undone; empty: all are
    std::string fill;                          ///< the bytes of one number as the file has it

    std::int64_t across_count(std::int64_t width) const { return (width + columns - 1) / columns; }
};

struct InMemory;

/// The matrix in a file, of which a region is the part that begins in `row` and `column`.
struct Whole {
    std::int64_t rows = 0, columns = 0, row = 0, column = 0;
};

struct Region {
    std::string path;  ///< empty: made by the generator, or in memory
    std::string name;  ///< as the user wrote it, for messages
    std::int64_t offset = 0;
    std::int64_t rows = 0, columns = 0;  ///< of the matrix in the file
    Dtype dtype = Dtype::float64;
    bool swap_bytes = false;
    bool column_major = false;
    std::int64_t file_bytes = -1;  ///< the size that the file must have, with tiles that of each; −1: large enough will
                                   ///< do, and a tile ends with its last number
    bool transposed = false;       ///< the operation wants the transpose
    std::optional<Whole> whole = {};  ///< in which the numbers have gaps between them
    std::string generator;
    std::uint64_t seed = 0;
    std::vector<std::int64_t> steps = {};  ///< bytes from a slice of a stack to the next, along each of its axes
    std::vector<Tile> tiles;               ///< instead of one file
    std::string fill;                      ///< the bytes of a number of tiles without a file
    std::optional<TextLines> text;         ///< instead of binary numbers
    std::shared_ptr<const Chunks> chunks;  ///< instead of numbers that lie as they are
    bool proving = false;              ///< an output that a proof reads: what is wrong with it fails the verification
    const InMemory* memory = nullptr;  ///< instead of a file: the ranks' own memory (io/in_memory.hpp)

    /// Whether all numbers lie in one file, as bytes without gaps.
    bool is_one_file() const {
        return generator.empty() && tiles.empty() && !text && chunks == nullptr && memory == nullptr && !whole;
    }

    /// Rows and columns as the operation sees them.
    std::int64_t logical_rows() const { return transposed ? columns : rows; }
    std::int64_t logical_columns() const { return transposed ? rows : columns; }

    /// The file's numbers, taken row by row, may be the matrix or its transpose: `stored` speaks of them as they lie.
    std::int64_t stored_rows() const { return column_major ? columns : rows; }
    std::int64_t stored_columns() const { return column_major ? rows : columns; }
    /// Whether what lies row by row in the file is the transpose of what the operation wants.
    bool stored_transposed() const { return column_major != transposed; }
    /// A share of the wanted matrix, in the coordinates of the stored one.
    grid::Share stored(const grid::Share& wanted) const { return stored_transposed() ? wanted.transposed() : wanted; }

    /// The matrix of the file: all of what this is a part of.
    Region uncut() const {
        Region all = *this;
        if (whole) {
            std::tie(all.rows, all.columns) = std::tie(whole->rows, whole->columns);
            all.whole.reset();
        }
        return all;
    }
    /// A share of the wanted matrix, in the coordinates of the file's, as it is stored.
    grid::Share in_file(const grid::Share& wanted) const {
        const Whole all = whole.value_or(Whole{});
        return column_major ? stored(wanted).moved(all.column, all.row) : stored(wanted).moved(all.row, all.column);
    }

    /// Throws UsageError where this is not inside of its `whole`, which there is. Without gaps it becomes a matrix by
    /// itself.
    void place_in_whole() {
        const Whole all = *whole;
        if (std::min(all.row, all.column) < 0 || rows > all.rows - all.row || columns > all.columns - all.column) {
            throw UsageError(name + ": a part outside of its matrix");
        }
        whole.reset();
        if (!is_one_file() || (column_major ? rows < all.rows : columns < all.columns)) {
            whole = all;
        } else {
            offset += (column_major ? all.column * all.rows : all.row * all.columns) *
                      static_cast<std::int64_t>(size_of(dtype));
        }
    }

    /// The error of a file that is not what it should be; `kind` where it is somebody's input.
    Error refusal(ErrorKind kind, const std::string& what, const std::string& advice = {}) const {
        return Error(proving ? ErrorKind::verification : kind, name + ": " + what, -1, 0, advice);
    }

    std::int64_t bytes() const { return rows * columns * static_cast<std::int64_t>(size_of(dtype)); }
};

}  // namespace tilewise::io
