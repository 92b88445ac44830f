// Which block of the matrix each rank sweeps, and which rectangles of others' blocks fill the margin around it.
// Integers only.
//
//     the margin of rank 4 on 3×3 ranks       on 2×2, periodic: rank 0 has rank 1 both on its left and on its right,
//                                             and every corner is rank 3's
//       0 0 | 1 1 1 | 2 2                       3 3 | 2 2 2 | 3 3
//       ----+-------+----                       ----+-------+----
//       3 3 | 4 4 4 | 5 5                       1 1 | 0 0 0 | 1 1
//       3 3 | 4 4 4 | 5 5                       1 1 | 0 0 0 | 1 1
//       ----+-------+----                       ----+-------+----
//       6 6 | 7 7 7 | 8 8                       3 3 | 2 2 2 | 3 3
//
// Design: docs/design/stencil.md
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"

namespace tilewise::stencil {

/// How a plane is cut, as it is stored. The grid is over the matrix as the user sees it: where that is stored column by
/// column, its rows of ranks lie along the columns of what is stored.
class Layout {
public:
    /// `order`: the place in the grid, counted row by row, of each rank; empty: rank i is at place i. Throws UsageError
    /// where two ranks have one place.
    Layout(std::int64_t rows, std::int64_t columns, grid::Grid grid, grid::Remainder remainder, bool transposed,
           std::vector<int> order = {})
        : grid_(grid),
          transposed_(transposed),
          rows_(rows, transposed ? grid.columns : grid.rows, remainder),
          columns_(columns, transposed ? grid.rows : grid.columns, remainder),
          place_of_(std::move(order)),
          rank_at_(static_cast<std::size_t>(grid.size()), -1) {
        if (place_of_.empty()) {
            place_of_.resize(rank_at_.size());
            std::iota(place_of_.begin(), place_of_.end(), 0);
        }
        for (std::size_t rank = 0; rank < place_of_.size(); ++rank) {
            const auto place = static_cast<std::size_t>(place_of_[rank]);
            if (place_of_.size() != rank_at_.size() || place >= rank_at_.size() || rank_at_[place] >= 0) {
                throw UsageError("the order of ranks is none of the grid's " + std::to_string(grid.size()) + " places");
            }
            rank_at_[place] = static_cast<int>(rank);
        }
    }

    int ranks() const { return grid_.size(); }
    const grid::Partition& rows() const { return rows_; }
    const grid::Partition& columns() const { return columns_; }
    grid::Place place(int rank) const { return transposed(grid_.place(place_of_[static_cast<std::size_t>(rank)])); }
    int rank(grid::Place place) const { return rank_at_[static_cast<std::size_t>(grid_.rank(transposed(place)))]; }
    grid::Block block(int rank) const {
        const grid::Place at = place(rank);
        return {rows_[at.row], columns_[at.column]};
    }

private:
    grid::Place transposed(grid::Place place) const {
        return transposed_ ? grid::Place{place.column, place.row} : place;
    }

