// Algorithm `tall`: all singular values and vectors of a matrix that is much longer one way than the other, and larger
// than memory.
#pragma once

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// Rows of W (A, or Aᵀ where A is wide) for each column, in each lane, of which a panel has about so many where there
/// is room: fewer make more of the work that goes into triangles.
inline constexpr std::int64_t tall_panel_factor = 4;
/// And the bytes of a lane's panel, at least, below which calls take longer than what they are for.
inline constexpr std::int64_t tall_panel_bytes = std::int64_t{4} << 20;

/// A = U·diag(s)·Vᵀ in two readings of A, in float64 or complex128 whatever the files hold: the first one makes R of
/// A's QR, panel after panel, of which s and V follow; the second one U, backwards, by the reflections of each panel,
/// which are made again out of its rows and the triangle before it. These triangles lie in a file without a name beside
/// the output meanwhile, n²/2 numbers a panel and lane. U is orthonormal to rounding whatever A is. Where the files are
/// float32 and singular values do not differ by more than that allows, U is A·V·diag(1/s), which float64 makes as
/// orthonormal, for less. Where A is tall, U is read and written once more, to get its signs.
/// With `values_only` one reading is all. `panel_bytes`: of A in float64 in a node's memory at a time; `repeat` and
/// `warmup` are not known.
///
/// Memory of a rank, in numbers, with W m×n over the ranks, K components, c lanes (see TallSteps) and steps of h rows,
/// max(h, c·n) if that is more: 2·h·n, and 4.5·c·n² + 2·c·n·K for its lanes. Between the readings, without the 2·h·n:
/// 2·c·n² + 2·n² for what ranks combine, and on rank 0 10·n² for the decomposition of R.
/// Throws the same Error on every rank, or aborts the job where ranks already wait. @note Collective.
Outcome tall(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

}  // namespace tilewise::svd
