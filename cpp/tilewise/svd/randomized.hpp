// Algorithm `randomized`: the largest singular values of a matrix that need not fit into memory, out of a few passes
// over its file.
#pragma once

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// The `components` largest of A (M×N), by block Krylov iteration (see Finder) with blocks of l = min(components +
/// oversample, M, N) columns: readings of the file until every ‖Aᵀu − σv‖ is at most `tolerance`·σ, or rounding of σ₁;
/// or, where `power` is not negative, power + 2 of them (two more where squares of squares of the numbers leave their
/// range). After `most_readings` it has failed: where `require_converged`, nothing is written then, and the
/// verification says so. Else the files are written; proving them is left to the caller, and takes one more reading.
/// `dtype` is the type of the arithmetic and of the files: sums over many rows, the space, and everything small, are in
/// float64. `repeat` and `warmup` repeat the readings too, which count into the samples.
///
/// Memory of a rank, with H×W the shape along and across the panels (see Panels), t = size of `dtype`, L = l rounded up
/// to 64/t, B = `basis`, and c lanes with panels of p rows:
///     W·L·t + 12·W·B + the larger of  c·(p·W·t + (p + W)·L·t + W·l·8) + 1.25·(H/ranks)·l·t  and  4·W·l·8
/// p·W·t is 0 where numbers are used as they are mapped, and p·W·(t + size in the file) where they are converted. Then,
/// to write, 1.25·(H/ranks)·l·t + W·(L + K)·t + the rank's part of Vᵀ and of U·diag(s). A space that is not needed
/// (12·W·B) is never made.
/// Throws the same Error on every rank, or aborts the job where ranks already wait. @note Collective.
Outcome randomized(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

}  // namespace tilewise::svd
