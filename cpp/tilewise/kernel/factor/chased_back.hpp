// The reflectors of bulge chasing, applied in blocks:
//
//      sweeps  0 1 2 3 4 5 …       A block is made of one hop of some sweeps. Its reflectors begin a row below each
//              1                   other, so that V is a parallelogram. Blocks of later sweeps come first; where blocks
//              v 1                 of different hops share rows, the one nearer to the top is of later sweeps. So hops
//      hop 0   v v 1 .             come one after the other from the top, and within a hop blocks from the last to
//              - v v . .           the first: the rows of C that are worked on move up slowly, and stay in the cache.
//              1 - v . .
//      hop 1   v 1 -
//              v v 1
//
// The "diamonds" of A. Haidar, P. Luszczek, J. Dongarra, 2014.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/kernel/factor/block_reflector.hpp"
#include "tilewise/kernel/factor/bulge_chasing.hpp"

namespace tilewise::kernel {

/// Reflectors in a block.
inline constexpr std::int64_t sweeps_in_block = 32;

class ChasedBlocks {
public:
    /// Of U or V: makes T of all blocks, `sweeps_in_block` / (2·width) of n² numbers.
    ChasedBlocks(const ChasedReflectors& reflectors, bool left, int threads);
    /// C ← U(0,·)·U(1,·)·…·C for a slab of C; `block` is for use by the caller's thread.
    void apply(BlockReflector& block, double* slab, std::int64_t stride, std::int64_t width) const;

private:
    struct Place {
        std::int64_t sweep, row, count;  ///< the first sweep, the row where its reflector begins, and how many sweeps
    };
    void load(const Place& place, BlockReflector& block, double* tau) const;

    const ChasedReflectors& reflectors_;
    bool left_;
    std::vector<Place> places_;  ///< in the sequence in which they are applied
    Array<double> t_;
};

}  // namespace tilewise::kernel
