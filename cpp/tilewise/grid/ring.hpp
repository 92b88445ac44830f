// Who sits beside whom in each step of a tournament: column blocks in the ordering of Brent and Luk, dealt out to
// ranks.
//
//     step 0      0 → 2 → 4 → 6 ┐        step 1      0   1   2   4
//                 │   │   │   │ │                    │   │   │   │
//                 1 ← 3 ← 5 ← 7 ┘                    3   5   7   6
//
// Tops move right and bottoms left; at the ends they turn round, and the first top stays. After blocks − 1 steps each
// block has met every other one, and all are where they were.
//
//     position    0   1   2   3          each position holds two blocks
//     rank        [ 0  ] [ 1  ]          neighbouring positions belong to a rank
//
// So only the blocks at a rank's ends travel in a step, to its neighbours.
#pragma once

#include "tilewise/grid/grid.hpp"

namespace tilewise::grid {

enum class Side { top, bottom };

struct Seat {
    int position = 0;
    Side side = Side::top;

    bool operator==(const Seat&) const = default;
};

class Ring {
public:
    /// `blocks` is even and at least 2. Ranks beyond the positions have none.
    Ring(int blocks, int ranks) : blocks_(blocks), ranks_(ranks) {}

    int blocks() const { return blocks_; }
    int positions() const { return blocks_ / 2; }
    /// Steps of a sweep.
    int steps() const { return blocks_ - 1; }

    /// The positions of a rank, as a range.
    Range positions_of(int rank) const { return Partition(positions(), ranks_)[rank]; }
    int rank_of(int position) const { return Partition(positions(), ranks_).part_of(position); }
    /// The blocks that a rank begins each sweep with, as a range.
    Range first_blocks_of(int rank) const {
        const Range mine = positions_of(rank);
        return {2 * mine.begin, 2 * mine.end};
    }

    /// The block that sits there in a step, counted from 0; the same in every sweep. O(1)
    int block_at(Seat there, int step) const {
        if (there == fixed) {
            return 0;
        }
        const int turns = step % cycle();
        const Seat first = seat((place(there) + cycle() - turns) % cycle());
        return 2 * first.position + (first.side == Side::bottom ? 1 : 0);
    }
    /// Where the block that sits there goes after a step.
    Seat next(Seat from) const { return from == fixed ? fixed : seat((place(from) + 1) % cycle()); }
    /// Where the block that comes there after a step has sat.
    Seat before(Seat to) const { return to == fixed ? fixed : seat((place(to) + cycle() - 1) % cycle()); }

private:
    static constexpr Seat fixed{0, Side::top};
    int cycle() const { return blocks_ - 1; }
    /// Seats in the sequence in which a block comes by: tops from left to right, then bottoms from right to left; the
    /// first top is none of them.
    int place(Seat seat) const {
        return seat.side == Side::top ? seat.position - 1 : 2 * positions() - 2 - seat.position;
    }
    Seat seat(int place) const {
        return place < positions() - 1 ? Seat{place + 1, Side::top} : Seat{2 * positions() - 2 - place, Side::bottom};
    }

    int blocks_, ranks_;
};

}  // namespace tilewise::grid
