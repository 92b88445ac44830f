// What follows the sweeps: norms are singular values, reflectors turn the columns back, and zero ones are
// completed.
#include <algorithm>
#include <cmath>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/jacobi_pair.hpp"
#include "tilewise/kernel/factor/lapack_work.hpp"
#include "tilewise/kernel/factor/svd_start.hpp"

namespace tilewise::kernel {
namespace {

/// Row i becomes row order[i].
template <class T> void put_rows_back(const std::vector<int>& order, ColumnsOf<T> u, int threads) {
    if (order.empty()) {
        return;
    }
    parallel_ranges(u.count > 8 ? threads : 1, u.count, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<T> sorted(order.size());
        for (std::int64_t c = begin; c < end; ++c) {
            std::copy_n(u.column(c), u.rows, sorted.begin());
            for (std::size_t i = 0; i < order.size(); ++i) {
                u.column(c)[order[i]] = sorted[i];
            }
        }
    });
}

}  // namespace

template <class T> void finish_columns(const FactorsOf<T>& factors, ColumnsOf<T> x, bool with_u, ColumnsOf<T> u,
                                       double* sigma, const Team& team, int threads) {
    const auto numbers = static_cast<double>(x.rows * x.count);
    tell<T>({(with_u ? 3 : 2) * numbers, (with_u ? 3 : 1) * numbers});
    parallel_ranges(x.count > 8 ? threads : 1, x.count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            const T* column = x.column(c);
            const double norm = norm_of(column, x.rows);
            const bool zero = norm < least_norm;
            sigma[c] = zero ? 0 : norm * factors.scale;
            if (with_u) {
                T* to = u.column(c);
                const double inverse = zero ? 0 : 1 / norm;
                std::transform(column, column + x.rows, to, [&](const T& value) { return value * inverse; });
                std::fill(to + x.rows, to + u.rows, T{});
            }
        }
    });
    if (factors.reflects() && with_u) {
        apply_q(factors.q1, u, team, threads);
        put_rows_back(factors.row_order, u, threads);
    }
}

template <class T> void turn_back(const FactorsOf<T>& factors, ColumnsOf<T> v, const Team& team, int threads) {
    if (factors.reflects()) {
        apply_q(factors.q2, v, team, threads);
        put_rows_back(factors.permutation, v, threads);
    }
}

template <class T> void complete(const SpreadColumnsOf<T>& u, std::int64_t from, const Team& team, int threads) {
    const std::int64_t before = u.of_rank(team.rank(), 0, from), rows = u.mine.rows;
    // The last columns of the Q of the first ones: orthonormal, and orthogonal to them.
    const MatrixOf<T> first(rows, before);
    for (std::int64_t c = 0; c < before; ++c) {
        std::copy_n(u.mine.column(c), rows, first.column(c));
    }
    const ColumnsOf<T> rest = u.mine.part(before, u.mine.count - before);
    std::int64_t c = 0;
    for (std::int64_t place = from; place < u.count(); ++place) {
        if (u.owners[static_cast<std::size_t>(place)] == team.rank()) {
            std::fill_n(rest.column(c), rows, T{});
            rest.column(c++)[place] = 1.0;
        }
    }
    const SpreadQrOf<T> q =
        spread_qr(SpreadColumnsOf<T>{first.columns(), {u.owners.begin(), u.owners.begin() + from}}, team, threads);
    apply_q(q, rest, team, threads);
}

TILEWISE_SVD_FINISH(, double)
TILEWISE_SVD_FINISH(, Complex)

}  // namespace tilewise::kernel
