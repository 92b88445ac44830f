// Who has what of the result before the exchange, who wants what of it, and the rectangles that therefore travel.
// Integers only.
//
//     input, 2×3 ranks      held = its transpose       wanted              pieces of rank 1: what it holds, cut
//     [ 0 | 1 | 2 ]         [ 0 | 3 ]                  [ 0 | 1 | 2 ]       by what others want
//     [ 3 | 4 | 5 ]         [ 1 | 4 ]                  [ 3 | 4 | 5 ]
//                           [ 2 | 5 ]
//
// On a square grid and a square matrix each rank has one piece, for the rank on the other side of the diagonal.
#pragma once

#include <vector>

#include "tilewise/grid/share.hpp"

namespace tilewise::transpose {

/// A rectangle of the result, in the order that its file stores it, on its way to or from `peer`.
struct Piece {
    int peer = 0;
    grid::Block block;
};

inline grid::Block common(const grid::Block& a, const grid::Block& b) {
    return {grid::common(a.rows, b.rows), grid::common(a.columns, b.columns)};
}

class Pieces {
public:
    /// `held` and `wanted` say what each rank has and wants; a rank may hold, and want, nothing.
    Pieces(std::vector<grid::Block> held, std::vector<grid::Block> wanted)
        : held_(std::move(held)),
          wanted_(std::move(wanted)) {}

    int ranks() const { return static_cast<int>(held_.size()); }
    const grid::Block& held(int rank) const { return held_[static_cast<std::size_t>(rank)]; }
    const grid::Block& wanted(int rank) const { return wanted_[static_cast<std::size_t>(rank)]; }
    /// What stays where it is.
    grid::Block kept(int rank) const { return common(held(rank), wanted(rank)); }

    /// What a rank sends; O(ranks).
    std::vector<Piece> outgoing(int rank) const {
        return pieces(rank, [&](int peer) { return common(held(rank), wanted(peer)); });
    }
    /// What a rank gets; O(ranks).
    std::vector<Piece> incoming(int rank) const {
        return pieces(rank, [&](int peer) { return common(held(peer), wanted(rank)); });
    }

private:
    template <class BlockOf> std::vector<Piece> pieces(int rank, const BlockOf& block_of) const {
        std::vector<Piece> found;
        for (int peer = 0; peer < ranks(); ++peer) {
            if (const grid::Block block = block_of(peer); peer != rank && block.size() > 0) {
                found.push_back({peer, block});
            }
        }
        return found;
    }

    std::vector<grid::Block> held_, wanted_;
};

}  // namespace tilewise::transpose
