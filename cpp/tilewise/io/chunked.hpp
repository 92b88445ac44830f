// Matrices in packed chunks: each chunk is unpacked once, by one rank, which sends the others what they want of it.
//
//        chunks       [ 0 | 1 ]      ranks 0 and 1 want the upper and the lower half: rank 0 unpacks 0, 1 and 2,
//                     [ 2 | 3 ]      rank 1 unpacks 3, 4 and 5, and each sends the half of chunks 2 and 3 that is
//                     [ 4 | 5 ]      the other's
//
// A rank unpacks the chunks of which it wants most, until it has its even share of all; the rest go to whoever has not.
#pragma once

#include <memory>

#include "tilewise/io/strategy.hpp"

namespace tilewise::io {

/// Bytes of unpacked chunks that a rank has at a time before it sends them, or one chunk for each of its threads.
inline constexpr std::int64_t chunk_round_bytes = std::int64_t{8} << 20;

/// `by_root`: rank 0 unpacks them all. It only reads.
std::unique_ptr<Strategy> make_chunked(bool by_root);

}  // namespace tilewise::io
