// The singular value decomposition on one rank, without MPI: by the same kernels as over many ranks, and by LAPACK.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewise/kernel/factor/svd_start.hpp"

namespace tilewise::kernel {

struct SvdOptions {
    Inner inner = Inner::blocks;
    bool eigen_start = true;
    int most_sweeps = 30;
    double tolerance = 0;  ///< 0: jacobi_tolerance
    int threads = 1;
};

struct SvdFacts {
    std::vector<double> off;  ///< the largest cosine that each sweep found
    bool converged = false;
    PairTally tally;
    std::string start, fallback;
    double start_seconds = 0, sweep_seconds = 0, finish_seconds = 0;
};

/// A = U·Σ·Vᵀ, A rows×columns with rows ≥ columns; σ descending, U rows×columns, V columns×columns. u or v without
/// data: not wanted; where V is not wanted, it is not accumulated.
SvdFacts jacobi_svd(Columns a, double* sigma, Columns u, Columns v, const SvdOptions& options);

/// LAPACK's divide and conquer, any shape, k = min(rows, columns); A (column-major, rows×columns, `stride` apart) is
/// destroyed. U is rows×k with stride `rows`, Vᵀ is k×columns with stride k; both null: singular values only. Throws
/// Error where LAPACK does not converge, and UsageError where its work space does not fit into 32-bit counts (with
/// vectors: from about 23000 on).
template <class T> void gesdd(std::int64_t rows, std::int64_t columns, T* a, std::int64_t stride, double* sigma,
                              std::type_identity_t<T>* u, std::type_identity_t<T>* vt, int threads);
extern template void gesdd(std::int64_t, std::int64_t, double*, std::int64_t, double*, double*, double*, int);
extern template void gesdd(std::int64_t, std::int64_t, Complex*, std::int64_t, double*, Complex*, Complex*, int);

}  // namespace tilewise::kernel
