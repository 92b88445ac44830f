// Brings a block of C from the order in which it was computed to the one in which its file has it.
#pragma once

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::multiply {

/// `data` holds a block of the region's type, row after row, in this machine's byte order. Where the file is stored
/// column by column the block is transposed into `transposed`, which is made as large; other byte orders are swapped in
/// place. Returns where the result lies. Throws the same Error on every rank. @note Collective.
std::byte* as_stored(Context& context, const io::Region& region, const grid::Block& block, std::byte* data,
                     Buffer& transposed);

}  // namespace tilewise::multiply
