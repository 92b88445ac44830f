// Looks at the columns' norms, and takes LAPACK's way or that of `jacobi`.
#include "tilewise/svd/tall_triangle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewise/kernel/factor/svd_local.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::svd {
namespace {

constexpr double most_range = 1e3;  // by which columns differ where gesdd would lose the thirteenth digit

/// The largest norm of a column over the smallest that is not 0.
template <class T> double range_of_columns(std::int64_t n, const T* r) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        double norm = 0;
        for (std::int64_t i = 0; i <= j; ++i) {
            norm = std::hypot(norm, std::abs(r[j * n + i]));
        }
        least = norm > 0 ? std::min(least, norm) : least;
        most = std::max(most, norm);
    }
    return most / least;
}

bool by_rotations(TriangleSvd<double>& found, std::int64_t n, double* r, int threads) {
    Array<double> copy(n * n), v(n * n);
    std::copy_n(r, n * n, copy.data());
    const kernel::Columns u{found.u.data(), n, n, n};
    const kernel::SvdFacts facts =
        kernel::jacobi_svd({copy.data(), n, n, n}, found.s.data(), u, {v.data(), n, n, n}, {.threads = threads});
    const auto line = n * static_cast<std::int64_t>(sizeof(double));
    kernel::transpose(v.raw(), line, n, n, sizeof(double), found.vh.raw(), line, threads);
    return facts.converged;
}

}  // namespace

template <class T> TriangleSvd<T> decompose_triangle(std::int64_t n, T* r, bool vectors, int threads) {
    TriangleSvd<T> found;
    found.s.resize(static_cast<std::size_t>(n));
    if constexpr (!kernel::is_complex_number<T>) {
        if (range_of_columns(n, r) > most_range) {
            found.u = Array<T>(n * n);
            found.vh = Array<T>(n * n);
            if (by_rotations(found, n, r, threads)) {
                return found;
            }
        }
    }
    if (vectors) {
        found.u = Array<T>(n * n);
        found.vh = Array<T>(n * n);
    }
    kernel::gesdd(n, n, r, n, found.s.data(), vectors ? found.u.data() : nullptr, vectors ? found.vh.data() : nullptr,
                  threads);
    return found;
}

template TriangleSvd<double> decompose_triangle(std::int64_t, double*, bool, int);
template TriangleSvd<kernel::Complex> decompose_triangle(std::int64_t, kernel::Complex*, bool, int);

}  // namespace tilewise::svd
