// Sweeps over a field larger than memory: several sweeps over one tile after another, from file to file.
#pragma once

#include "tilewise/stencil/proof.hpp"
#include "tilewise/stencil/stencil.hpp"

namespace tilewise::stencil {

/// Sweeps as stencil() does, which calls it where `options` have a tile, and checks all that they have in common. A
/// pass takes the whole state from one file to the next, `options.depth` sweeps further, or up to a snapshot:
///
///     input ──depth sweeps──▶ states[0] ──depth sweeps──▶ states[1] ──▶ states[0] ──▶ … ──the last ones──▶ output
///
/// In between the state is nowhere but in that file, in the type that is computed in. Within a pass each rank sweeps
/// tile after tile on its own, each from what it depends on in the file: depth·radius cells around it, which
/// neighbouring tiles compute, too. Ranks exchange nothing; they wait for each other between passes.
///
/// Memory per rank, with field = (tile + 2·depth·radius in both directions, as far as the plane goes, or round it):
///     2 fields; 2·depth·radius rows of one; what the kernel keeps (Sweeper::sweep);
///     the tile once more where the orders of storage of input and output differ.
/// @note Collective.
Outcome stencil_streamed(Context& context, const io::Region& from, const io::Region& to,
                         const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options);

/// Where its tiles meet.
Seams seams_of_tiles(const io::Region& from, const Options& options, int ranks);

}  // namespace tilewise::stencil
