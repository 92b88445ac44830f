// Algorithms `jacobi`, `serial`, `local` and `two_stage`: all singular values and vectors of a matrix that fits in
// memory.
#pragma once

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// One-sided block Jacobi over all ranks. `flops` counts the products of the sweeps (see Swept); what precedes and
/// follows them is not in it. Memory: see start.hpp and finish.hpp; the input is kept as well where repetitions follow.
/// `serial`: on one rank, by `sweep_serially`, from the columns of A. @note Collective.
Outcome jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

/// `local`: LAPACK's gesdd in float64 on one rank, the only one that there may be. Memory: m·n for the matrix, n·m + n²
/// for the vectors, 4·n² for LAPACK, in float64 numbers, m ≥ n. `flops` are those of the usual estimate,
/// 4·m·n² + 22·n³. `two_stage`: see kernel/factor/two_stage.hpp; on rank 0, with the cores of all ranks of its node.
/// With `keep_small` it may be jacobi that does it, after another reading. @note Collective.
Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

}  // namespace tilewise::svd
