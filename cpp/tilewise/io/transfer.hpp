// From a region to a rank's block in memory and back, whatever the strategy: checks, conversion, generated matrices.
#pragma once

#include "tilewise/io/strategy.hpp"

namespace tilewise::io {

/// Which block of the matrix, as the operation sees it, a rank wants.
using WantedBlock = std::function<grid::Block(int rank)>;

/// Fills `data` with this rank's block in type `dtype`, stored as `region.stored(block)` without gaps; generated regions are
/// made, all others read. Throws the same Error on every rank. @note Collective.
void load(Context& context, const Strategy& strategy, const Region& region, Dtype dtype, const WantedBlock& wanted,
          std::byte* data);

/// Gets the part file's disk space, so that a full disk is found before anybody writes. @note Collective.
void begin_store(Context& context, const Region& region);
/// After all have written: flushes to disk if `sync`, and checks the file's size. @note Collective.
void end_store(Context& context, const Region& region, bool sync);
/// Both, and between them writes every rank's block, which is of the region's own type. @note Collective.
void store(Context& context, const Strategy& strategy, const Region& region, const WantedBlock& wanted, std::byte* data,
           bool sync);

/// Rank 0 looks whether the file is regular and as large as it should be; all throw if not. @note Collective.
void check_file(Context& context, const Region& region);

}  // namespace tilewise::io