    grid::Grid grid_;
    bool transposed_;
    grid::Partition rows_, columns_;
    std::vector<int> place_of_, rank_at_;
};

/// A stretch of one direction, seen from part `own` of a partition: where it lies there, counted from the beginning of
/// the part, and where it lies in the part that has it. `side` is −1 before the own part, 1 behind it.
struct Stretch {
    int part = 0, side = 0;
    grid::Range here, there;
};

/// What lies from `before` cells ahead of [begin, end) to `behind` cells after it; a periodic direction goes round, as
/// often as it takes.
inline std::vector<Stretch> stretches(const grid::Partition& cut, grid::Range own, std::int64_t before,
                                      std::int64_t behind, bool periodic) {
    std::vector<Stretch> found;
    const std::int64_t count = cut.count();
    for (std::int64_t at = own.begin - before; at < own.end + behind && count > 0;) {
        if (at == own.begin && own.size() > 0) {
            at = own.end;
            continue;
        }
        const std::int64_t limit = at < own.begin ? own.begin : own.end + behind;
        if ((at < 0 || at >= count) && !periodic) {
            at = at < 0 ? std::min<std::int64_t>(0, limit) : limit;
            continue;
        }
        const std::int64_t inside = kernel::source_of(kernel::Boundary::periodic, at, true, true, count);
        const int part = cut.part_of(inside);
        const std::int64_t length = std::min(limit - at, cut[part].end - inside);
        found.push_back({part,
                         at < own.begin ? -1 : 1,
                         {at - own.begin, at - own.begin + length},
                         {inside - cut[part].begin, inside - cut[part].begin + length}});
        at += length;
    }
    return found;
}

/// A rectangle of cells on its way between this rank and `peer`, in the coordinates of both blocks. `side` numbers the
/// place in the receiver's margin, 0 … 8 row by row, so that what two ranks exchange in several places is told apart.
struct Piece {
    int peer = 0, side = 0;
    grid::Block here, there;

    std::int64_t size() const { return here.size(); }
};

class Halo {
public:
    /// `margin` cells on every side; `corners`: whether sweeps look there at all.
    Halo(const Layout& layout, std::int64_t margin, bool periodic, bool corners)
        : layout_(layout),
          margin_(margin),
          periodic_(periodic),
          corners_(corners) {}

    const Layout& layout() const { return layout_; }
    std::int64_t margin() const { return margin_; }

    /// What fills the margin of `rank` out of others' blocks, in ascending order of side.
    std::vector<Piece> incoming(int rank) const { return pieces(rank, false); }
    /// What fills it out of its own block, where a periodic direction has one rank.
    std::vector<Piece> wrapped(int rank) const { return pieces(rank, true); }

    /// What others get of the block of `rank`, in ascending order of side. Neighbours are mutual, so only they are
    /// asked.
    std::vector<Piece> outgoing(int rank) const {
        std::vector<int> peers;
        for (const Piece& piece : incoming(rank)) {
            if (std::find(peers.begin(), peers.end(), piece.peer) == peers.end()) {
                peers.push_back(piece.peer);
            }
        }
        std::vector<Piece> found;
        for (const int peer : peers) {
            for (const Piece& piece : incoming(peer)) {
                if (piece.peer == rank) {
                    found.push_back({peer, piece.side, piece.there, piece.here});
                }
            }
        }
        std::stable_sort(found.begin(), found.end(), [](const Piece& a, const Piece& b) { return a.side < b.side; });
        return found;
    }

private:
    std::vector<Piece> pieces(int rank, bool own) const {
        const grid::Place place = layout_.place(rank);
        const auto down = along(layout_.rows(), place.row), across = along(layout_.columns(), place.column);
        std::vector<Piece> found;
        for (const Stretch& rows : down) {
            for (const Stretch& columns : across) {
                if ((rows.side == 0 && columns.side == 0) || (rows.side != 0 && columns.side != 0 && !corners_)) {
                    continue;
                }
                const int peer = layout_.rank({rows.part, columns.part});
                if ((peer == rank) == own) {
                    found.push_back({peer,
                                     3 * (rows.side + 1) + columns.side + 1,
                                     {rows.here, columns.here},
                                     {rows.there, columns.there}});
                }
            }
        }
        std::stable_sort(found.begin(), found.end(), [](const Piece& a, const Piece& b) { return a.side < b.side; });
        return found;
    }

    /// The margin on both sides of a part, and the part itself between them.
    std::vector<Stretch> along(const grid::Partition& cut, int part) const {
        std::vector<Stretch> found = stretches(cut, cut[part], margin_, margin_, periodic_);
        const grid::Range all{0, cut[part].size()};
        found.push_back({part, 0, all, all});
        return found;
    }

    Layout layout_;
    std::int64_t margin_;
    bool periodic_, corners_;
};

}  // namespace tilewise::stencil
