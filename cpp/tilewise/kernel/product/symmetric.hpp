// One rank's part of a symmetric product: some rectangles of C, and mirror images of rectangles.
#pragma once

#include <vector>

#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

/// `gemm` for these rectangles of C alone, which must not overlap; threads take them in turn, in their order, and share
/// a single one. Like `mirror` it is given them in the coordinates of a matrix, whose block `held` is C: of a square on
/// the diagonal of this matrix, which is symmetric, only what is on and above it is promised. Not collective.
void gemm_parts(const Product& product, const grid::Block& held, const std::vector<grid::Block>& parts, int threads,
                Kernel kernel = Kernel::fast, const Between& between = {}, std::int64_t slice = 768);

/// `c` is the block `held` of a matrix of items, row after row. The rectangles in it, which are given in the
/// coordinates of the matrix, are copied to their mirror images across its diagonal, which `held` must have too; of a
/// square on the diagonal, what is above it. Threads take them in turn.
void mirror(std::byte* c, const grid::Block& held, std::size_t item, const std::vector<grid::Block>& rectangles,
            int threads);

}  // namespace tilewise::kernel
