// Whether a file holds what was written: checksums taken of the data in memory, compared with those of the bytes that
// the file gives back. Of samples always, since some file systems take what they cannot keep; of everything where that
// shall be proved.
//
// Samples are few numbers of a share, and enough of them to meet every call of a plausible size; those that were read
// are compared with the file, too.
//
//     file     [ r0 r0 r1 r1 r0 r0 r1 r1 | r0 r0 r1 r1 … ]
//     cell       ^            ^             ^
//
// In each cell of the file those are the first and the last run of the rank: of the first its head, of the last its
// tail.
//
// Where ranks have narrow pieces of the same cells, they take turns, so that a rank looks at about as many places as
// its share has cells.
// Design: docs/design/formats.md
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/grid/share.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy/strategy.hpp"

namespace tilewise::io {

inline constexpr std::int64_t sample_cell = std::int64_t{1} << 20;  ///< bytes of the file
inline constexpr std::int64_t sample_bytes = 512;                   ///< that are looked at in one place

/// Consecutive elements: `first` counts row by row through the stored matrix, `local` in the share's memory.
struct Sample {
    std::int64_t first, count, local;
};

/// The samples of what `share` has of the elements `within`, in ascending order. `item` and `cell` are bytes; `turn`:
/// the rank, or −1 for a look at every cell, whoever else has a part of it.
std::vector<Sample> samples_of(const grid::Share& share, std::int64_t columns, std::int64_t item, grid::Range within,
                               std::int64_t cell, int turn);

class ReadBack {
public:
    enum class Extent { samples, everything };

    ReadBack(Extent extent, int rank) : extent_(extent), rank_(rank) {}

    /// Remembers what this rank's share holds: samples, or everything in pieces of at most 8 MiB,
    /// which costs one pass over the data.
    void note(const Transfer& transfer, const grid::Share& share);
    /// Remembers bytes at an offset of the file, or the last of them.
    void note(std::int64_t offset, const std::byte* data, std::int64_t bytes);

    /// Reads what was noted again, and returns how many pieces, over all ranks, the file holds differently or not at
    /// all. Call it when all have closed the file.
    /// @note Collective.
    std::int64_t compare(Context& context, const Region& region) const;

private:
    /// Pieces that differ on this rank.
    std::int64_t different(Counters& count, const Region& region) const;

    struct Piece {
        grid::Share share;
        std::uint64_t sum;
    };
    struct Bytes {
        std::int64_t offset, bytes;
        std::uint64_t sum;
    };
    Extent extent_;
    int rank_;
    std::vector<Piece> pieces_;
    std::vector<Bytes> bytes_;
};

}  // namespace tilewise::io
