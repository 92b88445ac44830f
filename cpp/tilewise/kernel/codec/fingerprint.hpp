// A number that depends on where every item of a matrix lies, and is the same for a matrix and its transpose when rows
// and columns change places.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

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
