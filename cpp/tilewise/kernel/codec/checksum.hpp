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

// A number that depends on where every item of a matrix lies, and is the same for a matrix and its transpose when rows
// and columns change places.

/// Σ bits(i, j)·u(first_row + i)·v(first_column + j) modulo 2⁶⁴ over a dense rows × columns block of items of 1, 2, 4,
/// 8 or 16 bytes; u and v are odd numbers drawn from `seed`. With `transposed`, u belongs to columns and v to rows: so
/// the sum over A equals the transposed one over Aᵀ. Sums of blocks add up to that of the whole. One wrong item always
/// changes it, several do but for a chance of some 2⁻⁶⁰. Freivalds' idea in integers, so that it is exact. The same
/// bytes are wanted on both sides: swap them first where byte orders differ. Reads the block once.
std::uint64_t fingerprint(const std::byte* data, std::int64_t rows, std::int64_t columns, std::size_t item,
                          std::int64_t first_row, std::int64_t first_column, bool transposed, std::uint64_t seed,
                          int threads);

/// Gives all NaNs among `count` floating-point numbers of 2, 4 or 8 bytes the same bits, so that a fingerprint does not
/// depend on signs and payloads that a text cannot hold.
void make_nans_equal(std::byte* data, std::int64_t count, std::size_t width);

}  // namespace tilewise::kernel
