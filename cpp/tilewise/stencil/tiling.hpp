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

#include <algorithm>
#include <vector>

#include "tilewise/grid/share.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"
#include "tilewise/stencil/halo.hpp"

namespace tilewise::stencil {

inline int parts_of(std::int64_t count, std::int64_t most) {
    const std::int64_t size = std::max<std::int64_t>(1, most);
    return static_cast<int>(std::max<std::int64_t>(1, (count + size - 1) / size));
}

inline grid::Range around(grid::Range range, std::int64_t cells) { return {range.begin - cells, range.end + cells}; }

inline grid::Block around(const grid::Block& block, std::int64_t cells) {
    return {around(block.rows, cells), around(block.columns, cells)};
}

/// One turn of one rank, in the coordinates of the plane as it is stored.
struct Tile {
    grid::Block cells;    ///< that are computed; none where the rank has nothing to do
    grid::Block needed;   ///< of the state before; in a periodic direction also beyond both ends
    grid::Range fresh;    ///< rows of it that the rank has not read for its tile before
    kernel::Edges edges;  ///< which sides of `needed` are edges of the plane

    /// The cells that a pass must have right when `left` more cells around the tile are looked at later.
    grid::Block right(std::int64_t left) const { return grid::common_block(around(cells, left), needed); }
};

/// A plane cut into tiles of nearly equal size, and who sweeps them in which sequence.
class Tiling {
public:
    /// `rows` and `columns` are the most that a tile may have. Each rank goes down its own part of the plane, strip by
    /// strip, so that rows are read once; `in_turn`: ranks take the tiles one by one, so that results come in order.
    Tiling(std::int64_t plane_rows, std::int64_t plane_columns, std::int64_t rows, std::int64_t columns, int ranks,
           bool in_turn, bool periodic)
        : rows_(plane_rows, parts_of(plane_rows, rows)),
          columns_(plane_columns, parts_of(plane_columns, columns)),
          dealt_(std::int64_t{rows_.parts()} * columns_.parts(), ranks),
          in_turn_(in_turn),
          periodic_(periodic) {}

    const grid::Partition& rows() const { return rows_; }
    const grid::Partition& columns() const { return columns_; }
    bool is_periodic() const { return periodic_; }
    /// The same on all ranks.
    std::int64_t turns() const { return in_turn_ ? (tiles() + ranks() - 1) / ranks() : dealt_[0].size(); }
    /// Of a pass whose sweeps look at `reach` cells around a tile.
    Tile tile(int rank, std::int64_t turn, std::int64_t reach) const {
        const auto cells_of = [&](std::int64_t number) -> grid::Block {
            return {rows_[static_cast<int>(number % rows_.parts())],
                    columns_[static_cast<int>(number / rows_.parts())]};
        };
        const std::int64_t own = number(rank, turn), before = number(rank, turn - 1);
        if (own < 0 || cells_of(own).size() == 0) {
            return {};
        }
        Tile tile{.cells = cells_of(own), .needed = needed(cells_of(own), reach), .fresh = {}, .edges = {}};
        tile.fresh = tile.needed.rows;
        if (before >= 0 && before / rows_.parts() == own / rows_.parts()) {
            const grid::Range read = needed(cells_of(before), reach).rows;
            tile.fresh.begin = std::clamp(read.end, tile.fresh.begin, tile.fresh.end);
        }
        tile.edges = {.top = !periodic_ && tile.needed.rows.begin == 0,
                      .bottom = !periodic_ && tile.needed.rows.end == rows_.count(),
                      .left = !periodic_ && tile.needed.columns.begin == 0,
                      .right = !periodic_ && tile.needed.columns.end == columns_.count()};
        return tile;
    }

    /// Rows and columns that the largest tile needs.
    grid::Block largest(std::int64_t reach) const {
        const auto along = [&](const grid::Partition& cut) -> grid::Range {
            const std::int64_t most = cut[0].size() + 2 * reach;
            return {0, periodic_ ? most : std::min(most, cut.count())};
        };
        return {along(rows_), along(columns_)};
    }

private:
    int ranks() const { return dealt_.parts(); }
    std::int64_t tiles() const { return dealt_.count(); }
    /// The number of a tile, strip by strip; −1: none.
    std::int64_t number(int rank, std::int64_t turn) const {
        const std::int64_t number = in_turn_ ? turn * ranks() + rank : dealt_[rank].begin + turn;
        return turn >= 0 && number < (in_turn_ ? tiles() : dealt_[rank].end) ? number : -1;
    }

    grid::Block needed(const grid::Block& cells, std::int64_t reach) const {
        const grid::Block wide = around(cells, reach);
        return periodic_ ? wide : grid::common_block(wide, {{0, rows_.count()}, {0, columns_.count()}});
    }

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
    Window(grid::Range wanted, std::int64_t count, bool periodic) {
        if (!periodic) {
            places = {wanted};
            runs = {{0, 0, wanted.size()}};
            return;
        }
        const auto pieces = stretches(grid::Partition(count, 1), {wanted.begin, wanted.begin}, 0, wanted.size(), true);
        std::vector<grid::Range> all;
        for (const Stretch& piece : pieces) {
            all.push_back(piece.there);
        }
        std::sort(all.begin(), all.end(), [](grid::Range a, grid::Range b) { return a.begin < b.begin; });
        for (const grid::Range& range : all) {
            if (!places.empty() && range.begin <= places.back().end) {
                places.back().end = std::max(places.back().end, range.end);
            } else {
                places.push_back(range);
            }
        }
        for (const Stretch& piece : pieces) {
            std::int64_t before = 0;
            for (const grid::Range& range : places) {
                before += std::clamp<std::int64_t>(piece.there.begin - range.begin, 0, range.size());
            }
            runs.push_back({piece.here.begin, before, piece.here.size()});
        }
    }
};

}  // namespace tilewise::stencil
