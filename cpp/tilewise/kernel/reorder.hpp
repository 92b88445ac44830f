// Brings the numbers of a matrix into another order in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// Out of place: item (i, j) of the dense rows×columns matrix `from` becomes item (j, i) of the dense columns×rows matrix `to`. Items
/// have 1, 2, 4, 8 or 16 bytes and need not be aligned; `from` and `to` must not overlap. Uses up to `threads` threads, each on rows of
/// `to` of its own. Throws Error for items of another size.
void transpose(const std::byte* from, std::int64_t rows, std::int64_t columns, std::size_t item, std::byte* to,
               int threads);

/// Two loops: the reference. Any size of item.
void plain_transpose(const std::byte* from, std::int64_t rows, std::int64_t columns, std::size_t item, std::byte* to);

}  // namespace tilewise::kernel
