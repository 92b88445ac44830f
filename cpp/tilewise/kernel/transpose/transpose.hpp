// Turns a matrix round in memory: rows become columns, out of place, at nearly the speed of a copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// How a matrix is walked: `columns` of the source at a time, in tiles of `rows` of them. The best depends on the
/// machine and on the item's size (see measure/transpose_tile.hpp), and never changes the result.
struct TransposeTile {
    std::int64_t rows = 64;     ///< rounded up to whole cache lines of the target
    std::int64_t columns = 64;  ///< rounded up to whole cache lines of the source
    bool streaming =
        true;  ///< write past the caches, where the instruction set can: good for targets that no cache holds
};

/// What does well on most machines for large matrices of items of `item` bytes.
TransposeTile default_transpose_tile(std::size_t item);

/// Out of place: item (i, j) of `from`, rows×columns, becomes item (j, i) of `to`, columns×rows. The strides are bytes
/// between the starts of two rows, at least as many as a row has. Items have 1 to 16 bytes; nothing needs to be
/// aligned, and bytes between the rows of `to` are not touched. `from` and `to` must not overlap. Uses up to `threads`
/// threads. Throws Error for items of another size, MemoryError.
void transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               std::size_t item, std::byte* to, std::int64_t to_stride, int threads, const TransposeTile& tile);

/// The same with the default tile; small matrices stay in the caches.
void transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               std::size_t item, std::byte* to, std::int64_t to_stride, int threads);

/// Two loops: the reference. Any size of item.
void plain_transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                     std::size_t item, std::byte* to, std::int64_t to_stride);

// What transpose hands to the code of one instruction set: a strip of columns, and where to work.

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
