// Integer products are exact or refused: the bound that decides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tilewise/base/dtype.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::multiply {

struct Numbers {
    const std::byte* data;
    std::int64_t count;
};

/// Throws UsageError on every rank if k · max|A| · max|B| could leave the 64-bit type. Reads this rank's blocks once.
/// @note Collective.
void refuse_overflow(Context& context, Dtype dtype, std::int64_t k, Numbers a, Numbers b);

}  // namespace tilewise::multiply
