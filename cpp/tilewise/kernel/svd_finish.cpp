// What follows the sweeps: norms are singular values, reflectors turn the columns back, and zero ones are completed.
#include <algorithm>
#include <cmath>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/jacobi_pair.hpp"
#include "tilewise/kernel/lapack.hpp"
#include "tilewise/kernel/svd_reflectors.hpp"
#include "tilewise/kernel/svd_start.hpp"

namespace tilewise::kernel {
namespace {

/// Row i becomes row order[i].
void put_rows_back(const std::vector<int>& order, Columns u, int threads) {
    if (order.empty()) {
        return;
    }
    parallel_ranges(u.count > 8 ? threads : 1, u.count, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<double> sorted(order.size());
        for (std::int64_t c = begin; c < end; ++c) {
            std::copy_n(u.column(c), u.rows, sorted.begin());
            for (std::size_t i = 0; i < order.size(); ++i) {
                u.column(c)[order[i]] = sorted[i];
            }
        }
    });
}

}  // namespace

void finish_columns(const Factors& factors, Columns x, Columns u, double* sigma, int threads) {
    const bool with_u = u.data != nullptr;
    parallel_ranges(x.count > 8 ? threads : 1, x.count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            const double* column = x.column(c);
            const double norm = norm_of(column, x.rows);
            const bool zero = norm < least_norm;
            sigma[c] = zero ? 0 : norm * factors.scale;
            if (with_u) {
                double* to = u.column(c);
                const double inverse = zero ? 0 : 1 / norm;
                std::transform(column, column + x.rows, to, [&](double value) { return value * inverse; });
                std::fill(to + x.rows, to + u.rows, 0.0);
            }
        }
    });
    if (factors.q1.rows > 0 && with_u && x.count > 0) {
        apply_q(factors.q1.columns(), factors.tau1, u, threads);
        put_rows_back(factors.row_order, u, threads);
    }
}

void turn_back(const Factors& factors, Columns v, int threads) {
    if (factors.q2.rows > 0 && v.count > 0) {
        apply_q_transposed_of_lq(factors.q2.columns(), factors.tau2, v, threads);
        put_rows_back(factors.permutation, v, threads);
    }
}

void complete(Columns u, std::int64_t from, int threads) {
    if (from >= u.count) {
        return;
    }
    for (std::int64_t c = from; c < u.count; ++c) {
        std::fill_n(u.column(c), u.rows, 0.0);
        u.column(c)[c] = 1;
    }
    if (from == 0) {
        return;
    }
    // The last columns of the Q of the first ones: orthonormal, and orthogonal to them.
    Matrix q(u.rows, from);
    for (std::int64_t c = 0; c < from; ++c) {
        std::copy_n(u.column(c), u.rows, q.column(c));
    }
    std::vector<double> tau;
    {
        const BlasThreads blas(threads);
        qr(q.columns(), tau);
    }
    apply_q(q.columns(), tau, u.part(from, u.count - from), threads);
}

}  // namespace tilewise::kernel
