// Whether a product makes sense as it is asked for, and who has which block in it.
#pragma once

#include "tilewise/grid/layout.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/multiply/multiply.hpp"

namespace tilewise::multiply {

/// Throws UsageError for what does not fit together, on one rank as on all. Not collective.
grid::Layout arrange(const Context& context, const io::Region& a, const io::Region& b, const Options& options);

}  // namespace tilewise::multiply
