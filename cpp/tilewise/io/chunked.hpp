// Matrices in packed chunks: each chunk is unpacked once, by one rank, which sends the others what they want of it.
//
//        chunks       [ 0 | 1 ]      ranks 0 and 1 want the upper and the lower half: rank 0 unpacks 0, 1 and 2,
//                     [ 2 | 3 ]      rank 1 unpacks 3, 4 and 5, and each sends the half of chunks 2 and 3 that is
//                     [ 4 | 5 ]      the other's
//
// A rank unpacks the chunks of which it wants most, until it has its even share of all; the rest go to whoever has not.
// Design: docs/design/formats.md
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy/strategy.hpp"

namespace tilewise::io {

/// Bytes of unpacked chunks that a rank has at a time before it sends them, or one chunk for each of its threads.
inline constexpr std::int64_t chunk_round_bytes = std::int64_t{8} << 20;

/// `by_root`: rank 0 unpacks them all. It only reads.
Strategy make_chunked(bool by_root);

/// Ways in which unpacking goes wrong on purpose, for tests of what notices it.
enum class UnpackingFault {
    none,
    bit,       ///< the lowest bit of a chunk's first byte is another
    shift,     ///< each chunk's numbers begin one number late
    forgotten  ///< stored chunks are taken for ones that are not
};

/// From here on this process unpacks wrongly, or no longer does so.
void break_unpacking(UnpackingFault fault);

/// The chunks of one region, without MPI: also for comparing samples with the format's own library before a job. Calls
/// of several threads may overlap where each has its own memory.
///
///     in the file     [ packed bytes of chunk 4 ]          filters undone, in order
///     unpacked        [ . . a b . . c d . . e f ]          `start` 2, `down` 4, `across` 1
///     its block       a b                                  what `copy_row` takes out row by row
///                     c d
///                     e f
class ChunkUnpacker {
public:
    /// Memory of one thread, which grows to what a chunk needs.
    struct Memory {
        Array<std::byte> packed, first, second;
    };

    /// Opens the region's file; throws IoError. `region` must outlive this.
    explicit ChunkUnpacker(const Region& region);

    /// Rows and columns of the stored matrix that a chunk holds.
    grid::Block block_of(std::int64_t chunk) const;

    /// All numbers of a chunk, as bytes in the file's byte order, valid until `memory` is used again. Adds the bytes
    /// and calls that it takes to `read` and `calls`. Throws UsageError for a malformed chunk.
    const std::byte* unpack(std::int64_t chunk, Memory& memory, std::atomic<std::int64_t>& read,
                            std::atomic<std::int64_t>& calls) const;

    /// Copies the numbers of `columns` in `row` from an unpacked chunk with that `block`.
    void copy_row(const std::byte* numbers, const grid::Block& block, std::int64_t row, grid::Range columns,
                  std::byte* to) const;

private:
    const Region& region_;
    const Chunks& chunks_;
    std::int64_t item_, chunks_across_;
    std::unique_ptr<PosixFile> file_;  ///< where all chunks are in one
};

}  // namespace tilewise::io
