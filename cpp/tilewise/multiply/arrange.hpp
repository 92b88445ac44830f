// From what is asked to who has which block, and how a block lies in memory.
#pragma once

#include "tilewise/io/region.hpp"
#include "tilewise/multiply/multiply.hpp"

namespace tilewise::multiply {

/// The shape of the product. Throws UsageError where A and B do not fit together. Not collective.
grid::Shape shape_of(const io::Region& a, const io::Region& b, const Options& options);

/// The layout of a product of that shape on so many ranks. Throws UsageError where algorithm, grid, exchange and ranks
/// do not go together. Not collective.
grid::Layout arrange(int ranks, const grid::Shape& shape, const Options& options);

/// A or B as `rank` has it; with `lies_in_a` B, of which nothing is kept.
Side side_of(const grid::Layout& layout, int rank, const io::Region& region, Dtype dtype, bool is_a,
             bool lies_in_a = false);

}  // namespace tilewise::multiply
