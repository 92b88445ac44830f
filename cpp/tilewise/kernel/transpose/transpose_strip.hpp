// What transpose hands to the code of one instruction set: a strip of columns, and where to work.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// Columns of the source, which are rows of the target, in tiles of `tile_rows` rows. Strides in bytes.
struct TransposeStrip {
    const std::byte* from;
    std::int64_t from_stride;
    std::byte* to;
    std::int64_t to_stride;
    std::int64_t rows, columns;
    std::int64_t
        tile_rows;  ///< as many as fill whole cache lines of `to`; a multiple of 16 for sizes that are no power of two
    bool streaming;
    bool lined_up;       ///< every row of `to` starts at a multiple of 64 bytes
    std::byte* staging;  ///< staging_bytes, at a multiple of 64; the strip may leave anything there
};

/// Bytes of staging for strips of at most `columns` columns: a line that each carries, and the rows of a transposed
/// block, a line longer than a tile's are; no block has more than 64 columns.
constexpr std::int64_t staging_bytes(std::int64_t columns, std::int64_t tile_rows, std::int64_t item) {
    return columns * 64 + 64 * (tile_rows * item + 64);
}

}  // namespace tilewise::kernel
