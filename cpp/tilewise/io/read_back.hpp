// Whether a file holds what was written: checksums taken of the data in memory, compared with those of the bytes that
// the file gives back. Of samples always, since some file systems take what they cannot keep; of everything where that
// shall be proved.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy.hpp"

namespace tilewise::io {

class ReadBack {
public:
    enum class Extent { samples, everything };

    ReadBack(Extent extent, int rank) : extent_(extent), rank_(rank) {}

    /// Remembers what this rank's share holds: samples (io/samples.hpp), or everything in pieces of at most 8 MiB,
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
