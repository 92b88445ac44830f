// A matrix in the ranks' own memory, however it is dealt out to them: operations read and write it as if it were a
// file.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tilewise/io/strategy/strategy.hpp"

namespace tilewise::io {

/// Where one share of a matrix lies in this rank's memory; strides count numbers, from a row or column of the share
/// to its next.
struct LocalShare {
    std::byte* data = nullptr;
    std::int64_t row_stride = 0, column_stride = 0;
};

/// Who has what. Together the shares of all ranks are the matrix once; a region's own rows and columns may be fewer.
///
///     rank 0 ─┬─ share, in the matrix's coordinates ── its memory here
///             └─ share …
///
/// A rank of a block-cyclic matrix has one share; a rank with scattered blocks has one for each.
struct InMemory {
    int ranks = 1;
    std::function<std::vector<grid::Share>(int rank)> shares_of;
    std::vector<LocalShare> mine;  ///< one for each of this rank's shares
};

/// Moves numbers between `region.memory` and the shares that are wanted, from rank to rank in turn. What travels is
/// packed into two buffers of `exchange_bytes`, whatever the matrix. Throws UsageError where other ranks take part
/// than those that have the matrix.
Strategy make_in_memory();

inline constexpr std::int64_t exchange_bytes = std::int64_t{4} << 20;

}  // namespace tilewise::io
