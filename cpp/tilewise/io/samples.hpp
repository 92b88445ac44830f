// Which few numbers of a share are looked at again in the file, after it was read or written: enough of them to meet
// every call of a plausible size.
//
//     file     [ r0 r0 r1 r1 r0 r0 r1 r1 | r0 r0 r1 r1 … ]
//     cell       ^            ^             ^
//
// In each cell of the file those are the first and the last run of the rank: of the first its head, of the last its
// tail.
//
// Where ranks have narrow pieces of the same cells, they take turns, so that a rank looks at about as many places as
// its share has cells.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/grid/share.hpp"

namespace tilewise::io {

inline constexpr std::int64_t sample_cell = std::int64_t{1} << 20;  ///< bytes of the file
inline constexpr std::int64_t sample_bytes = 512;                   ///< that are looked at in one place

/// Consecutive elements: `first` counts row by row through the stored matrix, `local` in the share's memory.
struct Sample {
    std::int64_t first, count, local;
};

/// The samples of what `share` has of the elements `within`, in ascending order. `item` and `cell` are bytes; `turn`:
/// the rank, or −1 for a look at every cell, whoever else has a part of it.
std::vector<Sample> samples_of(const grid::Share& share, std::int64_t columns, std::int64_t item, grid::Range within,
                               std::int64_t cell, int turn);

}  // namespace tilewise::io
