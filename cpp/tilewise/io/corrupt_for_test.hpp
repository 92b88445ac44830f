// For tests of proofs: makes one number of a result wrong, in memory or in its file, where a test or the worker's fault
// switch asks for it.
#pragma once

#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::io {

/// From here on operations of this process make one number of their results wrong before they prove them, or no longer
/// do so. All ranks say the same.
void corrupt_results(bool wanted);

/// The calls below do nothing unless corrupt_results(true) was called.

/// Makes the number in the middle of `count` wrong. Not collective.
void corrupt_for_test(Dtype dtype, std::byte* data, std::int64_t count);
/// Flips the lowest bit of the last byte of the region's last number; of a text, takes another digit. @note Collective.
void corrupt_for_test(const Context& context, const Region& region);

}  // namespace tilewise::io
