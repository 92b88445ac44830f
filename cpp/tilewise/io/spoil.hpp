// For tests: makes a file wrong behind everybody's back, so that a proof has something to find.
#pragma once

#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::io {

/// Flips the lowest bit of the last byte of the region's last number; of a text, takes another digit. @note Collective.
void spoil_last_number(const Context& context, const Region& region);

}  // namespace tilewise::io
