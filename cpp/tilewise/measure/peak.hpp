// What the arithmetic units of all cores can do at the clock of this minute: what "fraction of peak" refers to.
#pragma once

#include "tilewise/base/dtype.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

/// Operations a second of all threads of all ranks together: the sum of what each does in its best of some loops of
/// multiplications and additions in registers, fused where the instructions in use have that, all at the same time.
/// Complex and 16-bit types go by the type that their arithmetic is in; 0 for integers. Takes about a millisecond.
/// @note Collective.
double peak(Context& context, Dtype dtype);

}  // namespace tilewise::measure
