// One rank's decomposition by Jacobi, without MPI: the same start and finish as over many ranks, and sweeps of one pair
// that holds all columns.
#pragma once

#include <string>
#include <vector>

#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::svd {

struct JacobiOptions {
    kernel::Inner inner = kernel::Inner::blocks;
    bool eigen_start = true;
    int most_sweeps = 30;
    double tolerance = 0;  ///< 0: jacobi_tolerance
    int threads = 1;
};

struct JacobiFacts {
    std::vector<double> off;  ///< the largest cosine that each sweep found
    bool converged = false;
    kernel::PairTally tally;
    std::string start, fallback;
    double start_seconds = 0, sweep_seconds = 0, finish_seconds = 0;
};

/// A = U·Σ·Vᵀ, A rows×columns with rows ≥ columns; σ descending, U rows×columns, V columns×columns. u or v without
/// data: not wanted; where V is not wanted, it is not accumulated.
JacobiFacts jacobi_svd(kernel::Columns a, double* sigma, kernel::Columns u, kernel::Columns v,
                       const JacobiOptions& options);

}  // namespace tilewise::svd
