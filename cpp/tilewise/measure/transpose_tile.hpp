// Which tile a transposition should be walked in on this machine: tried, as nothing that can be read off a machine
// tells it.
#pragma once

#include <cstddef>

#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::measure {

struct MeasuredTile {
    kernel::TransposeTile tile;
    double bytes_per_second = 0;  ///< read and written
};

/// The fastest of a handful of tiles for items of `item` bytes and `threads` threads, on matrices of 64 MiB: some
/// tenths of a second. Throws Error for items that cannot be transposed, MemoryError.
MeasuredTile transpose_tile(std::size_t item, int threads);

}  // namespace tilewise::measure
