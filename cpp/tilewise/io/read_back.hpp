// Proof that a file holds what was written: checksums taken of the data in memory, compared with those of the bytes that the file gives back.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy.hpp"

namespace tilewise::io {

class ReadBack {
public:
    /// Remembers what this rank's share holds, in pieces of at most 8 MiB. Costs one pass over the data.
    void note(const Transfer& transfer, const grid::Share& share);
    /// Remembers bytes at an offset of the file.
    void note(std::int64_t offset, const std::byte* data, std::int64_t bytes);

    /// Reads everything again and returns how many pieces, over all ranks, the file holds differently. @note Collective.
    std::int64_t compare(Context& context, const Region& region) const;

private:
    struct Piece {
        grid::Share share;
        std::uint64_t sum;
    };
    struct Bytes {
        std::int64_t offset, bytes;
        std::uint64_t sum;
    };
    std::vector<Piece> pieces_;
    std::vector<Bytes> bytes_;
};

}  // namespace tilewise::io
