// Which part of a plane is in memory at a time where all of it does not fit, and which cells around it a pass of
// several sweeps depends on. Integers only.
//
//     a tile t and what it depends on     the next tile below: rows (=) that
//     in a pass of two sweeps             were read for the one above stay
//
//       . . . . . . .                       = = = = = = =
//       . . . . . . .                       = = = = = = =
//       . . t t t . .                       = = t t t = =
//       . . t t t . .                       = = t t t = =
//       . . . . . . .                       . . . . . . .
//       . . . . . . .                       . . . . . . .
#pragma once

#include <vector>

#include "tilewise/grid/share.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"

namespace tilewise::stencil {

/// One turn of one rank, in the coordinates of the plane as it is stored.
struct Tile {
    grid::Block cells;    ///< that are computed; none where the rank has nothing to do
    grid::Block needed;   ///< of the state before; in a periodic direction also beyond both ends
    grid::Range fresh;    ///< rows of it that the rank has not read for its tile before
    kernel::Edges edges;  ///< which sides of `needed` are edges of the plane

    /// The cells that a pass must have right when `left` more cells around the tile are looked at later.
    grid::Block right(std::int64_t left) const;
};

/// A plane cut into tiles of nearly equal size, and who sweeps them in which sequence.
class Tiling {
public:
    /// `rows` and `columns` are the most that a tile may have. Each rank goes down its own part of the plane, strip by
    /// strip, so that rows are read once; `in_turn`: ranks take the tiles one by one, so that results come in order.
    Tiling(std::int64_t plane_rows, std::int64_t plane_columns, std::int64_t rows, std::int64_t columns, int ranks,
           bool in_turn, bool periodic);

    const grid::Partition& rows() const { return rows_; }
    const grid::Partition& columns() const { return columns_; }
    bool is_periodic() const { return periodic_; }
    /// The same on all ranks.
    std::int64_t turns() const { return in_turn_ ? (tiles() + ranks() - 1) / ranks() : dealt_[0].size(); }
    /// Of a pass whose sweeps look at `reach` cells around a tile.
    Tile tile(int rank, std::int64_t turn, std::int64_t reach) const;
    /// Rows and columns that the largest tile needs.
    grid::Block largest(std::int64_t reach) const;

private:
    int ranks() const { return dealt_.parts(); }
    std::int64_t tiles() const { return dealt_.count(); }
    /// The number of a tile, strip by strip; −1: none.
    std::int64_t number(int rank, std::int64_t turn) const;
    grid::Block needed(const grid::Block& cells, std::int64_t reach) const;

    grid::Partition rows_, columns_, dealt_;
    bool in_turn_, periodic_;
};

/// One direction of what is read: the places in the plane, ascending and each once, and the runs of them that fill
/// a field, where they may come again.
struct Window {
    /// `here` in the field, `there` among all places, one behind the other.
    struct Run {
        std::int64_t here, there, length;
    };
    std::vector<grid::Range> places;
    std::vector<Run> runs;

    /// `wanted` may lie beyond [0, count) in a periodic direction.
    Window(grid::Range wanted, std::int64_t count, bool periodic);
};

}  // namespace tilewise::stencil
