// Where a matrix's numbers lie: the noun that the front makes from a file's header, and that all strategies read and
// write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/grid/share.hpp"

namespace tilewise::io {

/// A rectangle of a matrix that has a file of its own, row by row from `offset`.
struct Tile {
    std::string path;
    std::int64_t offset = 0;
    grid::Block block;
};

/// Numbers as text: `line_numbers` of them on each line, between separators; a blank stands for any run of blanks.
struct TextLines {
    char separator = ' ';
    std::int64_t line_numbers = 1;
    bool pairs = false;  ///< complex numbers as two numbers side by side

    /// Numbers of the matrix on each line.
    std::int64_t elements() const { return pairs ? line_numbers / 2 : line_numbers; }
};

struct InMemory;

struct Region {
    std::string path;  ///< empty: made by the generator, or in memory
    std::string name;  ///< as the user wrote it, for messages
    std::int64_t offset = 0;
    std::int64_t rows = 0, columns = 0;  ///< of the matrix in the file
    Dtype dtype = Dtype::float64;
    bool swap_bytes = false;
    bool column_major = false;
    std::int64_t file_bytes = -1;  ///< the size that the file must have; −1: large enough will do
    bool transposed = false;       ///< the operation wants the transpose
    std::string generator;
    std::uint64_t seed = 0;
    std::vector<Tile> tiles;           ///< instead of one file
    std::optional<TextLines> text;     ///< instead of binary numbers
    bool proving = false;              ///< an output that a proof reads: what is wrong with it fails the verification
    const InMemory* memory = nullptr;  ///< instead of a file: the ranks' own memory (io/in_memory.hpp)

    /// Whether all numbers lie in one file, as bytes.
    bool is_one_file() const { return generator.empty() && tiles.empty() && !text && memory == nullptr; }

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

    /// The error of a file that is not what it should be; `kind` where it is somebody's input.
    Error refusal(ErrorKind kind, const std::string& what) const {
        return Error(proving ? ErrorKind::verification : kind, name + ": " + what);
    }

    std::int64_t bytes() const { return rows * columns * static_cast<std::int64_t>(size_of(dtype)); }
};

}  // namespace tilewise::io
