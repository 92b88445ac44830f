// Brings into memory what a tile depends on: rows that the tile above had too are kept, all others are read.
#pragma once

#include <optional>

#include "tilewise/io/ahead.hpp"
#include "tilewise/stencil/numbers.hpp"
#include "tilewise/stencil/tiling.hpp"

namespace tilewise::stencil {

/// The state before a pass: one file with planes, read tile after tile by all ranks together. All members throw the
/// same Error on every rank.
class TileSource {
public:
    /// `region` and `tiling` must live as long as this. While one tile is swept, the system is asked for the next
    /// where a rank reads at positions of its own. @note Collective.
    TileSource(Context& context, const io::Region& region, std::int64_t planes, const Tiling& tiling,
               io::StrategyKind read, const io::Hints& hints);

    /// Fills field 0 of this rank with what its tile of this turn needs, and uses field 1. Turns come one after the
    /// other from 0 on. @note Collective.
    void load(Context& context, std::int64_t plane, std::int64_t turn, std::int64_t reach, const Fields& fields);

private:
    grid::Share share(const Tile& tile) const;
    void keep(const Context& context, const Tile& tile, const Tile& next, const Fields& fields);

    const io::Region& region_;
    Planes planes_;
    const Tiling& tiling_;
    io::Input input_;
    std::optional<io::Ahead> ahead_;
    Buffer kept_;  // rows of the field that the next tile begins with
};

}  // namespace tilewise::stencil
