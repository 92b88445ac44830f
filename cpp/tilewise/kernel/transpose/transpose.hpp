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

}  // namespace tilewise::kernel
