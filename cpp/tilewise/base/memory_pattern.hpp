// What every byte of a sample file has to be: a number that depends on who wrote it, in which block, where in it, and
// when. device/pattern.cu has the same for graphics processors.
#pragma once

#include <cstdint>

namespace tilewise {

/// One block's content.
struct Pattern {
    std::uint64_t seed = 0;

    /// Of a block that `rank` wrote; `round` tells apart what was written over the same place.
    static Pattern of(int rank, std::int64_t block, int round) {
        const std::uint64_t who = mixed((static_cast<std::uint64_t>(rank) << 32) ^ static_cast<std::uint64_t>(round));
        return {mixed(who + static_cast<std::uint64_t>(block))};
    }
    /// Eight bytes, the lowest one first: those from 8·index on.
    std::uint64_t word(std::int64_t index) const {
        return mixed(seed + static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15U);
    }
    unsigned char byte(std::int64_t offset) const {
        return static_cast<unsigned char>(word(offset / 8) >> (8 * (offset % 8)));
    }

    /// Steele, Lea and Flood's SplitMix64: every bit of the result depends on every bit of `x`.
    static std::uint64_t mixed(std::uint64_t x) {
        x += 0x9e3779b97f4a7c15U;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
        return x ^ (x >> 31);
    }
};

}  // namespace tilewise
