// A 64-bit checksum of bytes, fast enough to cost nothing beside reading them: against accidents, not against
// attackers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// Checksum of `bytes` bytes. Any change within one 64-bit word changes it for certain, others but for a chance of
/// about 2⁻⁶⁴. Give the place of the data as `seed`, so that blocks that have changed places are seen. The same on
/// every processor; `data` need not be aligned.
///
///     words   0  1  2  3  4  5  6  7 | 8  9 …     word i goes to lane i mod 8
///     lanes   0  1  2  3  4  5  6  7 | 0  1 …     lane = rotate(lane ^ word · odd) · another odd
///
/// The last word is filled up with zeros; the length goes in at the end.
std::uint64_t checksum(const std::byte* data, std::size_t bytes, std::uint64_t seed);

/// The same number, byte by byte: the reference.
std::uint64_t plain_checksum(const std::byte* data, std::size_t bytes, std::uint64_t seed);

}  // namespace tilewise::kernel
