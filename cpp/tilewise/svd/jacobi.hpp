// Algorithms `jacobi` and `local`: all singular values with their vectors, of a matrix that fits into memory.
#pragma once

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// One-sided block Jacobi over all ranks. `flops` counts the products of the sweeps (see Swept); what precedes and
/// follows them is not in it. Memory: see start.hpp and finish.hpp; the input is kept as well where repetitions follow.
/// @note Collective.
Outcome jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

/// LAPACK's gesdd in float64 on one rank, the only one that there may be. Memory: m·n for the matrix, n·m + n² for the
/// vectors, 4·n² for LAPACK, in float64 numbers, m ≥ n. `flops` are those of the usual estimate, 4·m·n² + 22·n³. With
/// `keep_small` it may be jacobi that does it, after another reading. @note Collective.
Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

}  // namespace tilewise::svd
