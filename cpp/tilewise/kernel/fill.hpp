// Makes blocks of matrices that need no file: random, normal, identity, ramp, graded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/grid.hpp"

namespace tilewise::kernel {

enum class Fill { random, normal, identity, ramp, graded };

/// Throws UsageError for an unknown name.
Fill fill_named(std::string_view name);

/// Fills a contiguous row-major block in any dtype. Element (i, j) depends on (kind, seed, i, j, columns) alone, so the
/// matrix is the same on any number of ranks. `columns` are those of the whole matrix.
///
/// random: uniform in [0, 1), of as many binary digits as the type has; integers uniform in −8 … 7, unsigned 0 … 15.
/// normal: standard normal, integers rounded from 4 times that. identity. ramp: i·columns + j. graded: normal, column j
/// scaled by 10^(−20·j/columns). Complex: two independent parts; of identity and ramp the second is 0.
void fill(std::byte* data, const grid::Block& block, std::int64_t columns, Dtype dtype, Fill kind, std::uint64_t seed,
          int threads);

}  // namespace tilewise::kernel
