// Who computes which half of a symmetric matrix that is cut into blocks: integers only, made before anybody computes.
#pragma once

#include <vector>

#include "tilewise/grid/layout.hpp"

namespace tilewise::grid {

/// A rank's part in C = Cᵀ, of which each off-diagonal element is computed once. In coordinates of the whole of C.
///
///     p × q = 2 × 2     [ \ # | # # ]   1 computes the upper half of what it shares with 2, which computes the mirror
///                       [ . \ | . . ]   image of the lower half; blocks on the diagonal are computed on and above it.
///                       [ . # | \ # ]   So each rank computes half of its block, whatever the grid.
///                       [ . # | . \ ]
struct SymmetricPart {
    /// What two ranks owe each other: this rank computes `sent`; `filled`, of its own block, is the mirror image of
    /// what the partner computes. Both rectangles may be empty.
    struct Swap {
        int partner;
        Block sent, filled;
    };

    std::vector<Block> computed;  ///< without overlaps; of squares on the diagonal what is on and above it
    std::vector<Block> mirrored;  ///< those of them whose mirror image is in the same block
    std::vector<Swap> swaps;      ///< in an order in which all ranks can do them one after the other
};

/// A rectangle, counted from where the block that it lies in begins.
inline Block within(const Block& rectangle, const Block& block) {
    const auto [rows, columns] = rectangle;
    return {{rows.begin - block.rows.begin, rows.end - block.rows.begin},
            {columns.begin - block.columns.begin, columns.end - block.columns.begin}};
}

/// `layout` must have one layer and a square C. There are as many rectangles as `threads` of each rank need.
SymmetricPart symmetric_part(const Layout& layout, int rank, int threads);

}  // namespace tilewise::grid
