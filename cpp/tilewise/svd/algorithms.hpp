// The ways to decompose, in one table: one line here is one algorithm more.
#pragma once

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// `jacobi`: one-sided block Jacobi over all ranks, of a matrix that fits in memory, as those of `serial`, `local` and
/// `two_stage` do. `flops` counts the products of the sweeps (see Swept); what precedes and follows them is not in it.
/// Memory: see start.hpp and finish.hpp; the input is kept as well where repetitions follow.
/// `serial`: on one rank, by `sweep_serially`, from the columns of A. @note Collective.
Outcome jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

/// `local`: LAPACK's gesdd in float64 on one rank, the only one that there may be. Memory: m·n for the matrix, n·m + n²
/// for the vectors, 4·n² for LAPACK, in float64 numbers, m ≥ n. `flops` are those of the usual estimate,
/// 4·m·n² + 22·n³. `two_stage`: see kernel/factor/two_stage.hpp; on rank 0, with the cores of all ranks of its node.
/// With `keep_small` it may be jacobi that does it, after another reading. @note Collective.
Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

/// Rows of W (A, or Aᵀ where A is wide) for each column, in each lane, of which a panel has about so many where there
/// is room: fewer make more of the work that goes into triangles.
inline constexpr std::int64_t tall_panel_factor = 4;
/// And the bytes of a lane's panel, at least, below which calls take longer than what they are for.
inline constexpr std::int64_t tall_panel_bytes = std::int64_t{4} << 20;

/// `tall`: of a matrix that is much longer one way than the other, and larger than memory.
///
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

/// `randomized`: the largest singular values of a matrix that need not fit into memory, out of a few passes over its
/// file.
///
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

/// What every one of them would refuse is refused before.
struct Algorithm {
    std::string_view name;
    Outcome (*run)(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);
};

/// In the order of AlgorithmKind.
inline constexpr std::array algorithms{
    Algorithm{"jacobi", jacobi},   Algorithm{"randomized", randomized}, Algorithm{"local", local},
    Algorithm{"two_stage", local}, Algorithm{"serial", jacobi},         Algorithm{"tall", tall},
};

}  // namespace tilewise::svd
