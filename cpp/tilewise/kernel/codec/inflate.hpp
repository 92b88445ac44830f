// Unpacks deflate (RFC 1951) in its zlib wrapper (RFC 1950), which HDF5, TIFF and Zarr pack their chunks with.
//
//     zlib      [ 2 bytes | blocks … | Adler-32 of what they unpack to ]
//     block     stored: bytes as they are
//               fixed or dynamic: symbols of two Huffman codes, of which the second only says distances
//     symbol    a byte; or a length of 3 … 258 and a distance: so many bytes once more, from that far back
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// Unpacks `packed` bytes at `from` to `to`, which has room for `room` bytes, and returns how many came out. Writes
/// and reads nowhere else, whatever the bytes are. What follows the stream is not looked at. Throws UsageError where it
/// is malformed, ends early, fails its checksum, or unpacks to more than there is room for.
///
/// Symbols are looked up, not walked to: 11 bits that have been read lead to a symbol of the first code with its extra
/// bits and its length, or to a second table for the longer ones; 64 bits are held, so that one reading does for a
/// length and its distance. While 8 bytes are left to read and 300 to write, nothing else is checked.
std::int64_t inflate(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room);

}  // namespace tilewise::kernel
